/**
 * Entry of the map that a notebook keeps for when no kernel is there: small enough to travel with every output. It lays
 * out in plain JavaScript and draws SVG that opens and closes by mouse and keys, scrolls and zooms; it has no search, panel
 * or values. It reads a graph as abridged.js does.
 *
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").Item} Item
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./theme.js").ThemeName} ThemeName
 */
import { readAbridged } from "./abridged.js";
import { compactSvg } from "./compact.js";
import { formatCount, formatSpec } from "./format.js";
import { createMemo, layoutSync, simpleEngine } from "./layout.js";
import { liteStyle } from "./litestyle.js";
import { readOptions } from "./options.js";
import { levelsState, openLevels, startState, toggle } from "./states.js";
import { detectTheme, PALETTES, watchTheme } from "./theme.js";
import { visibleGraph } from "./visible.js";

const LEAST_SCALE = 0.15;
const MOST_SCALE = 3;
/** At the start the picture is not made smaller than this to fit: text must be read. */
const READABLE_SCALE = 0.7;
const STEP = 1.3;
/** A pointer that moves less than this clicks, in px. */
const DRAG_FROM = 4;

/**
 * @param {HTMLElement} host
 * @param {string} graphText
 * @param {string} optionsText those of options.js
 */
export function mount(host, graphText, optionsText) {
  const graph = readAbridged(JSON.parse(graphText));
  const options = readOptions(JSON.parse(optionsText));
  new LiteMap(host, graph, options);
}

class LiteMap {
  /**
   * @param {HTMLElement} host
   * @param {Graph} graph
   * @param {import("./options.js").Options} options
   */
  constructor(host, graph, options) {
    this.document = host.ownerDocument;
    this.graph = graph;
    this.options = options;
    this.memo = createMemo();
    this.state = startState(graph, options);
    this.selected = options.selected[0] ?? "";
    const root = host.attachShadow({ mode: "open" });
    root.append(...frame(this.document, graph.title));
    this.frame = /** @type {HTMLElement} */ (root.querySelector(".map"));
    this.stage = /** @type {HTMLElement} */ (root.querySelector(".stage"));
    this.facts = /** @type {HTMLElement} */ (root.querySelector(".facts"));
    const end = new AbortController();
    this.scene = this.layOut();
    this.scale = Math.min(1, Math.max(READABLE_SCALE, this.fittingScale()));
    this.draw();
    this.stage.scrollLeft = (this.stage.scrollWidth - this.stage.clientWidth) / 2;
    this.show(failedName(graph) ?? this.selected);
    watchTheme(this.document, end.signal, () => (host.isConnected ? this.draw() : end.abort()));
    root.querySelector(".bar")?.addEventListener("click", (event) => this.command(event));
    this.stage.addEventListener("click", (event) => this.click(event));
    this.stage.addEventListener("keydown", (event) => this.key(event));
    this.stage.addEventListener("pointerover", (event) => this.tell(nameAt(event) ?? this.selected));
    dragToScroll(this.stage);
  }

  /** @returns {Scene} */
  layOut() {
    return layoutSync(this.graph, visibleGraph(this.graph, this.state), simpleEngine, this.memo);
  }

  fittingScale() {
    return (this.stage.clientWidth - 4) / (this.scene.width + 32);
  }

  draw() {
    const theme = this.options.theme === "auto" ? detectTheme(this.document) : this.options.theme;
    this.frame.dataset.theme = theme;
    const text = compactSvg(this.scene, this.graph, PALETTES[theme], {
      isNamed: true,
      isSelected: (box) => box.item.name === this.selected,
    });
    const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    const svg = this.document.importNode(parsed, true);
    const items = new Map(this.scene.boxes.map(({ item }) => [item.name, item]));
    for (const group of svg.querySelectorAll("g[data-name]")) {
      const item = items.get(group.getAttribute("data-name") ?? "");
      if (!item || (!item.isOpen && !item.isOpenable)) continue;
      group.setAttribute("tabindex", "0");
      group.setAttribute("role", "button");
      group.setAttribute("aria-expanded", String(item.isOpen));
      group.setAttribute("aria-label", item.name);
    }
    for (const side of /** @type {const} */ (["width", "height"])) {
      svg.setAttribute(side, String(Math.round(Number(svg.getAttribute(side)) * this.scale)));
    }
    this.stage.replaceChildren(svg);
    this.tell(this.selected);
  }

  /** @param {string} name @returns {SVGGElement | null} */
  group(name) {
    return this.stage.querySelector(`g[data-name="${CSS.escape(name)}"]`);
  }

  /** Scroll a box into the middle. @param {string} name */
  show(name) {
    const place = this.group(name)?.getBoundingClientRect();
    if (!place) return;
    const stage = this.stage.getBoundingClientRect();
    this.stage.scrollLeft += place.left + place.width / 2 - stage.left - stage.width / 2;
    this.stage.scrollTop += place.top + place.height / 2 - stage.top - stage.height / 2;
  }

  /** What was clicked stays where it is on the screen. @param {Item} item */
  toggle(item) {
    const before = this.group(item.name)?.getBoundingClientRect();
    const { scrollLeft, scrollTop } = this.stage;
    this.state = toggle(this.graph, this.state, item, false);
    this.scene = this.layOut();
    this.draw();
    const after = this.group(item.name);
    const place = after?.getBoundingClientRect();
    if (before && place) {
      this.stage.scrollLeft = scrollLeft + place.left + place.width / 2 - before.left - before.width / 2;
      this.stage.scrollTop = scrollTop + place.top - before.top;
    }
    after?.focus({ preventScroll: true });
  }

  /** @param {Event} event */
  click(event) {
    const name = nameAt(event);
    const box = this.scene.boxes.find(({ item }) => item.name === name);
    if (!box || !(event instanceof MouseEvent)) return;
    this.selected = box.item.name;
    const top = this.group(this.selected)?.getBoundingClientRect().top ?? 0;
    const isHeader = event.clientY - top < Math.max(box.headerHeight, 24) * this.scale;
    if (box.item.isOpenable || (box.item.isOpen && isHeader)) this.toggle(box.item);
    else this.draw();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key !== "Enter" && event.key !== " ") return;
    const name = nameAt(event);
    const item = this.scene.boxes.find((box) => box.item.name === name)?.item;
    if (!item) return;
    // Else JupyterLab takes the key.
    event.preventDefault();
    event.stopPropagation();
    this.selected = item.name;
    this.toggle(item);
  }

  /** @param {Event} event */
  command(event) {
    const button = /** @type {Element | null} */ (event.target)?.closest("button");
    const what = button?.getAttribute("data-do");
    const { hide } = this.state;
    const levels = openLevels(this.scene.visible.items).deepest;
    const isFolding = this.options.foldRepeats !== false;
    if (what === "more") this.state = levelsState(this.graph, levels + 1, hide, isFolding);
    if (what === "fewer") this.state = levelsState(this.graph, Math.max(levels - 1, 0), hide, isFolding);
    if (what === "in") this.zoom(this.scale * STEP);
    if (what === "out") this.zoom(this.scale / STEP);
    if (what === "fit") this.zoom(Math.min(1, this.fittingScale()));
    if (what === "more" || what === "fewer") {
      this.scene = this.layOut();
      this.draw();
    }
  }

  /** @param {number} scale */
  zoom(scale) {
    const { stage } = this;
    const next = Math.min(Math.max(scale, LEAST_SCALE), MOST_SCALE);
    const ratio = next / this.scale;
    const middle = [stage.scrollLeft + stage.clientWidth / 2, stage.scrollTop + stage.clientHeight / 2];
    this.scale = next;
    this.draw();
    stage.scrollLeft = middle[0] * ratio - stage.clientWidth / 2;
    stage.scrollTop = middle[1] * ratio - stage.clientHeight / 2;
  }

  /** @param {string} name */
  tell(name) {
    const item = this.scene.boxes.find((box) => box.item.name === name)?.item;
    this.facts.textContent = item ? factsOf(this.graph, item) : "click a module to open or close it";
  }
}

/** @param {Graph} graph @returns {string | null} of what failed, innermost */
function failedName({ error, nodes, calls }) {
  if (error === null) return null;
  const call = error.calls[error.calls.length - 1];
  return error.node === null ? (calls[call]?.name ?? null) : nodes[error.node].name;
}

/** @param {Event} event @returns {string | null} of the box that it is about */
function nameAt(event) {
  return /** @type {Element | null} */ (event.target)?.closest("g[data-name]")?.getAttribute("data-name") ?? null;
}

/** @type {(graph: Graph, item: Item) => string} */
function factsOf(graph, item) {
  const row = item.kind === "node" ? graph.nodes[item.id] : graph.calls[item.id];
  const shapes = row.outputs.slice(0, 3).map((spec) => formatSpec(graph.specs[spec]));
  const parameters = row.metrics.parameters > 0 ? [`${formatCount(row.metrics.parameters)} params`] : [];
  const type = "type" in row ? [row.type] : [];
  return [item.name, ...type, ...shapes, ...parameters].join(" · ");
}

/** @type {(document: Document, title: string) => HTMLElement[]} */
function frame(document, title) {
  const element = (/** @type {string} */ tag, /** @type {Record<string, string>} */ attributes, text = "") => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  };
  const button = (/** @type {string} */ what, /** @type {string} */ text, /** @type {string} */ label) =>
    element("button", { type: "button", "data-do": what, title: label, "aria-label": label }, text);
  const map = element("div", { class: "map", role: "group", "aria-label": `map of ${title}` });
  const bar = element("div", { class: "bar" });
  bar.append(
    button("fewer", "− level", "close the innermost level"),
    button("more", "+ level", "open one more level"),
    button("out", "−", "zoom out"),
    button("in", "+", "zoom in"),
    button("fit", "fit", "fit the width"),
    element("span", { class: "facts", "aria-live": "polite" }),
  );
  map.append(bar, element("div", { class: "stage" }));
  return [element("style", {}, liteStyle()), map];
}

/** @param {HTMLElement} stage */
function dragToScroll(stage) {
  /** @type {{x: number, y: number, left: number, top: number} | null} */
  let from = null;
  let isDragging = false;
  stage.addEventListener("pointerdown", (event) => {
    isDragging = false;
    if (event.button !== 0 || event.pointerType === "touch") return;
    from = { x: event.clientX, y: event.clientY, left: stage.scrollLeft, top: stage.scrollTop };
  });
  stage.addEventListener("pointermove", (event) => {
    if (from === null || event.buttons === 0) return;
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    if (!isDragging && Math.hypot(dx, dy) < DRAG_FROM) return;
    if (!isDragging) stage.setPointerCapture(event.pointerId);
    isDragging = true;
    stage.scrollTo(from.left - dx, from.top - dy);
  });
  stage.addEventListener("pointerup", () => (from = null));
  const swallow = (/** @type {Event} */ event) => {
    if (isDragging) event.stopImmediatePropagation();
    isDragging = false;
  };
  stage.addEventListener("click", swallow, { capture: true });
}
