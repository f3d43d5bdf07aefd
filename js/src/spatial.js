/**
 * Where boxes and routes of a scene lie, packed for questions that are asked on every frame: what is in this rectangle,
 * what is under this point. Pure.
 *
 * @typedef {import("./types.js").Scene} Scene
 *
 * @typedef {Object} Spatial
 * @property {Scene} scene
 * @property {Int32Array} order indices of boxes, each followed by everything inside it
 * @property {Int32Array} after position in `order` behind the last box inside
 * @property {number[][]} children indices of the boxes in each box
 * @property {Float32Array} boxes left, top, right, bottom of each position in `order`, with what sticks out
 * @property {Float32Array} routes left, top, right, bottom of each route, label included
 * @property {Int32Array} ground depth of the panel that each route's label lies on; -1 for the background
 * @property {Map<string, number>} indexByName name of an item to the index of its box
 * @property {Int32Array[]} routesOf routes that touch each box
 *
 * @typedef {{left: number, top: number, right: number, bottom: number}} Area
 */

/** How far shadows of stacks, marks and thick lines reach beyond a box or a route, in px. */
const REACH = 10;

/**
 * @param {Scene} scene
 * @returns {Spatial}
 */
export function buildSpatial(scene) {
  const { order, after, children } = nestedOrder(scene);
  const boxes = new Float32Array(order.length * 4);
  for (let position = 0; position < order.length; position += 1) {
    const { x, y, width, height } = scene.boxes[order[position]];
    const at = position * 4;
    boxes[at] = x - REACH;
    boxes[at + 1] = y - REACH;
    boxes[at + 2] = x + width + REACH;
    boxes[at + 3] = y + height + REACH;
  }
  const indexByName = new Map();
  scene.boxes.forEach((box, index) => indexByName.set(box.item.name, index));
  const ground = Int32Array.from(scene.routes, (route) => groundDepth(scene, route));
  const routesOf = routesByBox(scene);
  return { scene, order, after, children, boxes, routes: routeAreas(scene), ground, indexByName, routesOf };
}

/** @param {Scene} scene */
function nestedOrder(scene) {
  const count = scene.boxes.length;
  const top = /** @type {number[]} */ ([]);
  const children = /** @type {number[][]} */ (Array.from({ length: count }, () => []));
  scene.boxes.forEach((box, index) => (children[box.parent] ?? top).push(index));
  const order = new Int32Array(count);
  const after = new Int32Array(count);
  let position = 0;
  // An explicit stack: models nest deeper than some engines' call stacks like.
  const stack = [{ box: -1, start: -1, next: 0 }];
  while (stack.length > 0) {
    const last = /** @type {{box: number, start: number, next: number}} */ (stack[stack.length - 1]);
    const child = (children[last.box] ?? top)[last.next];
    if (child === undefined) {
      if (last.start >= 0) after[last.start] = position;
      stack.pop();
      continue;
    }
    last.next += 1;
    order[position] = child;
    stack.push({ box: child, start: position, next: 0 });
    position += 1;
  }
  return { order, after, children };
}

/** @param {Scene} scene */
function routeAreas(scene) {
  const areas = new Float32Array(scene.routes.length * 4);
  scene.routes.forEach((route, index) => {
    const { points, label } = route;
    let [left, top] = points;
    let [right, bottom] = points;
    for (let i = 2; i + 1 < points.length; i += 2) {
      const x = points[i];
      const y = points[i + 1];
      if (x < left) left = x;
      else if (x > right) right = x;
      if (y < top) top = y;
      else if (y > bottom) bottom = y;
    }
    if (label) {
      left = Math.min(left, label.x);
      right = Math.max(right, label.x + label.width);
      top = Math.min(top, label.y);
      bottom = Math.max(bottom, label.y + label.height);
    }
    const at = index * 4;
    areas[at] = left - REACH;
    areas[at + 1] = top - REACH;
    areas[at + 2] = right + REACH;
    areas[at + 3] = bottom + REACH;
  });
  return areas;
}

/**
 * @param {Scene} scene
 * @param {import("./types.js").Route} route
 */
function groundDepth(scene, route) {
  const { label } = route;
  if (!label) return -1;
  const x = label.x + label.width / 2;
  const y = label.y + label.height / 2;
  for (let index = route.tail, guard = 0; index >= 0 && guard < scene.boxes.length; guard += 1) {
    const box = /** @type {import("./types.js").Box} */ (scene.boxes[index]);
    if (box.item.isOpen && x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height)
      return box.item.depth;
    index = box.parent;
  }
  return -1;
}

/** @param {Scene} scene @returns {Int32Array[]} parts of one array */
function routesByBox({ boxes, routes }) {
  const ends = new Int32Array(boxes.length + 1);
  for (const { tail, head } of routes) {
    ends[tail + 1] += 1;
    if (head !== tail) ends[head + 1] += 1;
  }
  for (let box = 0; box < boxes.length; box += 1) ends[box + 1] += ends[box];
  const all = new Int32Array(ends[boxes.length]);
  const next = ends.slice();
  routes.forEach(({ tail, head }, index) => {
    all[next[tail]++] = index;
    if (head !== tail) all[next[head]++] = index;
  });
  return boxes.map((_, box) => all.subarray(ends[box], ends[box + 1]));
}

/**
 * Visit the boxes that touch an area, parents before children. Boxes whose larger side is below `smallest` are visited
 * as a whole: nothing inside them is. Nor is what is inside a box for which `visit` gives true.
 *
 * @param {Spatial} spatial
 * @param {Area} area
 * @param {number} smallest px of the scene
 * @param {(index: number, isWhole: boolean) => unknown} visit
 */
export function visitBoxes(spatial, area, smallest, visit) {
  const { order, after, boxes } = spatial;
  const limit = smallest + 2 * REACH;
  for (let position = 0; position < order.length;) {
    const at = position * 4;
    const left = /** @type {number} */ (boxes[at]);
    const top = /** @type {number} */ (boxes[at + 1]);
    const right = /** @type {number} */ (boxes[at + 2]);
    const bottom = /** @type {number} */ (boxes[at + 3]);
    const end = /** @type {number} */ (after[position]);
    if (right < area.left || left > area.right || bottom < area.top || top > area.bottom) {
      position = end;
      continue;
    }
    const isWhole = right - left < limit && bottom - top < limit;
    const isShut = visit(/** @type {number} */ (order[position]), isWhole) === true;
    position = isWhole || isShut ? end : position + 1;
  }
}

/**
 * Visit the routes that touch an area and are longer than `smallest` in one direction.
 *
 * @param {Spatial} spatial
 * @param {Area} area
 * @param {number} smallest px of the scene
 * @param {(index: number) => void} visit
 */
export function visitRoutes(spatial, area, smallest, visit) {
  const { routes } = spatial;
  const limit = smallest + 2 * REACH;
  for (let at = 0; at < routes.length; at += 4) {
    const left = /** @type {number} */ (routes[at]);
    const top = /** @type {number} */ (routes[at + 1]);
    const right = /** @type {number} */ (routes[at + 2]);
    const bottom = /** @type {number} */ (routes[at + 3]);
    if (right < area.left || left > area.right || bottom < area.top || top > area.bottom) continue;
    if (right - left < limit && bottom - top < limit) continue;
    visit(at / 4);
  }
}

/**
 * The innermost box under a point.
 *
 * @param {Spatial} spatial
 * @param {number} x px of the scene
 * @param {number} y px of the scene
 * @returns {number} index of the box; -1 for none
 */
export function boxAt(spatial, x, y) {
  const { order, after, scene } = spatial;
  let found = -1;
  for (let position = 0; position < order.length;) {
    const index = /** @type {number} */ (order[position]);
    const box = /** @type {import("./types.js").Box} */ (scene.boxes[index]);
    const isInside = x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height;
    if (isInside) found = index;
    position = isInside ? position + 1 : /** @type {number} */ (after[position]);
  }
  return found;
}

/** A curve is judged by so many straight pieces. */
const PIECES = 12;

/**
 * The route nearest to a point.
 *
 * @param {Spatial} spatial
 * @param {number} x px of the scene
 * @param {number} y px of the scene
 * @param {number} reach how far it may be, px of the scene
 * @returns {number} index of the route; -1 for none
 */
export function routeAt(spatial, x, y, reach) {
  let found = -1;
  let least = reach;
  visitRoutes(spatial, { left: x - reach, top: y - reach, right: x + reach, bottom: y + reach }, 0, (index) => {
    const distance = distanceTo(spatial.scene.routes[index], x, y);
    if (distance > least) return;
    least = distance;
    found = index;
  });
  return found;
}

/** @type {(route: import("./types.js").Route, x: number, y: number) => number} */
function distanceTo(route, x, y) {
  const { points, curve } = route;
  let least = Infinity;
  let [fromX, fromY] = points;
  const lineTo = (/** @type {number} */ toX, /** @type {number} */ toY) => {
    const [dx, dy] = [toX - fromX, toY - fromY];
    const length = dx * dx + dy * dy;
    const share = length === 0 ? 0 : Math.min(Math.max(((x - fromX) * dx + (y - fromY) * dy) / length, 0), 1);
    least = Math.min(least, Math.hypot(fromX + share * dx - x, fromY + share * dy - y));
    [fromX, fromY] = [toX, toY];
  };
  if (curve === "line") for (let i = 2; i < points.length; i += 2) lineTo(points[i], points[i + 1]);
  for (let i = 2; curve === "bezier" && i + 5 < points.length; i += 6) {
    const [startX, startY] = [fromX, fromY];
    for (let piece = 1; piece <= PIECES; piece += 1) {
      const t = piece / PIECES;
      const at = (/** @type {number} */ start, /** @type {number} */ axis) =>
        (1 - t) ** 3 * start +
        3 * (1 - t) ** 2 * t * points[i + axis] +
        3 * (1 - t) * t * t * points[i + 2 + axis] +
        t ** 3 * points[i + 4 + axis];
      lineTo(at(startX, 0), at(startY, 1));
    }
  }
  return least;
}
