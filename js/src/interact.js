/**
 * Pointer, wheel, touch and keyboard on the map, as named actions. Knows neither the graph nor how it is drawn.
 *
 * @typedef {{x: number, y: number, k: number}} Transform
 * @typedef {"search"|"fit"|"toggle"|"up"|"down"|"left"|"right"|"help"|"escape"|"zoomIn"|"zoomOut"|"openAll"|"closeAll"|"outline"|"zoomTo"} ActionName
 *
 * @typedef {Object} Handlers
 * @property {(transform: Transform) => void} onTransform
 * @property {(x: number, y: number, event: MouseEvent) => void} onClick CSS px from the corner of the stage
 * @property {(x: number, y: number, event: MouseEvent) => void} onDoubleClick
 * @property {(point: {x: number, y: number} | null) => void} onHover null when the pointer has left
 * @property {() => [number, number]} size of the map on the screen, CSS px; d3-zoom would have the page laid out to know it
 * @property {() => [[number, number], [number, number]]} reachOf how far the map may be moved, in px of the scene
 */
import { easeCubicInOut } from "d3-ease";
import { select } from "d3-selection";
import "d3-transition";
import { zoom, zoomIdentity, zoomTransform } from "d3-zoom";

/** What the keys do, in the order of the help. @type {{keys: string[], action: ActionName, help: string, shown: string}[]} */
export const KEYS = [
  { keys: ["/"], action: "search", help: "search", shown: "/" },
  { keys: ["f", "F"], action: "fit", help: "fit the whole graph", shown: "f" },
  { keys: ["z", "Z"], action: "zoomTo", help: "zoom to the selection", shown: "z" },
  { keys: ["Enter", " "], action: "toggle", help: "open or close the selected module", shown: "Enter" },
  { keys: ["ArrowUp"], action: "up", help: "walk against the data", shown: "↑" },
  { keys: ["ArrowDown"], action: "down", help: "walk along the data", shown: "↓" },
  { keys: ["ArrowLeft"], action: "left", help: "out to the enclosing module", shown: "←" },
  { keys: ["ArrowRight"], action: "right", help: "into the module", shown: "→" },
  { keys: ["+", "="], action: "zoomIn", help: "zoom in", shown: "+" },
  { keys: ["-", "_"], action: "zoomOut", help: "zoom out", shown: "−" },
  { keys: ["e", "E"], action: "openAll", help: "open all modules", shown: "e" },
  { keys: ["c", "C"], action: "closeAll", help: "close all modules", shown: "c" },
  { keys: ["o", "O"], action: "outline", help: "show the outline as text", shown: "o" },
  { keys: ["?"], action: "help", help: "this help", shown: "?" },
  { keys: ["Escape"], action: "escape", help: "close what is in front, then clear the selection", shown: "Esc" },
];

/** Zoom limits: a model of 30,000 nodes still fits, and a name becomes no wider than a hand. */
const SCALES = /** @type {[number, number]} */ ([0.004, 4]);
/** A wheel that was turning over the page goes on scrolling the page when the map comes under the pointer. */
const SCROLL_PAUSE_MS = 250;
const MOVE_MS = 320;

/**
 * @param {ActionName | string} key as in KeyboardEvent.key
 * @returns {ActionName | null}
 */
export function actionOf(key) {
  return KEYS.find(({ keys }) => keys.includes(key))?.action ?? null;
}

/**
 * @param {HTMLElement} stage
 * @param {AbortSignal} signal
 * @param {Handlers} handlers
 */
export function interact(stage, signal, handlers) {
  const selection = select(stage);
  const isReduced = () =>
    stage.ownerDocument.defaultView?.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;
  const isScrolling = watchScrolling(stage, signal);
  const behaviour = /** @type {import("d3-zoom").ZoomBehavior<HTMLElement, unknown>} */ (zoom())
    .scaleExtent(SCALES)
    .extent(() => [[0, 0], handlers.size()])
    .clickDistance(4)
    .filter((event) => !event.button && !(event.type === "wheel" && isScrolling(event)))
    .wheelDelta((event) => {
      const unit = event.deltaMode === 1 ? 0.05 : event.deltaMode ? 1 : 0.002;
      return -event.deltaY * unit * (event.ctrlKey ? 10 : 1);
    })
    .constrain((transform, extent) => keepInReach(transform, extent, handlers.reachOf()))
    .on("zoom", (event) => handlers.onTransform(event.transform));
  selection.call(behaviour).on("dblclick.zoom", null);
  listen(stage, signal, handlers);
  signal.addEventListener("abort", () => {
    selection.interrupt().on(".zoom", null);
  });
  /** @type {(target: Transform, isSmooth: boolean) => Promise<void>} */
  const moveTo = (target, isSmooth) => {
    const transform = zoomIdentity.translate(target.x, target.y).scale(target.k);
    if (!isSmooth || isReduced()) {
      selection.call(behaviour.transform, transform);
      return Promise.resolve();
    }
    const transition = selection.transition().duration(MOVE_MS).ease(easeCubicInOut);
    transition.call(behaviour.transform, transform);
    // An interrupted move is no failure: whoever interrupted has another place to be.
    return transition.end().catch(() => undefined);
  };
  return {
    transform: () => /** @type {Transform} */ (zoomTransform(stage)),
    moveTo,
    /** @param {number} factor */
    zoomBy: (factor) => {
      if (isReduced()) selection.call(behaviour.scaleBy, factor);
      else selection.transition().duration(160).call(behaviour.scaleBy, factor);
    },
    isReduced,
  };
}

/**
 * Some of the picture stays in view, however far it is dragged.
 *
 * @type {(transform: import("d3-zoom").ZoomTransform, extent: [[number, number], [number, number]], reach: [[number, number], [number, number]]) => import("d3-zoom").ZoomTransform}
 */
function keepInReach(transform, extent, reach) {
  const keep = 60;
  const [[left, top], [right, bottom]] = extent;
  const [[sceneLeft, sceneTop], [sceneRight, sceneBottom]] = reach;
  const clamp = (/** @type {number} */ value, /** @type {number} */ low, /** @type {number} */ high) =>
    Math.min(Math.max(value, low), high);
  const x = clamp(transform.x, left + keep - sceneRight * transform.k, right - keep - sceneLeft * transform.k);
  const y = clamp(transform.y, top + keep - sceneBottom * transform.k, bottom - keep - sceneTop * transform.k);
  return x === transform.x && y === transform.y ? transform : zoomIdentity.translate(x, y).scale(transform.k);
}

/**
 * @param {HTMLElement} stage
 * @param {AbortSignal} signal
 * @returns {(event: WheelEvent) => boolean} whether a turn of the wheel belongs to the page around
 */
function watchScrolling(stage, signal) {
  const view = /** @type {Window} */ (stage.ownerDocument.defaultView);
  let lastOutside = -Infinity;
  const note = (/** @type {WheelEvent} */ event) => {
    if (!event.composedPath().includes(stage)) lastOutside = event.timeStamp;
  };
  view.addEventListener("wheel", note, { signal, passive: true, capture: true });
  return (event) => {
    const isPassing = !event.ctrlKey && event.timeStamp - lastOutside < SCROLL_PAUSE_MS;
    // As long as the wheel keeps turning it is one gesture.
    if (isPassing) lastOutside = event.timeStamp;
    return isPassing;
  };
}

/** @type {(stage: HTMLElement, signal: AbortSignal, handlers: Handlers) => void} */
function listen(stage, signal, handlers) {
  const place = (/** @type {MouseEvent} */ event) => {
    const corner = stage.getBoundingClientRect();
    return { x: event.clientX - corner.left, y: event.clientY - corner.top };
  };
  stage.addEventListener("click", (event) => handlers.onClick(place(event).x, place(event).y, event), { signal });
  stage.addEventListener("dblclick", (event) => handlers.onDoubleClick(place(event).x, place(event).y, event), {
    signal,
  });
  stage.addEventListener("pointermove", (event) => handlers.onHover(event.buttons === 0 ? place(event) : null), {
    signal,
  });
  stage.addEventListener("pointerleave", () => handlers.onHover(null), { signal });
  // d3-zoom prevents the default of mousedown, which would move the focus.
  stage.addEventListener("pointerdown", () => stage.focus({ preventScroll: true }), { signal });
}

/**
 * Keys anywhere in the view, except while text is typed.
 *
 * @param {HTMLElement | Document} root
 * @param {AbortSignal} signal
 * @param {(action: ActionName, event: KeyboardEvent) => boolean} onAction false: the key was not used
 */
export function listenToKeys(root, signal, onAction) {
  const handle = (/** @type {any} */ event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = actionOf(event.key);
    const target = /** @type {HTMLElement} */ (event.composedPath()[0]);
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) && action !== "escape";
    const isPressing = target.tagName === "BUTTON" && action === "toggle";
    if (action === null || isTyping || isPressing) return;
    if (!onAction(action, event)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  root.addEventListener("keydown", handle, { signal });
}
