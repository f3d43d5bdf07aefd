/**
 * Orders the nodes of each rank so that few edges cross: barycentre sweeps, then swaps of neighbours. Pure.
 *
 * @typedef {import("./simple.js").Layers} Layers
 * @typedef {import("./simple.js").Arc} Arc
 */

const SWEEPS = 12;
/** Sweeps in a row without a better order after which to stop. */
const PATIENCE = 4;
/** Graphs up to this size, dummies included, are ordered from several starts. */
const FEW = 300;
/** @type {{side: "down"|"up", isMirrored: boolean}[]} which way to walk first, and which of two branches */
const STARTS = [
  { side: "down", isMirrored: false },
  { side: "down", isMirrored: true },
  { side: "up", isMirrored: false },
  { side: "up", isMirrored: true },
];

/**
 * @param {Layers} layers its rows get reordered
 * @returns {number} crossings that are left
 */
export function orderRows(layers) {
  const starts = layers.count <= FEW ? STARTS : STARTS.slice(0, 1);
  /** @type {{rows: number[][], crossings: number} | null} */
  let best = null;
  for (const { side, isMirrored } of starts) {
    const found = improve(layers, side, isMirrored);
    if (best === null || found.crossings < best.crossings) best = found;
    if (best.crossings === 0) break;
  }
  const { rows, crossings: fewest } = /** @type {NonNullable<typeof best>} */ (best);
  rows.forEach((row, rank) => layers.rows[rank].splice(0, row.length, ...row));
  return fewest;
}

/** @type {(layers: Layers, side: "down"|"up", isMirrored: boolean) => {rows: number[][], crossings: number}} */
function improve(layers, side, isMirrored) {
  const place = new Array(layers.count).fill(0);
  number(layers.rows, place);
  startOrder(layers, place, side, isMirrored);
  let rows = layers.rows.map((row) => [...row]);
  let fewest = crossings(layers, place);
  let idle = 0;
  for (let sweep = 0; sweep < SWEEPS && fewest > 0 && idle < PATIENCE; sweep += 1) {
    if (sweep % 2 === 0) for (const row of layers.rows) sortRow(row, layers.up, place, layers.widths);
    else {
      for (let rank = layers.rows.length - 1; rank >= 0; rank -= 1) {
        sortRow(layers.rows[rank], layers.down, place, layers.widths);
      }
    }
    swapNeighbours(layers, place);
    const count = crossings(layers, place);
    idle += 1;
    if (count >= fewest) continue;
    fewest = count;
    rows = layers.rows.map((row) => [...row]);
    idle = 0;
  }
  return { rows, crossings: fewest };
}

/** @type {(rows: number[][], place: number[]) => void} */
function number(rows, place) {
  for (const row of rows) row.forEach((node, at) => (place[node] = at));
}

/**
 * Walks the graph depth first, so that what belongs together starts side by side.
 *
 * @type {(layers: Layers, place: number[], side: "down"|"up", isMirrored: boolean) => void}
 */
function startOrder(layers, place, side, isMirrored) {
  const arcs = layers[side];
  const rows = side === "down" ? layers.rows : [...layers.rows].reverse();
  const isSeen = new Array(layers.count).fill(false);
  let next = 0;
  const discovery = new Array(layers.count).fill(0);
  for (const row of rows) {
    for (const root of [...row].sort((a, b) => a - b)) {
      const stack = [root];
      while (stack.length > 0) {
        const node = /** @type {number} */ (stack.pop());
        if (isSeen[node]) continue;
        isSeen[node] = true;
        discovery[node] = next++;
        const others = arcs[node].map(({ other }) => other);
        stack.push(...(isMirrored ? others : others.reverse()));
      }
    }
  }
  for (const row of layers.rows) row.sort((a, b) => discovery[a] - discovery[b]);
  number(layers.rows, place);
}

/** @type {(row: number[], arcs: Arc[][], place: number[], widths: number[]) => void} */
function sortRow(row, arcs, place, widths) {
  if (row.length < 2) return;
  const keys = row.map((node) => barycentre(arcs[node], place, widths) ?? place[node]);
  if (keys.every((key, at) => at === 0 || keys[at - 1] <= key)) return;
  const order = row.map((_, at) => at).sort((a, b) => keys[a] - keys[b]);
  const before = [...row];
  order.forEach((from, at) => {
    row[at] = before[from];
    place[row[at]] = at;
  });
}

/** @type {(arcs: Arc[], place: number[], widths: number[]) => number | null} ports of one node differ by less than a place */
function barycentre(arcs, place, widths) {
  if (arcs.length === 0) return null;
  let sum = 0;
  for (const { other, port } of arcs) sum += place[other] + (0.8 * port) / Math.max(widths[other], 1);
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
      if (gap > 0 || (gap === 0 && a.port > b.port)) count += 1;
    }
  }
  return count;
}

/**
 * @param {Layers} layers
 * @param {number[]} place
 * @returns {number} crossings between all neighbouring ranks; lines that meet at an end don't cross there
 */
function crossings(layers, place) {
  let total = 0;
  for (let rank = 1; rank < layers.rows.length; rank += 1) {
    /** @type {Arc[]} */
    const arcs = [];
    for (const node of layers.rows[rank]) {
      const own = layers.up[node];
      if (own.length < 2) arcs.push(...own);
      else arcs.push(...[...own].sort((a, b) => a.ownPort - b.ownPort || compareEnds(a, b, place)));
    }
    if (arcs.length > 1) total += inversions(upperOrder(arcs, place));
  }
  return total;
}

/** @type {(a: Arc, b: Arc, place: number[]) => number} */
const compareEnds = (a, b, place) => place[a.other] - place[b.other] || a.port - b.port;

/** @type {(arcs: Arc[], place: number[]) => number[]} per arc, from left to right: which end it has at the rank above, likewise counted */
function upperOrder(arcs, place) {
  const order = arcs.map((_, at) => at).sort((a, b) => compareEnds(arcs[a], arcs[b], place));
  const ends = new Array(arcs.length).fill(0);
  for (let i = 1; i < order.length; i += 1) {
    const isNew = compareEnds(arcs[order[i]], arcs[order[i - 1]], place) !== 0;
    ends[order[i]] = ends[order[i - 1]] + (isNew ? 1 : 0);
  }
  return ends;
}

/** @type {(ends: number[]) => number} pairs in falling order, counted with a Fenwick tree */
function inversions(ends) {
  const size = ends.length;
  const tree = new Array(size + 1).fill(0);
  let total = 0;
  ends.forEach((end, seen) => {
    let notRight = 0;
    for (let i = end + 1; i > 0; i -= i & -i) notRight += tree[i];
    total += seen - notRight;
    for (let i = end + 1; i <= size; i += i & -i) tree[i] += 1;
  });
  return total;
}
