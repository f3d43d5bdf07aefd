/**
 * Straightens what placing nodes one by one can't: moves groups of nodes that hang together as long as the weighted sum of
 * all bends falls. This is network simplex in spirit (Gansner, Koutsofios, North and Vo, 1993): the groups are the parts
 * into which a spanning tree of straight lines and touching neighbours falls when one of its links is cut. Pure.
 *
 * @typedef {import("./simple.js").Layers} Layers
 * @typedef {Object} Link an arc (isArc), which should be straight, or two neighbours in a row, which must keep their gap
 * @property {boolean} isArc
 * @property {number} from upper or left node
 * @property {number} to lower or right node
 * @property {number} length x of `to` less x of `from`: wanted for arcs, least for neighbours
 * @property {number} weight
 *
 * @typedef {{link: Link, isHeadInside: boolean}} Border a link between a group and the rest
 */

const TIGHT = 0.01;
/** Larger graphs are left as they are: the work grows with the square. */
const MOST_NODES = 220;
const MOVES_EACH = 4;
const DIRECTIONS = [-1, 1];

/**
 * @param {Layers} layers rows in their final order
 * @param {(left: number, right: number) => number} gapAfter
 * @param {number[]} xs gets changed; feasible
 */
export function tighten(layers, gapAfter, xs) {
  if (layers.count > MOST_NODES || layers.rows.every((row) => row.length === 1)) return;
  const links = linksOf(layers, gapAfter);
  for (let moves = 0; moves < MOVES_EACH * layers.count; moves += 1) {
    if (!moveOneGroup(layers.count, links, xs)) return;
  }
}

/** @type {(layers: Layers, gapAfter: (left: number, right: number) => number) => Link[]} */
function linksOf({ rows, up }, gapAfter) {
  /** @type {Link[]} */
  const links = [];
  for (const row of rows) {
    row.forEach((to, at) => {
      for (const { other, dx, weight } of up[to]) links.push({ isArc: true, from: other, to, length: dx, weight });
      if (at > 0) links.push({ isArc: false, from: row[at - 1], to, length: gapAfter(row[at - 1], to), weight: 0 });
    });
  }
  return links;
}

/** @type {(count: number, links: Link[], xs: number[]) => boolean} whether a move was found that makes it straighter */
function moveOneGroup(count, links, xs) {
  const { enter, leave } = spanningForest(count, links, xs);
  for (let node = 0; node < count; node += 1) {
    const first = enter[node];
    const end = leave[node];
    const border = borderOf(links, enter, first, end);
    for (const direction of DIRECTIONS) {
      const distance = bestMove(border, direction, xs);
      if (distance === 0) continue;
      for (let other = 0; other < count; other += 1) {
        if (enter[other] >= first && enter[other] < end) xs[other] += direction * distance;
      }
      return true;
    }
  }
  return false;
}

/**
 * @param {Link[]} links
 * @param {number[]} enter when a walk enters each node
 * @param {number} first the group is what is entered from then on
 * @param {number} end and before then
 * @returns {Border[]}
 */
function borderOf(links, enter, first, end) {
  /** @type {Border[]} */
  const border = [];
  for (const link of links) {
    const head = enter[link.to];
    const tail = enter[link.from];
    const isHeadInside = head >= first && head < end;
    if (isHeadInside !== (tail >= first && tail < end)) border.push({ link, isHeadInside });
  }
  return border;
}

/** @type {(count: number, links: Link[], xs: number[]) => {enter: number[], leave: number[]}} when a walk over tight links enters and leaves each node; a node's part of the tree is what is entered between */
function spanningForest(count, links, xs) {
  /** @type {number[][]} */
  const near = Array.from({ length: count }, () => []);
  for (const { from, to, length } of links) {
    if (Math.abs(xs[to] - xs[from] - length) > TIGHT) continue;
    near[from].push(to);
    near[to].push(from);
  }
  const enter = new Array(count).fill(-1);
  const leave = new Array(count).fill(-1);
  let time = 0;
  for (let root = 0; root < count; root += 1) {
    if (enter[root] >= 0) continue;
    const stack = [{ node: root, at: 0 }];
    enter[root] = time++;
    while (stack.length > 0) {
      const top = stack[stack.length - 1];
      if (top.at === near[top.node].length) {
        leave[top.node] = time;
        stack.pop();
        continue;
      }
      const next = near[top.node][top.at++];
      if (enter[next] >= 0) continue;
      enter[next] = time++;
      stack.push({ node: next, at: 0 });
    }
  }
  return { enter, leave };
}

/**
 * @param {Border[]} border
 * @param {number} direction -1 or 1
 * @param {number[]} xs
 * @returns {number} how far the group can move with gain; 0 where it can't
 */
function bestMove(border, direction, xs) {
  let slope = 0;
  let room = Infinity;
  for (const { link, isHeadInside } of border) {
    const excess = xs[link.to] - xs[link.from] - link.length;
    const change = isHeadInside ? direction : -direction;
    if (link.isArc) {
      const isNearing = Math.abs(excess) > TIGHT && excess * change < 0;
      slope += isNearing ? -link.weight : link.weight;
      if (isNearing) room = Math.min(room, Math.abs(excess));
    } else if (change < 0) {
      if (excess <= TIGHT) return 0;
      room = Math.min(room, excess);
    }
  }
  return slope < -1e-9 && Number.isFinite(room) ? room : 0;
}
