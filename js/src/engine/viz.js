/**
 * Graphviz as an engine: `dot` orders one scope and puts its nodes on x; sole importer of @viz-js/viz. Sizes go in
 * and come out as points, 72 to the inch, UNITS_PER_PX points for a px.
 *
 * @typedef {import("./ranks.js").Problem} Problem
 * @typedef {import("./ranks.js").Solution} Solution
 * @typedef {Awaited<ReturnType<typeof instance>>} Viz
 * @typedef {Object} VizEngine
 * @property {"viz"} name
 * @property {(problem: Problem) => Solution} solve by the simple engine where Graphviz fails
 * @property {(problems: Problem[]) => Promise<(Solution | null)[]>} solveAll null where Graphviz fails, also on a new start
 */
import { instance } from "@viz-js/viz";
import { solveSimply } from "./simple.js";

const POINTS_PER_INCH = 72;
/** dot rounds to whole points; finer units keep straight lines straight. Cells of tables may have 65535 points at most. */
const UNITS_PER_PX = 4;
const FINE_WIDTH = 15000;
const MOST_WIDTH = 60000;
/** Beyond this dot takes seconds (its time grows with the square); the simple engine takes over. */
const MOST_NODES = 320;
const MOST_EDGES = 640;
const NODE_SEPARATION = 26;
const RANK_SEPARATION = 30;
const RANK_TOLERANCE = 1;

/** @param {Problem} problem @returns {boolean} */
export const isFitForViz = ({ kinds, edges, widths }) =>
  kinds.length <= MOST_NODES && edges.length <= MOST_EDGES && widths.every((width) => width <= MOST_WIDTH);

/** @param {number[]} widths @returns {number} points for a px */
const unitsFor = (widths) => (widths.every((width) => width <= FINE_WIDTH) ? UNITS_PER_PX : 1);

/**
 * @param {Uint8Array | ArrayBuffer | null} wasm the bytes of Graphviz; null where the package brings them itself (Node)
 * @returns {Promise<VizEngine>}
 */
export async function createVizEngine(wasm) {
  // The bundle's `instance` takes the bytes (see build.mjs); the published one has them inside and ignores the argument.
  const start = () => /** @type {(options: object) => Promise<Viz>} */ (instance)(wasm ? { wasmBinary: wasm } : {});
  /** @type {Viz | null} */
  let viz = await start();
  /** @type {(problem: Problem) => Solution | null} */
  const attempt = (problem) => {
    if (viz === null || !isFitForViz(problem)) return null;
    try {
      return readSolution(problem, JSON.parse(viz.renderString(toDot(problem), { format: "json0" })));
    } catch {
      // After an error, the instance fails at everything that follows: it must not be used again.
      viz = null;
      return null;
    }
  };
  /** @returns {Promise<boolean>} whether there is an instance that works */
  const revive = async () => {
    // Memory may be too short for another instance; the simple engine needs none.
    viz ??= await start().catch(() => null);
    return viz !== null;
  };
  return {
    name: "viz",
    solve: (problem) => attempt(problem) ?? solveSimply(problem),
    async solveAll(problems) {
      const solutions = [];
      for (const problem of problems) {
        let solution = (await revive()) ? attempt(problem) : null;
        // The failure may have been due to what came before: a fresh instance gets a second try.
        if (solution === null && viz === null && isFitForViz(problem) && (await revive())) solution = attempt(problem);
        solutions.push(solution);
      }
      return solutions;
    },
  };
}

/**
 * @param {Problem} problem
 * @returns {string} in the DOT language
 */
export function toDot({ kinds, widths, heights, edges }) {
  const units = unitsFor(widths);
  const inches = (/** @type {number} */ px) => ((px * units) / POINTS_PER_INCH).toFixed(4);
  const lines = [
    "digraph {",
    `graph [nodesep=${inches(NODE_SEPARATION)}, ranksep=${inches(RANK_SEPARATION)}]`,
    'node [shape=box, fixedsize=true, label="", margin=0]',
    "edge [arrowhead=none]",
  ];
  const ports = portTables(kinds.length, edges);
  kinds.forEach((_, node) => {
    const [width, height] = [inches(widths[node]), inches(Math.max(heights[node], 1))];
    const { upper, lower } = ports[node];
    const isPlain = upper.length === 0 && lower.length === 0;
    const label = isPlain
      ? ""
      : `, shape=plain, fixedsize=false, label=<${portTable(widths[node], Math.max(heights[node], 4), upper, lower, units)}>`;
    lines.push(`n${node} [width=${width}, height=${height}${label}]`);
  });
  for (const side of /** @type {const} */ (["in", "out"])) {
    const names = kinds.flatMap((kind, node) => (kind === side ? [`n${node}`] : []));
    if (names.length > 0) lines.push(`{rank=${side === "in" ? "source" : "sink"}; ${names.join("; ")}}`);
  }
  edges.forEach(({ tail, head, tailDx, headDx, weight }, at) => {
    const from = tailDx === 0 ? `n${tail}:s` : `n${tail}:"${portName("l", tailDx)}":s`;
    const to = headDx === 0 ? `n${head}:n` : `n${head}:"${portName("u", headDx)}":n`;
    lines.push(`${from} -> ${to} [id=${at}, weight=${weight}]`);
  });
  lines.push("}");
  return lines.join("\n");
}

/** @type {(side: "u"|"l", dx: number) => string} */
const portName = (side, dx) => `${side}${dx.toFixed(1)}`;

/**
 * @param {number} count
 * @param {Problem["edges"]} edges
 * @returns {{upper: number[], lower: number[]}[]} per node: where edges touch it besides the middle, from left to right
 */
function portTables(count, edges) {
  const sets = Array.from({ length: count }, () => ({ upper: new Set(), lower: new Set() }));
  for (const { tail, head, tailDx, headDx } of edges) {
    if (tailDx !== 0) sets[tail].lower.add(tailDx);
    if (headDx !== 0) sets[head].upper.add(headDx);
  }
  const sorted = (/** @type {Set<number>} */ set) => [...set].sort((a, b) => a - b);
  return sets.map(({ upper, lower }) => ({ upper: sorted(upper), lower: sorted(lower) }));
}

/**
 * @type {(width: number, height: number, upper: number[], lower: number[], units: number) => string} an HTML-like label
 *   with cells as ports
 */
function portTable(width, height, upper, lower, units) {
  const rows = [portRow(width, height / 2, upper, "u", units), portRow(width, height / 2, lower, "l", units)];
  return `<table border="0" cellborder="0" cellspacing="0" cellpadding="0">${rows.join("")}</table>`;
}

/** @type {(width: number, height: number, ports: number[], side: "u"|"l", units: number) => string} cells take whole points */
function portRow(width, height, ports, side, units) {
  const points = (/** @type {number} */ px) => Math.round(px * units);
  const cell = (/** @type {number} */ cellWidth, /** @type {string} */ port) =>
    `<td fixedsize="true" width="${points(cellWidth)}" height="${points(height)}"${port}></td>`;
  /** @type {string[]} */
  const cells = [];
  let x = -width / 2;
  ports.forEach((dx, i) => {
    const half = Math.min(4, (dx - x) / 2, ((ports[i + 1] ?? width / 2) - dx) / 2);
    if (dx - half - x > 0.05) cells.push(cell(dx - half - x, ""));
    cells.push(cell(2 * half, ` port="${portName(side, dx)}"`));
    x = dx + half;
  });
  if (width / 2 - x > 0.05) cells.push(cell(width / 2 - x, ""));
  return `<tr><td><table border="0" cellborder="0" cellspacing="0" cellpadding="0"><tr>${cells.join("")}</tr></table></td></tr>`;
}

/**
 * @param {Problem} problem
 * @param {any} drawing what Graphviz wrote as JSON
 * @returns {Solution}
 */
function readSolution(problem, drawing) {
  const units = unitsFor(problem.widths);
  const count = problem.kinds.length;
  const xs = new Array(count).fill(0);
  const ys = new Array(count).fill(0);
  for (const object of drawing.objects) {
    const node = /^n(\d+)$/.exec(object.name);
    if (!node) continue;
    const [x, y] = object.pos.split(",").map(Number);
    xs[Number(node[1])] = x / units;
    ys[Number(node[1])] = y;
  }
  const { ranks, rankYs } = ranksFrom(ys);
  /** @type {number[][]} */
  const bends = problem.edges.map(() => []);
  for (const edge of drawing.edges ?? []) {
    const at = Number(edge.id);
    const { tail, head } = problem.edges[at];
    const step = ranks[head] > ranks[tail] ? 1 : -1;
    const spline = splinePoints(edge.pos);
    for (let rank = ranks[tail] + step; rank !== ranks[head] && ranks[head] !== ranks[tail]; rank += step) {
      bends[at].push(xAt(spline, rankYs[rank]) / units);
    }
  }
  // Graphviz takes what is no number for one; what it then writes must not reach the drawing.
  if (![...xs, ...ys, ...bends.flat()].every(Number.isFinite)) throw new Error("Graphviz gave no usable positions");
  return { ranks, xs, bends };
}

/** @type {(ys: number[]) => {ranks: number[], rankYs: number[]}} y grows upwards in Graphviz: the highest is rank 0 */
function ranksFrom(ys) {
  /** @type {number[]} */
  const rankYs = [];
  for (const y of [...ys].sort((a, b) => b - a)) {
    if (rankYs.length === 0 || rankYs[rankYs.length - 1] - y > RANK_TOLERANCE) rankYs.push(y);
  }
  const ranks = ys.map((y) => rankYs.findIndex((rankY) => Math.abs(rankY - y) <= RANK_TOLERANCE));
  return { ranks, rankYs };
}

/** @type {(pos: string) => [number, number][]} start, then triples; the arrow's tip is left out */
function splinePoints(pos) {
  return pos
    .split(" ")
    .filter((part) => !part.startsWith("e,") && !part.startsWith("s,"))
    .map((part) => /** @type {[number, number]} */ (part.split(",").map(Number)));
}

/** @type {(spline: [number, number][], y: number) => number} x where the spline is at height y */
function xAt(spline, y) {
  for (let i = 0; i + 3 < spline.length; i += 3) {
    const [from, to] = [spline[i][1], spline[i + 3][1]];
    if ((from - y) * (to - y) > 0) continue;
    return bisect(spline.slice(i, i + 4), y, from > to);
  }
  const nearest = [...spline].sort((a, b) => Math.abs(a[1] - y) - Math.abs(b[1] - y))[0];
  return nearest[0];
}

/** @type {(curve: [number, number][], y: number, isFalling: boolean) => number} */
function bisect(curve, y, isFalling) {
  let low = 0;
  let high = 1;
  for (let i = 0; i < 24; i += 1) {
    const t = (low + high) / 2;
    if (cubic(curve, t, 1) > y === isFalling) low = t;
    else high = t;
  }
  return cubic(curve, low, 0);
}

/** @type {(curve: [number, number][], t: number, axis: 0 | 1) => number} */
function cubic(curve, t, axis) {
  const s = 1 - t;
  const [a, b, c, d] = curve.map((point) => point[axis]);
  return s * s * s * a + 3 * s * s * t * b + 3 * s * t * t * c + t * t * t * d;
}
