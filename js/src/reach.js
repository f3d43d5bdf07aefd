/**
 * Which routes lead to a box and which lead away from it. Pure.
 *
 * @typedef {import("./types.js").Scene} Scene
 */

/**
 * @param {Scene} scene
 * @param {Iterable<number>} starts indices of boxes; everything inside an open one counts as well
 * @returns {{upstream: Map<number, number>, downstream: Map<number, number>}} index of a route to the number of boxes
 *   between it and the nearest start
 */
export function reach(scene, starts) {
  const isStart = new Uint8Array(scene.boxes.length);
  let count = 0;
  for (const index of starts) {
    isStart[index] = 1;
    count += 1;
  }
  if (count === 0) return { upstream: new Map(), downstream: new Map() };
  scene.boxes.forEach((box, index) => {
    if (box.parent >= 0 && isStart[box.parent]) isStart[index] = 1;
  });
  /** @type {number[][]} */
  const into = scene.boxes.map(() => []);
  /** @type {number[][]} */
  const outOf = scene.boxes.map(() => []);
  scene.routes.forEach((route, index) => {
    into[route.head]?.push(index);
    outOf[route.tail]?.push(index);
  });
  return {
    upstream: walk(scene, isStart, into, (route) => route.tail),
    downstream: walk(scene, isStart, outOf, (route) => route.head),
  };
}

/**
 * @param {Scene} scene
 * @param {Uint8Array} isStart
 * @param {number[][]} routesAt
 * @param {(route: import("./types.js").Route) => number} next
 */
function walk(scene, isStart, routesAt, next) {
  /** @type {Map<number, number>} */
  const steps = new Map();
  const isSeen = Uint8Array.from(isStart);
  let level = scene.boxes.map((_, index) => index).filter((index) => isStart[index]);
  for (let distance = 0; level.length > 0; distance += 1) {
    /** @type {number[]} */
    const following = [];
    for (const index of level.flatMap((box) => routesAt[box] ?? [])) {
      const target = next(/** @type {import("./types.js").Route} */ (scene.routes[index]));
      const isWithin = distance === 0 && isStart[target];
      if (!isWithin && !steps.has(index)) steps.set(index, distance);
      if (isSeen[target]) continue;
      isSeen[target] = 1;
      following.push(target);
    }
    level = following;
  }
  return steps;
}
