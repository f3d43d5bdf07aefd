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
  const partners = to.routes.map((route) => {
    const partner = fromRoutes.get(routeKey(to, route));
    return partner && partner.curve === route.curve && partner.points.length === route.points.length ? partner : null;
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
    const routes = to.routes.map((route, index) => movedRoute(route, partners[index] ?? null, t));
    const routeAlpha = Float32Array.from(partners, (partner) => (partner ? 1 : appearing));
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

/** @type {(route: Route, partner: Route | null, t: number) => Route} */
function movedRoute(route, partner, t) {
  if (!partner) return route;
  const points = route.points.map((value, i) => {
    const start = /** @type {number} */ (partner.points[i]);
    return start + (value - start) * t;
  });
  if (!route.label || !partner.label) return { ...route, points };
  const x = partner.label.x + (route.label.x - partner.label.x) * t;
  const y = partner.label.y + (route.label.y - partner.label.y) * t;
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
