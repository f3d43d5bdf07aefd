/**
 * Steps of the keyboard: along the data (up, down) and along the hierarchy (left, right). Pure.
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./types.js").Box} Box
 */

/**
 * @param {Scene} scene
 * @param {number} index of a box; -1 where nothing is selected
 * @param {"up"|"down"|"left"|"right"} direction
 * @returns {number} index of the next box; -1 where there is none
 */
export function step(scene, index, direction) {
  const box = scene.boxes[index];
  if (!box) return firstInside(scene, -1);
  if (direction === "left") return box.parent;
  if (direction === "right") return box.item.isOpen ? firstInside(scene, index) : -1;
  const inside = descendants(scene, index);
  const isDown = direction === "down";
  const neighbours = scene.routes
    .filter((route) =>
      isDown ? inside.has(route.tail) && !inside.has(route.head) : inside.has(route.head) && !inside.has(route.tail),
    )
    .map((route) => (isDown ? route.head : route.tail));
  return nearest(scene, box, neighbours, isDown) ?? sibling(scene, index, isDown);
}

/** @type {(scene: Scene, index: number) => Set<number>} */
function descendants(scene, index) {
  const found = new Set([index]);
  scene.boxes.forEach((box, at) => {
    if (found.has(box.parent)) found.add(at);
  });
  return found;
}

/** @type {(scene: Scene, parent: number) => number} the topmost, then leftmost box */
function firstInside(scene, parent) {
  let best = -1;
  scene.boxes.forEach((box, index) => {
    const current = scene.boxes[best];
    if (box.parent === parent && (!current || box.y < current.y || (box.y === current.y && box.x < current.x)))
      best = index;
  });
  return best;
}

/**
 * The neighbour that is closest in the direction of the step: a skip connection is no step while there is a next layer.
 *
 * @type {(scene: Scene, box: Box, candidates: number[], isDown: boolean) => number | null}
 */
function nearest(scene, box, candidates, isDown) {
  const cost = (/** @type {number} */ index) => {
    const other = /** @type {Box} */ (scene.boxes[index]);
    const rise = isDown ? other.y - (box.y + box.height) : box.y - (other.y + other.height);
    const side = Math.abs(other.x + other.width / 2 - box.x - box.width / 2);
    return Math.abs(rise) + (rise < 0 ? 5000 : 0) + side * 0.5;
  };
  return candidates.reduce(
    (/** @type {number | null} */ best, index) => (best === null || cost(index) < cost(best) ? index : best),
    null,
  );
}

/** @type {(scene: Scene, index: number, isDown: boolean) => number} the next box of the same module, in execution order */
function sibling(scene, index, isDown) {
  const parent = scene.boxes[index]?.parent;
  const siblings = scene.boxes.map((_, at) => at).filter((at) => scene.boxes[at]?.parent === parent);
  return siblings[siblings.indexOf(index) + (isDown ? 1 : -1)] ?? -1;
}
