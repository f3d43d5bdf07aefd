/**
 * The map itself: a canvas that shows a scene, moves between scenes, and knows where things are on the screen.
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./types.js").Box} Box
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./theme.js").Palette} Palette
 * @typedef {import("./paint.js").Emphasis} Emphasis
 * @typedef {import("./spatial.js").Spatial} Spatial
 * @typedef {import("./interact.js").Transform} Transform
 * @typedef {import("./camera.js").Room} Room
 * @typedef {{top: number, right: number, bottom: number, left: number}} Insets px of the stage that panels cover
 *
 * @typedef {Object} StageHandlers
 * @property {(index: number, isHandle: boolean, event: MouseEvent) => void} onClick index of a box, -1 for the ground
 * @property {(index: number, isHandle: boolean) => void} onDoubleClick
 * @property {(box: number, route: number) => void} onHover indices; -1 for none; a route only where no closed box is
 * @property {() => void} onPainted after each frame
 * @property {() => Insets} insets
 * @property {() => number} startBox index of the box that the first view is about; -1 for the beginning
 */
import { easeCubicInOut } from "d3-ease";
import { select } from "d3-selection";
import "d3-transition";
import {
  anchorFinder,
  centredView,
  closeView,
  firstView,
  isReadable,
  readingView,
  uncoveredView,
  wholeView,
} from "./camera.js";
import { element } from "./dom.js";
import { isSummary } from "./farmarks.js";
import { interact } from "./interact.js";
import { handleRect } from "./marks.js";
import { between } from "./motion.js";
import { paint } from "./paint.js";
import { boxAt, buildSpatial, routeAt } from "./spatial.js";

const CHANGE_MS = 280;
/** More boxes than this jump to their places: moving them would not reach screen rate. */
const MOST_MOVING = 2500;
/** Routes can be pointed at from this scale on, and from so near; CSS px. */
const ROUTE_SCALE = 0.3;
const POINTER_PX = 5;

const NO_REST = { x: 0, y: 0, k: 1 };

/** @type {Scene} */
const EMPTY = {
  width: 0,
  height: 0,
  boxes: [],
  routes: [],
  visible: { items: [], links: [], hidden: { constants: 0, parameters: 0, shapeOnly: 0, dead: 0 } },
  stats: { engine: "simple", layoutMs: 0, engineCalls: 0, memoHits: 0 },
};

/** @type {Emphasis} */
const NO_EMPHASIS = {
  selected: new Set(),
  hovered: -1,
  hoveredRoute: -1,
  hits: new Set(),
  upstream: new Map(),
  downstream: new Map(),
  colourOf: () => null,
  hasNote: () => false,
};

export class Stage {
  /**
   * @param {Document} document
   * @param {Graph} graph
   * @param {Palette} palette
   * @param {AbortSignal} signal
   * @param {StageHandlers} handlers
   */
  constructor(document, graph, palette, signal, handlers) {
    this.graph = graph;
    this.palette = palette;
    this.handlers = handlers;
    this.canvas = element(document, "canvas", { "aria-hidden": "true" });
    this.element = element(
      document,
      "div",
      {
        class: "stage",
        tabindex: 0,
        role: "application",
        "aria-roledescription": "map",
        "aria-label": `Map of ${graph.title}. Press ? for the keys, o for the outline as text.`,
      },
      [this.canvas],
    );
    this.width = 0;
    this.height = 0;
    this.spatial = buildSpatial(EMPTY);
    /** @type {{spatial: Spatial, boxAlpha: Float32Array, routeAlpha: Float32Array} | null} what is drawn while moving */
    this.moment = null;
    /** @type {(() => void) | null} ends the move between scenes at once */
    this.arrive = null;
    /** What a move between scenes has still to change. */
    this.rest = NO_REST;
    this.emphasis = NO_EMPHASIS;
    this.paintMs = 0;
    this.isPlaced = false;
    this.hovered = -1;
    this.hoveredRoute = -1;
    /** @type {(() => void)[]} */
    this.waiting = [];
    this.frameRequest = 0;
    this.signal = signal;
    this.interaction = interact(this.element, signal, {
      onTransform: () => this.requestPaint(),
      onClick: (x, y, event) => this.#withBox(x, y, (index, isHandle) => handlers.onClick(index, isHandle, event)),
      onDoubleClick: (x, y) => this.#withBox(x, y, (index, isHandle) => handlers.onDoubleClick(index, isHandle)),
      onHover: (point) => this.#hover(point),
      size: () => [this.width, this.height],
      reachOf: () => [
        [0, 0],
        [this.scene.width, this.scene.height],
      ],
    });
    this.#watchSize(document, signal);
    // Whoever presses on the map means a place, and places are certain only at rest.
    this.element.addEventListener("pointerdown", () => this.arrive?.(), { signal, capture: true });
  }

  /** The scene that is shown, or moved to. */
  get scene() {
    return this.spatial.scene;
  }

  /** @type {(document: Document, signal: AbortSignal) => void} */
  #watchSize(document, signal) {
    const observer = new ResizeObserver(() => this.resize());
    observer.observe(this.element);
    signal.addEventListener("abort", () => {
      observer.disconnect();
      select(this.canvas).interrupt("change");
      document.defaultView?.cancelAnimationFrame(this.frameRequest);
      for (const resolve of this.waiting.splice(0)) resolve();
    });
  }

  /** Take over the size of the element; place the first scene as soon as there is room. */
  resize() {
    const { clientWidth, clientHeight } = this.element;
    if (clientWidth === this.width && clientHeight === this.height) return;
    this.width = clientWidth;
    this.height = clientHeight;
    if (!this.isPlaced && this.scene.boxes.length > 0) this.#placeFirst();
    // A canvas that changed its size is empty until painted: in the same frame, or it flickers.
    if (this.width > 0 && this.height > 0) this.paintNow();
  }

  /** @type {(x: number, y: number, act: (index: number, isHandle: boolean) => void) => void} */
  #withBox(x, y, act) {
    const point = this.toScene(x, y);
    const inner = boxAt(this.spatial, point.x, point.y);
    const around = this.scene.boxes[inner]?.parent ?? -1;
    const index = isSummary(this.spatial, around, this.interaction.transform().k) ? around : inner;
    const box = this.scene.boxes[index];
    const handle = box ? handleRect(box) : null;
    const isHandle = handle !== null && point.x <= handle.x + handle.width && point.y <= handle.y + handle.height;
    act(index, isHandle);
  }

  /** @param {{x: number, y: number} | null} point */
  #hover(point) {
    if (point === null) this.#setHovered(-1, -1);
    else this.#withBox(point.x, point.y, (index) => this.#setHovered(index, this.#routeAt(index, point)));
  }

  /** @type {(index: number, point: {x: number, y: number}) => number} closed boxes lie over routes */
  #routeAt(index, point) {
    const { k } = this.interaction.transform();
    const box = this.scene.boxes[index];
    if ((box && !box.item.isOpen) || k < ROUTE_SCALE) return -1;
    const { x, y } = this.toScene(point.x, point.y);
    return routeAt(this.spatial, x, y, POINTER_PX / k);
  }

  /** @type {(index: number, route: number) => void} */
  #setHovered(index, route) {
    if (index === this.hovered && route === this.hoveredRoute) return;
    this.hovered = index;
    this.hoveredRoute = route;
    this.element.classList.toggle("over", index >= 0 && !this.scene.boxes[index]?.item.isOpen);
    this.handlers.onHover(index, route);
    this.requestPaint();
  }

  /** @type {(x: number, y: number) => {x: number, y: number}} CSS px of the stage to px of the scene */
  toScene(x, y) {
    const { x: left, y: top, k } = this.interaction.transform();
    return { x: (x - left) / k, y: (y - top) / k };
  }

  /**
   * @param {{x: number, y: number, width: number, height: number}} area px of the scene
   * @returns {DOMRect} in the viewport; while the map is moving, where it will be
   */
  toViewport(area) {
    const now = this.interaction.transform();
    const k = now.k * this.rest.k;
    const [x, y] = [now.x + this.rest.x, now.y + this.rest.y];
    const corner = this.element.getBoundingClientRect();
    return new DOMRect(corner.left + x + area.x * k, corner.top + y + area.y * k, area.width * k, area.height * k);
  }

  /** Paint in the next frame. Browsers make no frames for what nobody sees, so there it is painted at once. */
  requestPaint() {
    if (this.frameRequest !== 0 || this.signal.aborted) return;
    const view = this.element.ownerDocument.defaultView;
    if (!view || this.element.ownerDocument.visibilityState === "hidden") {
      this.paintNow();
      return;
    }
    this.frameRequest = view.requestAnimationFrame(() => this.paintNow());
  }

  /** @returns {Promise<void>} resolved when what is set by now is painted */
  painted() {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      this.requestPaint();
    });
  }

  paintNow() {
    const view = this.element.ownerDocument.defaultView;
    if (this.frameRequest !== 0) view?.cancelAnimationFrame(this.frameRequest);
    this.frameRequest = 0;
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context || this.width === 0 || this.height === 0 || !this.isPlaced) return;
    const ratio = view?.devicePixelRatio ?? 1;
    const [width, height] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    const start = performance.now();
    paint(context, this.#frame(ratio));
    this.paintMs = performance.now() - start;
    for (const resolve of this.waiting.splice(0)) resolve();
    this.handlers.onPainted();
  }

  /** @param {number} ratio @returns {import("./paint.js").Frame} */
  #frame(ratio) {
    const emphasis = { ...this.emphasis, hovered: this.hovered, hoveredRoute: this.hoveredRoute };
    return {
      spatial: this.moment?.spatial ?? this.spatial,
      graph: this.graph,
      palette: this.palette,
      emphasis,
      transform: this.interaction.transform(),
      width: this.width,
      height: this.height,
      ratio,
      boxAlpha: this.moment?.boxAlpha ?? null,
      routeAlpha: this.moment?.routeAlpha ?? null,
    };
  }

  /**
   * Show another scene.
   *
   * @param {Scene} scene
   * @param {string | null} anchor name of the box that stays where it is on the screen; null: the one in the middle
   * @param {boolean} isRestart show the scene from its start instead
   * @returns {Promise<void>} resolved when it has arrived and is painted
   */
  async show(scene, anchor, isRestart) {
    this.arrive?.();
    const from = this.scene;
    this.spatial = buildSpatial(scene);
    this.hovered = -1;
    this.hoveredRoute = -1;
    if (!this.isPlaced) {
      this.width = this.element.clientWidth;
      this.height = this.element.clientHeight;
      if (this.width > 0 && this.height > 0) this.#placeFirst();
      return this.painted();
    }
    const anchorOf = anchorFinder(from, scene, anchor, this.toScene(this.width / 2, this.height / 2));
    const camera = isRestart ? this.#flight(this.firstView(-1)) : this.#drift(anchorOf);
    const isFew = from.boxes.length + scene.boxes.length <= MOST_MOVING;
    const isSeen = this.element.ownerDocument.visibilityState !== "hidden" && !this.interaction.isReduced();
    if (isFew && isSeen) await this.#move(from, scene, camera);
    else camera(1);
    return this.painted();
  }

  /**
   * A camera that keeps a point in its place while the scene changes under it; it leaves alone what the user does meanwhile.
   *
   * @param {(t: number) => {x: number, y: number}} anchorOf
   * @returns {(t: number) => void}
   */
  #drift(anchorOf) {
    const end = anchorOf(1);
    let last = anchorOf(0);
    return (t) => {
      const { x, y, k } = this.interaction.transform();
      const now = anchorOf(t);
      void this.interaction.moveTo({ x: x - (now.x - last.x) * k, y: y - (now.y - last.y) * k, k }, false);
      last = now;
      this.rest = { x: (now.x - end.x) * k, y: (now.y - end.y) * k, k: 1 };
    };
  }

  /**
   * A camera that flies to another view while the scene changes.
   *
   * @param {Transform} end
   * @returns {(t: number) => void}
   */
  #flight(end) {
    const { x, y, k } = this.interaction.transform();
    return (t) => {
      const now = { x: x + (end.x - x) * t, y: y + (end.y - y) * t, k: k + (end.k - k) * t };
      void this.interaction.moveTo(now, false);
      this.rest = { x: end.x - now.x, y: end.y - now.y, k: end.k / now.k };
    };
  }

  /** @type {(from: Scene, to: Scene, camera: (t: number) => void) => Promise<void>} */
  async #move(from, to, camera) {
    const momentAt = between(from, to);
    const tick = (/** @type {number} */ t) => {
      const { scene, boxAlpha, routeAlpha } = momentAt(t);
      this.moment = { spatial: buildSpatial(scene), boxAlpha, routeAlpha };
      camera(t);
      this.requestPaint();
    };
    const arrive = () => {
      this.arrive = null;
      this.moment = null;
      camera(1);
      this.rest = NO_REST;
      select(this.canvas).interrupt("change");
    };
    this.arrive = arrive;
    tick(0);
    const transition = select(this.canvas)
      .transition("change")
      .duration(CHANGE_MS)
      .ease(easeCubicInOut)
      .tween("scene", () => tick);
    // Interrupted, it has arrived already.
    await transition.end().catch(() => undefined);
    if (this.arrive === arrive) arrive();
  }

  #placeFirst() {
    this.isPlaced = true;
    void this.interaction.moveTo(this.firstView(this.handlers.startBox()), false);
  }

  /** The room between the panels. @returns {Room} */
  #room() {
    const { top, right, bottom, left } = this.handlers.insets();
    return {
      left,
      top,
      width: Math.max(this.width - left - right, 40),
      height: Math.max(this.height - top - bottom, 40),
    };
  }

  /** @param {number} index of the box to start at; -1 for the beginning */
  firstView(index) {
    return firstView(this.scene, this.#room(), index);
  }

  /** @type {(target: Transform) => Promise<void>} */
  fly(target) {
    this.arrive?.();
    return this.interaction.moveTo(target, true);
  }

  /** @param {number} factor */
  zoomBy(factor) {
    this.arrive?.();
    this.interaction.zoomBy(factor);
  }

  /** The whole scene, smoothly. */
  fit() {
    return this.fly(wholeView(this.scene, this.#room()));
  }

  /** @param {number} index of a box: shown as large as it can be read, smoothly */
  zoomTo(index) {
    const box = this.scene.boxes[index];
    return box ? this.fly(closeView(box, this.#room())) : Promise.resolve();
  }

  /** @param {number} index of a box: moved into view if it is not; zoomed in if it is too small to read */
  bringIntoView(index) {
    return this.#flyTo(index, isReadable(this.interaction.transform().k) ? uncoveredView : readingView);
  }

  /** @param {number} index of a box: moved from under the panels and into the window, only as far as needed */
  uncover(index) {
    return this.#flyTo(index, uncoveredView);
  }

  /** @param {number} index of a box: into the middle of the room, in a readable size */
  centreOn(index) {
    return this.#flyTo(index, centredView);
  }

  /** @type {(index: number, view: (box: Box, room: Room, now: Transform) => Transform) => Promise<void>} */
  async #flyTo(index, view) {
    const box = this.scene.boxes[index];
    if (!box || this.width === 0) return;
    this.arrive?.();
    const now = this.interaction.transform();
    const target = view(box, this.#room(), now);
    if (target.x !== now.x || target.y !== now.y || target.k !== now.k) await this.fly(target);
  }
}
