/**
 * The whole scene in a corner, with a window on what is in view. Click or drag moves the window.
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./theme.js").Palette} Palette
 * @typedef {import("./interact.js").Transform} Transform
 */
import { element } from "./dom.js";
import { levelFill } from "./theme.js";

const PADDING = 8;
/** Towers and strips are pulled together: the map may be this many times finer one way than the other. */
const MOST_SKEW = 10;

/**
 * @param {Document} document
 * @param {AbortSignal} signal
 * @param {(x: number, y: number) => void} onMove point of the scene to be in the middle
 */
export function createMinimap(document, signal, onMove) {
  const canvas = element(document, "canvas");
  const window = element(document, "div", { class: "window" });
  const box = element(document, "div", { class: "map", "aria-hidden": "true" }, [canvas, window]);
  let scale = { x: 1, y: 1, left: 0, top: 0 };
  const move = (/** @type {PointerEvent} */ event) => {
    if (event.buttons === 0) return;
    const corner = box.getBoundingClientRect();
    onMove((event.clientX - corner.left - scale.left) / scale.x, (event.clientY - corner.top - scale.top) / scale.y);
  };
  box.addEventListener(
    "pointerdown",
    (event) => {
      box.setPointerCapture?.(event.pointerId);
      move(event);
    },
    { signal },
  );
  box.addEventListener("pointermove", move, { signal });
  /** @type {((width: number, height: number) => void) | null} */
  let redraw = null;
  let drawnSize = "";
  /** Where the map has no size, as in a hidden tab, it is drawn when it has one. */
  const refresh = () => {
    const [width, height] = [box.clientWidth, box.clientHeight];
    if (redraw === null || width === 0 || height === 0 || drawnSize === `${width} ${height}`) return;
    drawnSize = `${width} ${height}`;
    redraw(width, height);
  };
  return {
    box,
    /** @type {(scene: Scene, palette: Palette, colourOf: (index: number) => string, ratio: number) => void} */
    draw: (scene, palette, colourOf, ratio) => {
      drawnSize = "";
      redraw = (width, height) => {
        scale = minimapScale(scene, width, height);
        drawScene(canvas, scene, palette, colourOf, { width, height, ratio, scale });
      };
      refresh();
    },
    /** @type {(transform: Transform, width: number, height: number, scene: Scene) => void} */
    follow: (transform, width, height, scene) => {
      refresh();
      const area = windowArea(transform, width, height, scene, scale, box.clientWidth, box.clientHeight);
      window.style.width = `${area.width}px`;
      window.style.height = `${area.height}px`;
      window.style.transform = `translate(${area.x}px, ${area.y}px)`;
      box.classList.toggle("idle", showsAll(transform, width, height, scene));
    },
  };
}

/**
 * @param {Transform} transform
 * @param {number} width of the stage, px
 * @param {number} height
 * @param {{width: number, height: number}} scene
 * @returns {boolean} whether all of the scene is in view, so that a map of it adds nothing
 */
export function showsAll({ x, y, k }, width, height, scene) {
  const slack = 1;
  return x >= -slack && y >= -slack && x + scene.width * k <= width + slack && y + scene.height * k <= height + slack;
}

/** @typedef {{x: number, y: number, left: number, top: number}} MapScale */

/**
 * @param {{width: number, height: number}} scene
 * @param {number} width px of the map
 * @param {number} height
 * @returns {MapScale}
 */
export function minimapScale(scene, width, height) {
  const fitX = (width - 2 * PADDING) / Math.max(scene.width, 1);
  const fitY = (height - 2 * PADDING) / Math.max(scene.height, 1);
  const x = Math.min(fitX, fitY * MOST_SKEW, 0.25);
  const y = Math.min(fitY, fitX * MOST_SKEW, 0.25);
  return { x, y, left: (width - scene.width * x) / 2, top: (height - scene.height * y) / 2 };
}

/**
 * @param {Transform} transform
 * @param {number} width of the stage, px
 * @param {number} height
 * @param {{width: number, height: number}} scene
 * @param {MapScale} scale
 * @param {number} mapWidth
 * @param {number} mapHeight
 */
export function windowArea(transform, width, height, scene, scale, mapWidth, mapHeight) {
  const clampX = (/** @type {number} */ x) => Math.min(Math.max(x, 2), mapWidth - 4);
  const clampY = (/** @type {number} */ y) => Math.min(Math.max(y, 2), mapHeight - 4);
  const left = clampX((-transform.x / transform.k) * scale.x + scale.left);
  const top = clampY((-transform.y / transform.k) * scale.y + scale.top);
  const right = clampX(((width - transform.x) / transform.k) * scale.x + scale.left);
  const bottom = clampY(((height - transform.y) / transform.k) * scale.y + scale.top);
  return { x: left, y: top, width: Math.max(right - left, 4), height: Math.max(bottom - top, 4) };
}

/** @type {(canvas: HTMLCanvasElement, scene: Scene, palette: Palette, colourOf: (index: number) => string, size: {width: number, height: number, ratio: number, scale: MapScale}) => void} */
function drawScene(canvas, scene, palette, colourOf, { width, height, ratio, scale }) {
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  if (!context) return;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const holdsModules = new Set(scene.boxes.flatMap(({ item, parent }) => (item.kind === "node" ? [] : [parent])));
  // Operations in a module are too small to be told apart here; its colour tells more.
  const isGround = (/** @type {number} */ index) => scene.boxes[index].item.isOpen && holdsModules.has(index);
  scene.boxes.forEach((box, index) => {
    if (box.parent >= 0 && !isGround(box.parent)) return;
    const area = [
      scale.left + box.x * scale.x,
      scale.top + box.y * scale.y,
      Math.max(box.width * scale.x, 1.5),
      Math.max(box.height * scale.y, 1),
    ];
    context.fillStyle = isGround(index) ? levelFill(palette, box.item.depth) : colourOf(index);
    context.globalAlpha = isGround(index) ? 1 : 0.6;
    context.fillRect(.../** @type {[number, number, number, number]} */ (area));
  });
  context.globalAlpha = 1;
}
