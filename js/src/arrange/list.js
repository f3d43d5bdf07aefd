/**
 * Arranges a list: children in columns, fed by a line that runs down beside each column. Pure.
 *
 * @typedef {import("./arrange.js").ScopeTask} ScopeTask
 * @typedef {import("./arrange.js").ScopeLayout} ScopeLayout
 */
import { roundCorners } from "./pen.js";

const SHORTEST_COLUMN = 12;
const ROW_GAP = 10;
const COLUMN_GAP = 26;
/** From the line to the children beside it. */
const INDENT = 22;
const TOP = 14;

/**
 * @param {ScopeTask} task a list: all edges run from a port in to a child
 * @returns {ScopeLayout}
 */
export function arrangeList(task) {
  const { blocks, edges } = task;
  // Pills are wide and low: columns of this length give about twice the height of the width.
  const longest = Math.max(SHORTEST_COLUMN, Math.ceil(Math.sqrt(6 * blocks.length)));
  const columns = Math.ceil(blocks.length / longest);
  const perColumn = Math.ceil(blocks.length / columns);
  /** @type {number[]} */
  const xs = [];
  /** @type {number[]} */
  const ys = [];
  let width = 0;
  let height = 0;
  for (let first = 0; first < blocks.length; first += perColumn) {
    const column = blocks.slice(first, first + perColumn);
    const left = first === 0 ? 0 : width + COLUMN_GAP;
    let y = TOP;
    for (const block of column) {
      xs.push(left + INDENT);
      ys.push(y);
      y += block.height + ROW_GAP;
    }
    width = left + INDENT + Math.max(...column.map((block) => block.width));
    height = Math.max(height, y - ROW_GAP);
  }
  const lines = edges.map(({ head }) => {
    const trunk = xs[head] - INDENT;
    const middle = ys[head] + blocks[head].height / 2;
    const corners = trunk > 0 ? [0, 0, 0, TOP / 2, trunk, TOP / 2] : [0, 0];
    return { points: roundCorners([...corners, trunk, middle, xs[head], middle]), isRail: true };
  });
  const dx = new Array(task.ins).fill(-width / 2);
  return { width, height, xs, ys, inDx: dx, outDx: [], axisDx: -width / 2, lines, labels: edges.map(() => null) };
}
