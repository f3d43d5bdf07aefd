/**
 * From one scene to the next: what is in both moves, what is new appears with the box that it came out of, what is gone
 * fades with the box that it went into. Pure.
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./types.js").Box} Box
 * @typedef {import("./types.js").Route} Route
 * @typedef {{scene: Scene, boxAlpha: Float32Array, routeAlpha: Float32Array}} Moment
 */

/**
 * @param {Scene} from
 * @param {Scene} to
 * @returns {(t: number) => Moment} t from 0 to 1; the boxes of `to` come first, in its order
 */
export function between(from, to) {
  const fromIndex = new Map(from.boxes.map((box, index) => [box.item.name, index]));
  const toIndex = new Map(to.boxes.map((box, index) => [box.item.name, index]));
  const before = to.boxes.map((box) => startOf(from, to, fromIndex, box));
  const leaving = from.boxes
    .map((_, index) => index)
    .filter((index) => !toIndex.has(/** @type {Box} */ (from.boxes[index]).item.name));
  const ghosts = ghostBoxes(from, to, toIndex, leaving);
  const isNew = to.boxes.map((box) => !fromIndex.has(box.item.name));
  const fromRoutes = new Map(from.routes.map((route) => [routeKey(from, route), route]));
  const known = to.routes.map((route) => fromRoutes.get(routeKey(to, route)) ?? null);
  const starts = to.routes.map((route, index) => {
    const partner = known[index];
    const isAlike = partner?.curve === route.curve && partner.points.length === route.points.length;
    return isAlike ? partner : carried(route, to.boxes, /** @type {Frame[]} */ (before));
  });
  return (t) => {
    const boxes = to.boxes.map((box, index) => moved(box, /** @type {Frame} */ (before[index]), t));
    const gone = ghosts.map(({ box, end }) => moved({ ...box, ...end }, box, t));
    const appearing = smooth((t - 0.3) / 0.7);
    const vanishing = smooth(1 - t / 0.4);
    const boxAlpha = Float32Array.from([
      ...isNew.map((fresh) => (fresh ? appearing : 1)),
      ...ghosts.map(() => vanishing),
    ]);
    const routes = to.routes.map((route, index) => movedRoute(route, starts[index], t));
    const routeAlpha = Float32Array.from(known, (partner) => (partner ? 1 : appearing));
    return { scene: { ...to, boxes: [...boxes, ...gone], routes }, boxAlpha, routeAlpha };
  };
}

/** @typedef {{x: number, y: number, width: number, height: number}} Frame */

/** @type {(from: Scene, to: Scene, fromIndex: Map<string, number>, box: Box) => Frame} */
function startOf(from, to, fromIndex, box) {
  const own = fromIndex.get(box.item.name);
  if (own !== undefined) return /** @type {Box} */ (from.boxes[own]);
  const anchor = ancestorIn(to, fromIndex, box);
  if (!anchor) return box;
  const was = /** @type {Box} */ (from.boxes[anchor.index]);
  return { x: box.x - anchor.box.x + was.x, y: box.y - anchor.box.y + was.y, width: box.width, height: box.height };
}

/** The nearest box around `box` that the other scene has too. @type {(scene: Scene, other: Map<string, number>, box: Box) => {box: Box, index: number} | null} */
function ancestorIn(scene, other, box) {
  for (let index = box.parent; index >= 0;) {
    const around = /** @type {Box} */ (scene.boxes[index]);
    const found = other.get(around.item.name);
    if (found !== undefined) return { box: around, index: found };
    index = around.parent;
  }
  return null;
}

/** @type {(from: Scene, to: Scene, toIndex: Map<string, number>, leaving: number[]) => {box: Box, end: Frame}[]} */
function ghostBoxes(from, to, toIndex, leaving) {
  const position = new Map(leaving.map((index, order) => [index, to.boxes.length + order]));
  return leaving.map((index) => {
    const box = /** @type {Box} */ (from.boxes[index]);
    const anchor = ancestorIn(from, toIndex, box);
    const now = anchor ? /** @type {Box} */ (to.boxes[anchor.index]) : null;
    const shiftX = anchor && now ? now.x - anchor.box.x : 0;
    const shiftY = anchor && now ? now.y - anchor.box.y : 0;
    const parent = position.get(box.parent) ?? anchor?.index ?? -1;
    return {
      box: { ...box, parent },
      end: { x: box.x + shiftX, y: box.y + shiftY, width: box.width, height: box.height },
    };
  });
}

/** @type {(box: Box, start: Frame, t: number) => Box} */
function moved(box, start, t) {
  return {
    ...box,
    x: start.x + (box.x - start.x) * t,
    y: start.y + (box.y - start.y) * t,
    width: start.width + (box.width - start.width) * t,
    height: start.height + (box.height - start.height) * t,
  };
}

/**
 * A route with its ends where its boxes start from, so that it moves along with them.
 *
 * @type {(route: Route, boxes: Box[], before: Frame[]) => Route}
 */
function carried(route, boxes, before) {
  const { points, label } = route;
  const [tail, head] = [boxes[route.tail], boxes[route.head]];
  const [tailWas, headWas] = [before[route.tail], before[route.head]];
  if (!tail || !head) return route;
  const atTail = [
    tailWas.x - tail.x + (tailWas.width - tail.width) / 2,
    tailWas.y + tailWas.height - tail.y - tail.height,
  ];
  const atHead = [headWas.x - head.x + (headWas.width - head.width) / 2, headWas.y - head.y];
  const shift = (/** @type {number} */ axis, /** @type {number} */ share) =>
    atTail[axis] + (atHead[axis] - atTail[axis]) * share;
  const moved = points.map((value, i) => value + shift(i % 2, (i - (i % 2)) / Math.max(points.length - 2, 1)));
  if (!label) return { ...route, points: moved };
  const [x0, y0, x1, y1] = [...points.slice(0, 2), ...points.slice(-2)];
  const share = Math.hypot(label.x - x0, label.y - y0) < Math.hypot(label.x - x1, label.y - y1) ? 0 : 1;
  return { ...route, points: moved, label: { ...label, x: label.x + shift(0, share), y: label.y + shift(1, share) } };
}

/** @type {(route: Route, start: Route, t: number) => Route} */
function movedRoute(route, start, t) {
  const points = route.points.map((value, i) => start.points[i] + (value - start.points[i]) * t);
  if (!route.label || !start.label) return { ...route, points };
  const x = start.label.x + (route.label.x - start.label.x) * t;
  const y = start.label.y + (route.label.y - start.label.y) * t;
  return { ...route, points, label: { ...route.label, x, y } };
}

/** @type {(scene: Scene, route: Route) => string} */
function routeKey(scene, route) {
  const link = scene.visible.links[route.link];
  const name = (/** @type {number} */ index) => scene.boxes[index]?.item.name ?? "";
  return `${name(route.tail)}\n${name(route.head)}\n${link?.tailNode}\n${link?.tailSlot}`;
}

/** @param {number} t */
function smooth(t) {
  const clamped = Math.min(Math.max(t, 0), 1);
  return clamped * clamped * (3 - 2 * clamped);
}
