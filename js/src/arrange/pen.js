/**
 * Draws the lines of a scope as cubic curves: upright inside bands, turning in the gaps; along a gutter for rails. Pure.
 *
 * @typedef {import("./arrange.js").Block} Block
 * @typedef {import("./arrange.js").BlockEdge} BlockEdge
 * @typedef {import("./arrange.js").Line} Line
 * @typedef {import("../engine/ranks.js").Solution} Solution
 */

const CORNER = 9;
/** Part of a quarter circle's radius at which a cubic has its control points. */
const ROUND = 0.5523;
const BOW = 0.55;

export class Pen {
  /**
   * @param {Block[]} blocks
   * @param {number[]} blockTops
   * @param {Solution} solution
   * @param {{tops: number[], bottoms: number[]}} rows
   * @param {(end: number, isTail: boolean) => number} nodeOf
   */
  constructor(blocks, blockTops, solution, rows, nodeOf) {
    this.blocks = blocks;
    this.blockTops = blockTops;
    this.solution = solution;
    this.rows = rows;
    this.nodeOf = nodeOf;
  }

  /** @type {(node: number, x: number, side: -1 | 1) => number} y of a node's border at x: above (-1) or below (1) */
  borderY(node, x, side) {
    const block = this.blocks[node];
    if (!block) return this.rows.tops[this.solution.ranks[node]];
    const dent = block.isRound ? roundDent(block, x - this.solution.xs[node]) : 0;
    const top = this.blockTops[node];
    return side < 0 ? top + dent : top + block.height - dent;
  }

  /** @type {(edge: BlockEdge, tailX: number, headX: number, bends: number[]) => Line} */
  curve(edge, tailX, headX, bends) {
    const tail = this.nodeOf(edge.tail, true);
    const head = this.nodeOf(edge.head, false);
    const { tops, bottoms } = this.rows;
    const from = this.solution.ranks[tail];
    const stroke = new Stroke(tailX, this.borderY(tail, tailX, 1));
    stroke.downTo(bottoms[from]);
    bends.forEach((x, i) => {
      stroke.turnTo(x, tops[from + i + 1]);
      stroke.downTo(bottoms[from + i + 1]);
    });
    stroke.turnTo(headX, tops[this.solution.ranks[head]]);
    stroke.downTo(this.borderY(head, headX, -1));
    return { points: stroke.points, isRail: false };
  }

  /** @type {(edge: BlockEdge, tailX: number, headX: number, lane: {x: number, leave: number, arrive: number}) => Line} */
  rail(edge, tailX, headX, lane) {
    const tail = this.nodeOf(edge.tail, true);
    const head = this.nodeOf(edge.head, false);
    const startY = this.borderY(tail, tailX, 1);
    const endY = this.borderY(head, headX, -1);
    const leaveY = this.rows.bottoms[this.solution.ranks[tail]] + lane.leave;
    const arriveY = this.rows.tops[this.solution.ranks[head]] - lane.arrive;
    const corners = [tailX, startY, tailX, leaveY, lane.x, leaveY, lane.x, arriveY, headX, arriveY, headX, endY];
    return { points: roundCorners(corners), isRail: true };
  }
}

/** @type {(block: Block, dx: number) => number} how far a round end lies below the top at dx from the middle */
function roundDent(block, dx) {
  const radius = block.height / 2;
  const over = Math.min(radius, Math.max(0, Math.abs(dx) - (block.width / 2 - radius)));
  return radius - Math.sqrt(radius * radius - over * over);
}

/** A line under construction; straight pieces that follow each other become one. */
class Stroke {
  /** @param {number} x @param {number} y */
  constructor(x, y) {
    this.points = [x, y];
    this.x = x;
    this.y = y;
    this.straightFrom = NaN;
  }

  /** @param {number} y */
  downTo(y) {
    if (Math.abs(y - this.y) < 0.01) return;
    const from = Number.isNaN(this.straightFrom) ? this.y : this.straightFrom;
    if (!Number.isNaN(this.straightFrom)) this.points.length -= 6;
    const third = (y - from) / 3;
    this.points.push(this.x, from + third, this.x, y - third, this.x, y);
    this.straightFrom = from;
    this.y = y;
  }

  /** @param {number} x @param {number} y */
  turnTo(x, y) {
    if (Math.abs(x - this.x) < 0.6) {
      this.downTo(y);
      return;
    }
    const bow = (y - this.y) * BOW;
    this.points.push(this.x, this.y + bow, x, y - bow, x, y);
    this.x = x;
    this.y = y;
    this.straightFrom = NaN;
  }
}

/** @param {number[]} corners x0,y0,x1,y1,... @returns {number[]} the same line as cubics, its corners rounded */
export function roundCorners(corners) {
  const points = [corners[0], corners[1]];
  let [x, y] = corners;
  const straight = (/** @type {number} */ toX, /** @type {number} */ toY) => {
    if (Math.hypot(toX - x, toY - y) < 0.01) return;
    points.push(x + (toX - x) / 3, y + (toY - y) / 3, x + ((toX - x) * 2) / 3, y + ((toY - y) * 2) / 3, toX, toY);
    x = toX;
    y = toY;
  };
  for (let i = 2; i + 3 < corners.length; i += 2) {
    const [px, py, cx, cy, nx, ny] = corners.slice(i - 2, i + 4);
    const before = Math.hypot(cx - px, cy - py);
    const after = Math.hypot(nx - cx, ny - cy);
    const radius = Math.min(CORNER, before / 2, after / 2);
    if (radius < 0.5) {
      straight(cx, cy);
      continue;
    }
    const [ux, uy] = [(cx - px) / before, (cy - py) / before];
    const [vx, vy] = [(nx - cx) / after, (ny - cy) / after];
    straight(cx - ux * radius, cy - uy * radius);
    const pull = radius * (1 - ROUND);
    points.push(cx - ux * pull, cy - uy * pull, cx + vx * pull, cy + vy * pull, cx + vx * radius, cy + vy * radius);
    x = cx + vx * radius;
    y = cy + vy * radius;
  }
  straight(corners[corners.length - 2], corners[corners.length - 1]);
  return points;
}
