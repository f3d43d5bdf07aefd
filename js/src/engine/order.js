/**
 * Orders the nodes of each rank so that few edges cross: barycentre sweeps, then swaps of neighbours. Pure.
 *
 * @typedef {import("./simple.js").Layers} Layers
 * @typedef {import("./simple.js").Arc} Arc
 */

const SWEEPS = 12;
/** Sweeps in a row without a better order after which to stop. */
const PATIENCE = 4;

/**
 * @param {Layers} layers its rows get reordered
 */
export function orderRows(layers) {
  if (layers.rows.every((row) => row.length <= 1)) return;
  const place = new Array(layers.count).fill(0);
  number(layers.rows, place);
  startOrder(layers, place);
  let best = layers.rows.map((row) => [...row]);
  let fewest = crossings(layers, place);
  let idle = 0;
  for (let sweep = 0; sweep < SWEEPS && fewest > 0 && idle < PATIENCE; sweep += 1) {
    if (sweep % 2 === 0) for (const row of layers.rows) sortRow(row, layers.up, place);
    else for (let rank = layers.rows.length - 1; rank >= 0; rank -= 1) sortRow(layers.rows[rank], layers.down, place);
    swapNeighbours(layers, place);
    const count = crossings(layers, place);
    idle += 1;
    if (count >= fewest) continue;
    fewest = count;
    best = layers.rows.map((row) => [...row]);
    idle = 0;
  }
  best.forEach((row, rank) => layers.rows[rank].splice(0, row.length, ...row));
}

/** @type {(rows: number[][], place: number[]) => void} */
function number(rows, place) {
  for (const row of rows) row.forEach((node, at) => (place[node] = at));
}

/** Walks the graph depth first, so that what belongs together starts side by side. @type {(layers: Layers, place: number[]) => void} */
function startOrder(layers, place) {
  const isSeen = new Array(layers.count).fill(false);
  let next = 0;
  const discovery = new Array(layers.count).fill(0);
  for (const row of layers.rows) {
    for (const root of row) {
      const stack = [root];
      while (stack.length > 0) {
        const node = /** @type {number} */ (stack.pop());
        if (isSeen[node]) continue;
        isSeen[node] = true;
        discovery[node] = next++;
        for (let i = layers.down[node].length - 1; i >= 0; i -= 1) stack.push(layers.down[node][i].other);
      }
    }
  }
  for (const row of layers.rows) row.sort((a, b) => discovery[a] - discovery[b]);
  number(layers.rows, place);
}

/** @type {(row: number[], arcs: Arc[][], place: number[]) => void} */
function sortRow(row, arcs, place) {
  if (row.length < 2) return;
  const key = new Map(row.map((node) => [node, barycentre(arcs[node], place) ?? place[node]]));
  row.sort((a, b) => /** @type {number} */ (key.get(a)) - /** @type {number} */ (key.get(b)) || place[a] - place[b]);
  row.forEach((node, at) => (place[node] = at));
}

/** @type {(arcs: Arc[], place: number[]) => number | null} ports of one node differ by less than a place */
function barycentre(arcs, place) {
  if (arcs.length === 0) return null;
  let sum = 0;
  for (const { other, dx } of arcs) sum += place[other] + Math.atan(dx / 50) / 4;
  return sum / arcs.length;
}

/** @type {(layers: Layers, place: number[]) => void} */
function swapNeighbours(layers, place) {
  for (const row of layers.rows) {
    for (let i = 0; i + 1 < row.length; i += 1) {
      const [left, right] = [row[i], row[i + 1]];
      const now = pairCrossings(layers.up, left, right, place) + pairCrossings(layers.down, left, right, place);
      if (now === 0) continue;
      const swapped = pairCrossings(layers.up, right, left, place) + pairCrossings(layers.down, right, left, place);
      if (swapped >= now) continue;
      row[i] = right;
      row[i + 1] = left;
      place[right] = i;
      place[left] = i + 1;
    }
  }
}

/** @type {(arcs: Arc[][], left: number, right: number, place: number[]) => number} crossings if left stands left of right */
function pairCrossings(arcs, left, right, place) {
  let count = 0;
  for (const a of arcs[left]) {
    for (const b of arcs[right]) {
      const gap = place[a.other] - place[b.other];
      if (gap > 0 || (gap === 0 && a.dx > b.dx)) count += 1;
    }
  }
  return count;
}

/**
 * @param {Layers} layers
 * @param {number[]} place
 * @returns {number} crossings between all neighbouring ranks, counted with a Fenwick tree
 */
function crossings(layers, place) {
  let total = 0;
  for (let rank = 1; rank < layers.rows.length; rank += 1) {
    const width = layers.rows[rank - 1].length;
    if (width < 2 || layers.rows[rank].length < 2) continue;
    const tree = new Array(width + 1).fill(0);
    let seen = 0;
    for (const node of layers.rows[rank]) {
      const ends = layers.up[node].map(({ other }) => place[other]);
      for (const end of ends) {
        let notRight = 0;
        for (let i = end + 1; i > 0; i -= i & -i) notRight += tree[i];
        total += seen - notRight;
      }
      for (const end of ends) for (let i = end + 1; i <= width; i += i & -i) tree[i] += 1;
      seen += ends.length;
    }
  }
  return total;
}
