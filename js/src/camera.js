/**
 * Where the camera goes: transforms from scene to stage that show something in the room between the panels. Pure.
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./types.js").Box} Box
 * @typedef {import("./interact.js").Transform} Transform
 * @typedef {{left: number, top: number, width: number, height: number}} Room CSS px of the stage
 * @typedef {{x: number, y: number, width: number, height: number}} Area px of the scene
 */

/** Text is read with ease from this scale on, and without it from that. */
const READABLE_SCALE = 0.72;
const LEGIBLE_SCALE = 0.54;
const LARGEST_FIT = 1.25;
const CLOSEST = 1.4;
const LARGEST_CENTRED = 1.6;
const MARGIN = 12;

/** @param {number} k scale */
export const isReadable = (k) => k >= LEGIBLE_SCALE;

/** @type {(area: Area, room: Room, largest: number) => Transform} */
function viewOf(area, room, largest) {
  const k = Math.min(room.width / Math.max(area.width, 1), room.height / Math.max(area.height, 1), largest);
  const x = room.left + room.width / 2 - (area.x + area.width / 2) * k;
  return { k, x, y: room.top + room.height / 2 - (area.y + area.height / 2) * k };
}

/** @type {(scene: Scene, room: Room) => Transform} */
export function wholeView(scene, room) {
  return viewOf({ x: 0, y: 0, width: scene.width, height: scene.height }, room, LARGEST_FIT);
}

/**
 * The whole where it can be read, else its start in a readable size.
 *
 * @param {Scene} scene
 * @param {Room} room
 * @param {number} index of the box to start at; -1 for the beginning
 * @returns {Transform}
 */
export function firstView(scene, room, index) {
  const whole = wholeView(scene, room);
  if (whole.k >= READABLE_SCALE) return whole;
  const box = scene.boxes[index];
  if (box) return contextView(scene, box, room, Math.min(Math.max(whole.k, READABLE_SCALE), 1));
  const k = Math.min(Math.max(room.width / scene.width, READABLE_SCALE), 1);
  const { left, right, start } = beginning(scene, room.height / k);
  const centre = room.left + room.width / 2;
  if ((right - left) * k <= room.width) return { k, x: centre - ((left + right) / 2) * k, y: room.top };
  // Too wide: from where reading starts, without leaving room empty that could be used.
  const x = Math.max(Math.min(centre - start * k, room.left - left * k), room.left + room.width - right * k);
  return { k, x, y: room.top };
}

/** @type {(scene: Scene, box: Box, room: Room, k: number) => Transform} a box with as much around it as fits: no room is left empty */
function contextView(scene, box, room, k) {
  const { x, y } = middleView(box, room, k);
  return {
    k,
    x: filling(x, scene.width * k, room.left, room.width),
    y: filling(y, scene.height * k, room.top, room.height),
  };
}

/** @type {(start: number, size: number, roomStart: number, room: number) => number} where something begins, moved so that it fills the room */
function filling(start, size, roomStart, room) {
  if (size <= room) return roomStart + (room - size) / 2;
  return Math.min(Math.max(start, roomStart + room - size), roomStart);
}

/** @type {(scene: Scene, depth: number) => {left: number, right: number, start: number}} extent of what begins above a depth, and the middle of the topmost box */
function beginning(scene, depth) {
  const boxes = scene.boxes.filter((box) => box.parent < 0 && box.y < depth);
  const first = boxes.reduce((top, box) => (box.y < top.y ? box : top), boxes[0]);
  return {
    left: boxes.reduce((least, box) => Math.min(least, box.x), scene.width),
    right: boxes.reduce((most, box) => Math.max(most, box.x + box.width), 0),
    start: first ? first.x + first.width / 2 : scene.width / 2,
  };
}

/** @type {(box: Box, room: Room) => Transform} a box as large as it can be read */
export function closeView(box, room) {
  return viewOf({ x: box.x - 30, y: box.y - 30, width: box.width + 60, height: box.height + 60 }, room, CLOSEST);
}

/** @type {(box: Box, room: Room) => Transform} a box in its own size, what follows it below */
export function readingView(box, room) {
  const x = room.left + room.width / 2 - (box.x + box.width / 2);
  const isTall = box.height > room.height * 0.6;
  const y = isTall ? room.top + 20 : room.top + Math.min((room.height - box.height) / 2, room.height * 0.3);
  return { k: 1, x, y: y - box.y };
}

/** @type {(box: Box, room: Room, now: Transform) => Transform} a box out from under the panels, moved only as far as needed */
export function uncoveredView(box, room, now) {
  const dx = overhang(box.x * now.k + now.x, box.width * now.k, room.left + MARGIN, room.width - 2 * MARGIN);
  const dy = overhang(box.y * now.k + now.y, box.height * now.k, room.top + MARGIN, room.height - 2 * MARGIN);
  return { k: now.k, x: now.x + dx, y: now.y + dy };
}

/** @type {(box: Box, room: Room, now: Transform) => Transform} a box in the middle, in a readable size */
export function centredView(box, room, now) {
  return middleView(box, room, Math.min(Math.max(now.k, READABLE_SCALE), LARGEST_CENTRED));
}

/** @type {(box: Box, room: Room, k: number) => Transform} the title at the top, where the box is higher than the room */
function middleView(box, room, k) {
  const x = room.left + room.width / 2 - (box.x + box.width / 2) * k;
  const fits = box.height * k <= room.height;
  const y = fits ? room.top + room.height / 2 - (box.y + box.height / 2) * k : room.top + 10 - box.y * k;
  return { k, x, y };
}

/** @type {(start: number, size: number, roomStart: number, room: number) => number} how far to move so that it is inside */
function overhang(start, size, roomStart, room) {
  if (size > room) {
    const isCovering = start <= roomStart && start + size >= roomStart + room;
    return isCovering ? 0 : roomStart - start;
  }
  if (start < roomStart) return roomStart - start;
  if (start + size > roomStart + room) return roomStart + room - start - size;
  return 0;
}

/**
 * A point that is in both scenes and must not move: the corner of the named box, else of the box nearest to the middle of
 * the view.
 *
 * @type {(from: Scene, to: Scene, name: string | null, centre: {x: number, y: number}) => (t: number) => {x: number, y: number}}
 */
export function anchorFinder(from, to, name, centre) {
  const toByName = new Map(to.boxes.map((box) => [box.item.name, box]));
  const pairs = from.boxes.flatMap((box) => {
    const now = toByName.get(box.item.name);
    return now ? [{ box, now }] : [];
  });
  const named = pairs.find(({ box }) => box.item.name === name);
  const distance = (/** @type {Box} */ box) =>
    Math.hypot(box.x + box.width / 2 - centre.x, box.y + Math.min(box.height, 40) / 2 - centre.y);
  const nearest = pairs.reduce(
    (/** @type {{box: Box, now: Box} | null} */ best, pair) =>
      best === null || distance(pair.box) < distance(best.box) ? pair : best,
    null,
  );
  const pair = named ?? nearest;
  if (!pair) return () => ({ x: 0, y: 0 });
  return (t) => ({ x: pair.box.x + (pair.now.x - pair.box.x) * t, y: pair.box.y + (pair.now.y - pair.box.y) * t });
}
