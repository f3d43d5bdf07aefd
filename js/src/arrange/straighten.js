/**
 * Takes needless turns out of edges that pass several ranks: each edge keeps its place between its neighbours on every
 * rank, so nothing new is crossed, and is drawn upright for as long as that place allows. Pure.
 *
 * @typedef {import("./arrange.js").ScopeTask} ScopeTask
 * @typedef {import("../engine/ranks.js").Solution} Solution
 * @typedef {{edge: number, at: number, left: number, right: number}} Slot one thing on a rank; `edge` is -1 for a child,
 *   `at` the number of the bend
 */

/** Room in px that a passing edge keeps from a child, and from another edge. */
const CLEARANCE = 9;
const LANE_SEPARATION = 9;
const ROUNDS = 2;

/**
 * @param {ScopeTask} task
 * @param {Solution} solution
 * @param {number[][]} bends per edge of the task
 * @param {{tails: number[], heads: number[]}} ends x where each edge starts and ends
 * @param {(end: number, isTail: boolean) => number} nodeOf
 * @returns {number[][]}
 */
export function straighten(task, solution, bends, ends, nodeOf) {
  if (bends.every((line) => line.length === 0)) return bends;
  const result = bends.map((line) => [...line]);
  const rows = slotRows(task, solution, result, nodeOf);
  for (const row of rows) clearOverlaps(row, result);
  const passing = result.map((_, edge) => edge).filter((edge) => result[edge].length > 0);
  passing.sort((a, b) => result[b].length - result[a].length);
  const placeOf = result.map(() => /** @type {{row: Slot[], place: number}[]} */ ([]));
  for (const row of rows) row.forEach(({ edge, at }, place) => edge >= 0 && (placeOf[edge][at] = { row, place }));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const edge of passing) {
      const rooms = result[edge].map((_, at) => {
        const { row, place } = placeOf[edge][at];
        return roomOf(row, place, result);
      });
      const line = straightest(rooms, result[edge], ends.tails[edge], ends.heads[edge]);
      line.forEach((x, at) => (result[edge][at] = x));
    }
  }
  return result;
}

/** @type {(task: ScopeTask, solution: Solution, bends: number[][], nodeOf: (end: number, isTail: boolean) => number) => Slot[][]} */
function slotRows(task, solution, bends, nodeOf) {
  const count = solution.ranks.reduce((most, rank) => Math.max(most, rank + 1), 0);
  const rows = Array.from({ length: count }, () => /** @type {Slot[]} */ ([]));
  task.blocks.forEach((block, node) => {
    const [left, right] = [solution.xs[node] - block.width / 2, solution.xs[node] + block.width / 2];
    rows[solution.ranks[node]].push({ edge: -1, at: 0, left, right });
  });
  task.edges.forEach((edge, index) => {
    const from = solution.ranks[nodeOf(edge.tail, true)];
    bends[index].forEach((x, at) => rows[from + at + 1]?.push({ edge: index, at, left: x, right: x }));
  });
  for (const row of rows) row.sort((a, b) => a.left + a.right - b.left - b.right);
  return rows;
}

/** Moves bends that an engine has put into a child to the nearer side of it. @type {(row: Slot[], bends: number[][]) => void} */
function clearOverlaps(row, bends) {
  const isSorted = () =>
    row.every((slot, place) => place === 0 || middleOf(row[place - 1], bends) <= middleOf(slot, bends));
  for (const slot of row) {
    if (slot.edge < 0) continue;
    const x = bends[slot.edge][slot.at];
    const hit = row.find((other) => other.edge < 0 && x > other.left - CLEARANCE && x < other.right + CLEARANCE);
    if (!hit) continue;
    const isLeft = x - hit.left < hit.right - x;
    bends[slot.edge][slot.at] = isLeft ? hit.left - CLEARANCE : hit.right + CLEARANCE;
  }
  if (!isSorted()) row.sort((a, b) => middleOf(a, bends) - middleOf(b, bends));
}

/** @type {(slot: Slot, bends: number[][]) => number} */
const middleOf = (slot, bends) => (slot.edge < 0 ? (slot.left + slot.right) / 2 : bends[slot.edge][slot.at]);

/** @type {(row: Slot[], place: number, bends: number[][]) => {left: number, right: number}} between which x the bend may lie */
function roomOf(row, place, bends) {
  const before = row[place - 1];
  const after = row[place + 1];
  const left = !before
    ? -Infinity
    : before.edge < 0
      ? before.right + CLEARANCE
      : bends[before.edge][before.at] + LANE_SEPARATION;
  const right = !after
    ? Infinity
    : after.edge < 0
      ? after.left - CLEARANCE
      : bends[after.edge][after.at] - LANE_SEPARATION;
  const x = bends[row[place].edge][row[place].at];
  // Where neighbours stand too close already, the bend stays.
  return left <= right ? { left, right } : { left: x, right: x };
}

/**
 * @param {{left: number, right: number}[]} rooms per rank that the edge passes
 * @param {number[]} line its x so far
 * @param {number} tailX
 * @param {number} headX
 * @returns {number[]} with as few turns as the rooms allow
 */
function straightest(rooms, line, tailX, headX) {
  /** @type {number[]} */
  const result = [];
  let from = 0;
  while (from < rooms.length) {
    let { left, right } = rooms[from];
    let to = from + 1;
    while (to < rooms.length && Math.max(left, rooms[to].left) <= Math.min(right, rooms[to].right)) {
      left = Math.max(left, rooms[to].left);
      right = Math.min(right, rooms[to].right);
      to += 1;
    }
    const wishes = [from === 0 ? tailX : result[from - 1], to === rooms.length ? headX : NaN];
    const wish = wishes.find((x) => x >= left && x <= right) ?? medianOf(line.slice(from, to));
    const x = Math.min(Math.max(wish, left), right);
    for (; from < to; from += 1) result.push(x);
  }
  return result;
}

/** @param {number[]} values @returns {number} */
const medianOf = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
