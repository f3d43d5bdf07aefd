/** Counts what is wrong with a scene: for tests and for the comparison with other layouts. */

/**
 * @typedef {import("../src/types.js").Scene} Scene
 * @typedef {import("../src/types.js").Box} Box
 * @typedef {{x: number, y: number, width: number, height: number}} Rect
 * @typedef {{route: number, tensor: string, x0: number, y0: number, x1: number, y1: number}} Segment
 */

const SAMPLES = 8;
const CELL = 64;
/** Ignored at the rims, in px: lines end on borders, and numbers are rounded. */
const RIM = 1.5;

/**
 * @param {Scene} scene
 * @returns {{edgesThroughBoxes: number, boxOverlaps: number, labelOverlaps: number, crossings: number, labels: number}}
 */
export function measureQuality(scene) {
  const segments = segmentsOf(scene);
  return {
    edgesThroughBoxes: edgesThroughBoxes(scene, segments),
    boxOverlaps: boxOverlaps(scene),
    labelOverlaps: labelOverlaps(scene),
    crossings: crossings(segments),
    labels: scene.routes.filter((route) => route.label).length,
  };
}

/** @param {number[]} points first point, then triples of control points @returns {number[]} points along the curve */
export function sampleCurve(points) {
  const result = [points[0], points[1]];
  for (let i = 0; i + 7 < points.length; i += 6) {
    const [x0, y0, x1, y1, x2, y2, x3, y3] = points.slice(i, i + 8);
    const isStraight = (x0 === x1 && x1 === x2 && x2 === x3) || (y0 === y1 && y1 === y2 && y2 === y3);
    for (let k = isStraight ? SAMPLES : 1; k <= SAMPLES; k += 1) {
      const t = k / SAMPLES;
      const s = 1 - t;
      result.push(s * s * s * x0 + 3 * s * s * t * x1 + 3 * s * t * t * x2 + t * t * t * x3);
      result.push(s * s * s * y0 + 3 * s * s * t * y1 + 3 * s * t * t * y2 + t * t * t * y3);
    }
  }
  return result;
}

/** @param {Scene} scene @returns {Segment[]} */
function segmentsOf(scene) {
  return scene.routes.flatMap((route, index) => {
    const link = scene.visible.links[route.link];
    const tensor = `${link.tailNode} ${link.tailSlot}`;
    const line = route.curve === "bezier" ? sampleCurve(route.points) : route.points;
    const segments = [];
    for (let i = 0; i + 3 < line.length; i += 2) {
      segments.push({ route: index, tensor, x0: line[i], y0: line[i + 1], x1: line[i + 2], y1: line[i + 3] });
    }
    return segments;
  });
}

/** A grid of cells, in which neighbours are found without looking at everything. @template T */
class Grid {
  constructor() {
    /** @type {Map<string, T[]>} */
    this.cells = new Map();
  }

  /** @param {Rect} rect @returns {string[]} */
  keys({ x, y, width, height }) {
    const keys = [];
    for (let cx = Math.floor(x / CELL); cx <= Math.floor((x + width) / CELL); cx += 1) {
      for (let cy = Math.floor(y / CELL); cy <= Math.floor((y + height) / CELL); cy += 1) keys.push(`${cx} ${cy}`);
    }
    return keys;
  }

  /** @param {Rect} rect @param {T} value */
  add(rect, value) {
    for (const key of this.keys(rect)) {
      const list = this.cells.get(key);
      if (list) list.push(value);
      else this.cells.set(key, [value]);
    }
  }

  /** @param {Rect} rect @returns {Set<T>} */
  near(rect) {
    return new Set(this.keys(rect).flatMap((key) => this.cells.get(key) ?? []));
  }
}

/** @type {(segment: Segment) => Rect} */
const boundsOf = ({ x0, y0, x1, y1 }) => ({
  x: Math.min(x0, x1),
  y: Math.min(y0, y1),
  width: Math.abs(x1 - x0),
  height: Math.abs(y1 - y0),
});

/** @type {(a: Rect, b: Rect, rim?: number) => boolean} */
const overlap = (a, b, rim = 0.5) =>
  a.x + rim < b.x + b.width && b.x + rim < a.x + a.width && a.y + rim < b.y + b.height && b.y + rim < a.y + a.height;

/** @param {Scene} scene @param {Segment[]} segments @returns {number} pairs of an edge and a closed box that it passes through */
function edgesThroughBoxes(scene, segments) {
  /** @type {Grid<number>} */
  const grid = new Grid();
  scene.boxes.forEach((box, index) => {
    if (!box.item.isOpen) grid.add(box, index);
  });
  const found = new Set();
  for (const segment of segments) {
    const { tail, head } = scene.routes[segment.route];
    for (const index of grid.near(boundsOf(segment))) {
      if (index === tail || index === head) continue;
      if (meetsInside(segment, scene.boxes[index])) found.add(`${segment.route} ${index}`);
    }
  }
  return found.size;
}

/** @type {(segment: Segment, box: Rect) => boolean} clipped to the box without its rim (Liang and Barsky, 1984) */
function meetsInside({ x0, y0, x1, y1 }, box) {
  let start = 0;
  let end = 1;
  const sides = [
    [x0 - x1, x0 - box.x - RIM],
    [x1 - x0, box.x + box.width - RIM - x0],
    [y0 - y1, y0 - box.y - RIM],
    [y1 - y0, box.y + box.height - RIM - y0],
  ];
  for (const [p, q] of sides) {
    if (p === 0 && q < 0) return false;
    if (p < 0) start = Math.max(start, q / p);
    if (p > 0) end = Math.min(end, q / p);
  }
  return start <= end;
}

/** @param {Scene} scene @returns {number} siblings that overlap, and boxes that leave the box around them */
function boxOverlaps({ boxes }) {
  /** @type {Map<number, Grid<number>>} */
  const grids = new Map();
  let count = 0;
  boxes.forEach((box, index) => {
    const grid = grids.get(box.parent) ?? new Grid();
    grids.set(box.parent, grid);
    for (const other of grid.near(box)) if (overlap(box, boxes[other])) count += 1;
    grid.add(box, index);
    const outer = boxes[box.parent];
    if (outer && !contains(outer, box)) count += 1;
  });
  return count;
}

/** @type {(outer: Box, inner: Box) => boolean} below the title strip too */
const contains = (outer, inner) =>
  inner.x >= outer.x &&
  inner.y >= outer.y + outer.headerHeight &&
  inner.x + inner.width <= outer.x + outer.width &&
  inner.y + inner.height <= outer.y + outer.height;

/** @param {Scene} scene @returns {number} labels on closed boxes, on title strips or on each other */
function labelOverlaps(scene) {
  /** @type {Grid<Rect>} */
  const grid = new Grid();
  for (const box of scene.boxes) {
    const rect = box.item.isOpen ? { x: box.x, y: box.y, width: box.width, height: box.headerHeight } : box;
    grid.add(rect, rect);
  }
  let count = 0;
  for (const { label } of scene.routes) {
    if (!label) continue;
    for (const other of grid.near(label)) if (overlap(label, other)) count += 1;
    grid.add(label, label);
  }
  return count;
}

/**
 * @param {Segment[]} segments
 * @returns {number} pairs of different tensors that cross, counted once per place; edges of one tensor may share their way
 */
function crossings(segments) {
  /** @type {Grid<number>} */
  const grid = new Grid();
  const found = new Set();
  segments.forEach((segment, index) => {
    const bounds = boundsOf(segment);
    for (const other of grid.near(bounds)) {
      const place = crossingPlace(segment, segments[other]);
      if (place === null || segment.tensor === segments[other].tensor) continue;
      const pair = [segment.tensor, segments[other].tensor].sort().join("|");
      found.add(`${pair} ${Math.round(place.x / 12)} ${Math.round(place.y / 12)}`);
    }
    grid.add(bounds, index);
  });
  return found.size;
}

/** @type {(a: Segment, b: Segment) => {x: number, y: number} | null} */
function crossingPlace(a, b) {
  const [ax, ay, bx, by] = [a.x1 - a.x0, a.y1 - a.y0, b.x1 - b.x0, b.y1 - b.y0];
  const cross = ax * by - ay * bx;
  if (Math.abs(cross) < 1e-9) return null;
  const t = ((b.x0 - a.x0) * by - (b.y0 - a.y0) * bx) / cross;
  const u = ((b.x0 - a.x0) * ay - (b.y0 - a.y0) * ax) / cross;
  const isInside = t > 1e-6 && t < 1 - 1e-6 && u > 1e-6 && u < 1 - 1e-6;
  return isInside ? { x: a.x0 + t * ax, y: a.y0 + t * ay } : null;
}
