/**
 * The view: joins map, panels and layout, and owns what is open, selected, hidden and found.
 *
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").Item} Item
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./visible.js").State} State
 * @typedef {import("./options.js").Options} Options
 *
 * @typedef {Object} Atlas what tests and tools may rely on
 * @property {Promise<void>} ready resolved after the first paint
 * @property {() => string[]} visible names of visible nodes and calls, in drawing order
 * @property {(name: string) => DOMRect | null} rect in the viewport; null where the name is not visible
 * @property {(name: string) => DOMRect | null} handle its open/close button
 * @property {(name: string) => Promise<void>} open
 * @property {(name: string) => Promise<void>} close
 * @property {() => Promise<void>} openAll
 * @property {() => Promise<void>} closeAll
 * @property {(levels: number) => Promise<void>} depth
 * @property {(name: string | string[]) => Promise<void>} select
 * @property {string[]} selection
 * @property {(text: string) => string[]} search
 * @property {(name: string) => Promise<void>} focus
 * @property {() => {nodes: number, edges: number, layout_ms: number, paint_ms: number, engine_calls: number, memo_hits: number}} stats
 */
import { brokenView, crumbContent, errorBanner, failurePlace, helpOverlay, legendContent, statusChip } from "./chrome.js";
import { colourModes, colouring } from "./colours.js";
import { element } from "./dom.js";
import { listenToKeys } from "./interact.js";
import { createLayouter } from "./layout.js";
import { handleRect } from "./marks.js";
import { createMinimap } from "./minimap.js";
import { readOptions } from "./options.js";
import { createOutline, describeBox } from "./outline.js";
import { panelContent } from "./panel.js";
import { findNames } from "./query.js";
import { reach } from "./reach.js";
import { copyText, download, fileStem, scenePng } from "./saving.js";
import { decode } from "./schema.js";
import { createSearch } from "./search.js";
import { Stage } from "./stage.js";
import { closeById, levelsState, openByName, openLevels, standInFinder, startState, toggle } from "./states.js";
import { STYLE } from "./style.js";
import { sceneToSvg } from "./svg.js";
import { cssVariables, detectTheme, familyOf, PALETTES, watchTheme } from "./theme.js";
import { createToolbar } from "./toolbar.js";
import { allOpen, closedState, foldState, indexGraph, revealState, unfoldState, visibleGraph } from "./visible.js";
import { step } from "./walk.js";

/** A layout that takes longer than this is announced. */
const PATIENCE_MS = 180;

/**
 * @param {HTMLElement} target
 * @param {unknown} source a document, as `JSON.parse` gives it
 * @param {Record<string, any>} [given] see options.js
 * @returns {{update: (changes: Record<string, any>) => void, destroy: () => void, atlas: Atlas}}
 */
export function mount(target, source, given = {}) {
  const document = target.ownerDocument;
  const options = readOptions(given);
  // Lumino, the framework of JupyterLab, leaves keys alone below such an element.
  const host = element(document, "div", { class: "torchatlas", "data-lm-suppress-shortcuts": "true" });
  host.style.height = options.height ?? "100%";
  if (options.width !== null) host.style.width = options.width;
  target.append(host);
  const decoded = decode(source);
  if (decoded.status === "failure") return showBroken(host, "This document can't be shown", decoded.errors);
  try {
    const view = new View(host, decoded.graph, source, options);
    return { update: (changes) => view.update(changes), destroy: () => view.destroy(), atlas: view.atlas };
  } catch (error) {
    return showBroken(host, "The view could not start", [describeError(error)]);
  }
}

/** @param {unknown} error */
const describeError = (error) => (error instanceof Error ? (error.stack ?? `${error.name}: ${error.message}`) : String(error));

/** @type {(host: HTMLElement, title: string, lines: string[]) => ReturnType<typeof mount>} */
function showBroken(host, title, lines) {
  const document = host.ownerDocument;
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const frame = element(document, "div", { class: "frame" }, [brokenView(document, title, lines)]);
  for (const [name, value] of Object.entries(cssVariables(PALETTES[detectTheme(document)]))) frame.style.setProperty(name, value);
  root.replaceChildren(element(document, "style", {}, [STYLE]), frame);
  host.dataset.broken = "true";
  const nothing = () => Promise.resolve();
  /** @type {Atlas} */
  const atlas = {
    ready: Promise.reject(new Error(`${title}: ${lines.join("; ")}`)),
    visible: () => [],
    rect: () => null,
    handle: () => null,
    open: nothing,
    close: nothing,
    openAll: nothing,
    closeAll: nothing,
    depth: nothing,
    select: nothing,
    selection: [],
    search: () => [],
    focus: nothing,
    stats: () => ({ nodes: 0, edges: 0, layout_ms: 0, paint_ms: 0, engine_calls: 0, memo_hits: 0 }),
  };
  // Whoever does not wait for it has the message on the screen.
  atlas.ready.catch(() => undefined);
  /** @type {any} */ (host).atlas = atlas;
  return { update: () => undefined, destroy: () => host.remove(), atlas };
}

/**
 * Graphviz may still be on its way. Where it does not arrive the layout does without.
 *
 * @param {Options} options
 */
async function layouterOf({ wasm, useWorker }) {
  const bytes = await Promise.resolve(wasm).catch(() => null);
  return createLayouter(useWorker ? { wasm: bytes } : { wasm: bytes, workerFactory: null });
}

class View {
  /**
   * @param {HTMLElement} host
   * @param {Graph} graph
   * @param {unknown} source
   * @param {Options} options
   */
  constructor(host, graph, source, options) {
    this.host = host;
    this.document = host.ownerDocument;
    this.graph = graph;
    this.source = source;
    this.options = options;
    this.controller = new AbortController();
    this.signal = this.controller.signal;
    this.theme = options.theme === "auto" ? detectTheme(this.document) : options.theme;
    /** @type {State} */
    this.state = startState(graph, options);
    /** @type {Set<string>} */
    this.selected = new Set(options.selected);
    /** @type {string[]} */
    this.found = [];
    this.highlighted = options.highlighted;
    this.numbers = options.numbers;
    this.notes = options.notes;
    this.colourBy = options.colourBy;
    this.version = 0;
    /** @type {Promise<void>} */
    this.pending = Promise.resolve();
    this.layouter = layouterOf(options);
    this.isReady = false;
    /** @type {string | null} whose path the breadcrumb shows */
    this.crumbed = null;
    this.root = host.attachShadow({ mode: "open" });
    this.stage = this.#makeStage();
    this.search = this.#makeSearch();
    this.toolbar = this.#makeToolbar();
    this.minimap = this.#makeMinimap();
    this.outline = this.#makeOutline();
    this.help = helpOverlay(this.document, this.signal, () => this.#toggleHelp(false));
    this.parts = this.#makeParts();
    this.frame = this.#assemble();
    this.#applyTheme();
    this.atlas = this.#makeAtlas(this.#start());
    /** @type {any} */ (host).atlas = this.atlas;
  }

  get palette() {
    return PALETTES[this.theme];
  }

  get scene() {
    return this.stage.scene;
  }

  /** @returns {Stage} */
  #makeStage() {
    return new Stage(this.document, this.graph, this.palette, this.signal, {
      onClick: (index, isHandle, event) => this.#onClick(index, isHandle, event),
      onDoubleClick: (index, isHandle) => {
        const item = this.scene.boxes[index]?.item;
        if (item && !isHandle) this.#run(this.toggle(item, false));
      },
      onHover: () => undefined,
      onPainted: () => this.#afterPaint(),
      insets: () => this.#insets(),
      startBox: () => this.#startBox(),
    });
  }

  #makeSearch() {
    return createSearch(this.document, this.signal, {
      find: (query) => findNames(this.graph, query),
      onFound: (names) => {
        this.found = names;
        this.#emphasise();
      },
      onPick: (name) => this.#run(this.focus(name, true)),
      describe: (name) => this.#typeOf(name),
      onLeave: () => this.stage.element.focus({ preventScroll: true }),
    });
  }

  #makeToolbar() {
    return createToolbar(this.document, this.signal, this.search.box, this.#modes(), {
      onDepth: (change) => this.#run(this.changeDepth(change)),
      onOpenAll: () => this.#run(this.openAll()),
      onCloseAll: () => this.#run(this.closeAll()),
      onColour: (mode) => {
        this.colourBy = mode;
        this.#recolour();
      },
      onFilter: (filter, isHidden) => {
        this.#run(this.apply({ ...this.state, hide: { ...this.state.hide, [filter]: isHidden } }, null));
      },
      onFit: () => this.#run(this.fit()),
      onSave: (format) => this.#run(this.save(format)),
      onHelp: () => this.#toggleHelp(true),
    });
  }

  #makeMinimap() {
    return createMinimap(this.document, this.signal, (x, y) => {
      const { k } = this.stage.interaction.transform();
      const { width, height } = this.stage;
      void this.stage.interaction.moveTo({ k, x: width / 2 - x * k, y: height / 2 - y * k }, false);
    });
  }

  #makeOutline() {
    return createOutline(this.document, this.signal, this.graph, {
      onSelect: (name) => this.#run(this.select([name])),
      onToggle: (name, isOpen) => this.#run(isOpen ? this.open(name) : this.close(name)),
      onClose: () => this.#toggleOutline(false),
    });
  }

  #makeParts() {
    const { document, graph } = this;
    const panel = element(document, "aside", { class: "panel", "aria-label": "Details", tabindex: -1, hidden: true });
    panel.addEventListener("animationend", () => panel.classList.remove("arriving"), { signal: this.signal });
    const banner = errorBanner(document, graph, this.signal, {
      onGo: () => this.#run(this.focus(failurePlace(graph), true)),
      onClose: () => banner?.remove(),
    });
    return {
      panel,
      banner,
      crumbs: element(document, "nav", { class: "chip crumbs", "aria-label": "Enclosing modules", hidden: true }),
      legend: element(document, "div", { class: "chip legend medium", hidden: true }),
      busy: element(document, "div", { class: "chip busy", role: "status", hidden: true }, ["laying out…"]),
      spoken: element(document, "div", { class: "unseen", "aria-live": "polite" }),
    };
  }

  #assemble() {
    const { document, parts } = this;
    const bottom = element(document, "div", { class: "bottom" }, [statusChip(document, this.graph), parts.crumbs, parts.legend]);
    const frame = element(document, "div", { class: this.options.isPage ? "frame" : "frame embedded" }, [
      this.toolbar.bar,
      this.stage.element,
      this.minimap.box,
      this.outline.box,
      bottom,
      parts.banner,
      parts.busy,
      parts.panel,
      this.help,
      parts.spoken,
    ]);
    this.root.append(element(document, "style", {}, [STYLE]), frame);
    // A page has the keys to itself; in a notebook they are the view's only while the focus is in it.
    listenToKeys(this.options.isPage ? document : frame, this.signal, (action, event) => this.#onAction(action, event));
    if (this.options.theme === "auto") {
      watchTheme(document, this.signal, (theme) => {
        this.theme = theme;
        this.#applyTheme();
      });
    }
    return frame;
  }

  async #start() {
    await this.apply(this.state, null);
    this.isReady = true;
    this.host.dataset.ready = "true";
    const [first] = this.selected;
    if (first !== undefined) await this.select([...this.selected]);
  }

  /** Work that nobody waits for: what goes wrong in it is shown. @param {Promise<unknown>} work */
  #run(work) {
    work.catch((error) => this.#fail(error));
  }

  /** @param {unknown} error */
  #fail(error) {
    if (this.signal.aborted) return;
    const text = brokenView(this.document, "The view ran into an error", [describeError(error)]);
    this.frame.append(text);
    this.host.dataset.broken = "true";
    throw error;
  }

  /**
   * Show another state. What is asked for while a layout runs supersedes it.
   *
   * @param {State} state
   * @param {string | null} anchor name of what stays where it is on the screen
   * @returns {Promise<void>} resolved when the newest state is painted
   */
  apply(state, anchor) {
    this.state = state;
    const version = (this.version += 1);
    this.pending = this.#lay(version, state, anchor);
    return this.pending;
  }

  /** @type {(version: number, state: State, anchor: string | null) => Promise<void>} */
  async #lay(version, state, anchor) {
    const visible = visibleGraph(this.graph, state);
    const timer = setTimeout(() => (this.parts.busy.hidden = false), PATIENCE_MS);
    const layouter = await this.layouter;
    const scene = await layouter.layout(this.graph, visible).finally(() => clearTimeout(timer));
    if (this.signal.aborted) return;
    if (version !== this.version || scene === null) return this.pending;
    this.parts.busy.hidden = true;
    this.standIn = standInFinder(this.graph, visible.items);
    const shown = this.stage.show(scene, anchor);
    this.host.dataset.engine = scene.stats.engine;
    this.#refresh();
    await shown;
    if (version !== this.version) return this.pending;
  }

  /** Show another state from its start: so much changes that no place is worth keeping. @param {State} state */
  async #restart(state) {
    await this.apply(state, null);
    await this.stage.interaction.moveTo(this.stage.firstView(this.#startBox()), true);
    await this.stage.painted();
  }

  /** @returns {number} index of the box that a view starts at; -1 for the beginning */
  #startBox() {
    return this.isReady ? -1 : this.#boxOf(failurePlace(this.graph));
  }

  /** Everything around the map that depends on the scene. */
  #refresh() {
    const { items } = this.scene.visible;
    this.toolbar.setDepth(String(openLevels(items).deepest));
    this.toolbar.setFilters(this.#filterRows());
    this.#recolour();
    this.outline.draw(this.scene, this.selected);
    this.options.onOpen(items.filter((item) => item.isOpen).map((item) => item.name));
  }

  #filterRows() {
    const { hidden } = this.scene.visible;
    const labels = /** @type {const} */ ({ constants: "constants", parameters: "parameters", shapeOnly: "shape-only operations", dead: "dead branches" });
    return /** @type {(keyof typeof labels)[]} */ (Object.keys(labels)).map((filter) => ({
      filter,
      label: labels[filter],
      count: hidden[filter],
      isHidden: this.state.hide[filter],
    }));
  }

  #modes() {
    return colourModes(this.graph, Object.keys(this.numbers).length > 0);
  }

  #recolour() {
    this.colouring = colouring(this.graph, this.colourBy, this.palette, this.numbers, this.scene.visible.items);
    const content = this.colourBy === "type" ? [] : legendContent(this.document, this.colouring);
    this.parts.legend.replaceChildren(...content);
    this.parts.legend.hidden = content.length === 0;
    const { colourOf } = this.colouring;
    const plain = this.palette.edge;
    const fills = this.scene.boxes.map(({ item }) => colourOf(item) ?? (item.kind === "node" ? plain : this.#familyColour(item.id)));
    this.minimap.draw(this.scene, this.palette, (index) => fills[index] ?? plain, this.document.defaultView?.devicePixelRatio ?? 1);
    this.#emphasise();
  }

  /** @param {number} call */
  #familyColour(call) {
    return this.palette.families[familyOf(this.graph.calls[call]?.type ?? "")];
  }

  /** Mark on the map what is selected, found and highlighted. */
  #emphasise() {
    const boxesOf = (/** @type {Iterable<string>} */ names) => new Set([...names].map((name) => this.#boxOf(name)).filter((index) => index >= 0));
    const selected = boxesOf(this.selected);
    const { colourOf } = this.colouring ?? { colourOf: () => null };
    this.stage.emphasis = {
      selected,
      hovered: -1,
      hits: boxesOf([...this.found, ...this.highlighted]),
      ...reach(this.scene, selected),
      colourOf: (box) => colourOf(box.item),
      hasNote: (box) => box.item.name in this.notes,
    };
    this.stage.requestPaint();
  }

  /** @param {string} name @returns {number} index of the box that is or holds what is named */
  #boxOf(name) {
    return this.standIn?.(name) ?? -1;
  }

  /** @param {string} name */
  #typeOf(name) {
    const { callByName, nodeByName } = indexGraph(this.graph);
    const call = this.graph.calls[callByName.get(name) ?? -1];
    if (call) return call.type;
    const node = this.graph.nodes[nodeByName.get(name) ?? -1];
    return node?.kind === "op" || node?.kind === "opaque" ? "operation" : (node?.kind ?? "");
  }

  /** @param {string} name @returns {Item | null} what the panel is about */
  #itemOf(name) {
    const box = this.scene.boxes[this.stage.spatial.indexByName.get(name) ?? -1];
    if (box) return box.item;
    const { callByName, nodeByName } = indexGraph(this.graph);
    const call = callByName.get(name);
    const id = call ?? nodeByName.get(name);
    if (id === undefined) return null;
    return { name, kind: call === undefined ? "node" : "call", id, parent: null, isOpen: false, isOpenable: false, members: [], depth: 0 };
  }

  /** @type {(index: number, isHandle: boolean, event: MouseEvent) => void} */
  #onClick(index, isHandle, event) {
    this.toolbar.closeMenus();
    this.search.close();
    const item = this.scene.boxes[index]?.item;
    if (!item) this.#run(this.select([]));
    else if (isHandle) this.#run(this.toggle(item, event.shiftKey));
    else if (event.shiftKey || event.ctrlKey || event.metaKey) this.#run(this.select(this.#withOrWithout(item.name)));
    else this.#run(this.select([item.name], false));
  }

  /** @param {string} name */
  #withOrWithout(name) {
    const names = [...this.selected];
    return names.includes(name) ? names.filter((other) => other !== name) : [...names, name];
  }

  /** @type {(action: import("./interact.js").ActionName, event: KeyboardEvent) => boolean} */
  #onAction(action, event) {
    const [name] = [...this.selected].slice(-1);
    const index = name === undefined ? -1 : this.#boxOf(name);
    const box = this.scene.boxes[index];
    switch (action) {
      case "search":
        this.search.focus();
        return true;
      case "fit":
        this.#run(this.fit());
        return true;
      case "zoomTo":
        this.#run(this.stage.zoomTo(index));
        return index >= 0;
      case "toggle":
        if (box) this.#run(this.toggle(box.item, event.shiftKey));
        return box !== undefined;
      case "up":
      case "down":
      case "left":
      case "right":
        this.#walk(index, action);
        return true;
      case "zoomIn":
      case "zoomOut":
        this.stage.interaction.zoomBy(action === "zoomIn" ? 1.4 : 1 / 1.4);
        return true;
      case "openAll":
        this.#run(this.openAll());
        return true;
      case "closeAll":
        this.#run(this.closeAll());
        return true;
      case "outline":
        this.#toggleOutline(!this.outline.isShown());
        return true;
      case "help":
        this.#toggleHelp(this.help.hidden === true);
        return true;
      case "escape":
        return this.#escape();
    }
  }

  #escape() {
    if (!this.help.hidden) this.#toggleHelp(false);
    else if (this.outline.isShown()) this.#toggleOutline(false);
    else if (this.toolbar.closeMenus()) return true;
    else if (this.search.isActive()) this.search.clear();
    else if (this.selected.size > 0 || !this.parts.panel.hidden) this.#run(this.select([]));
    else return false;
    return true;
  }

  /** @type {(index: number, direction: "up"|"down"|"left"|"right") => void} */
  #walk(index, direction) {
    const box = this.scene.boxes[index];
    if (direction === "right" && box?.item.isOpenable) {
      this.#run(this.toggle(box.item, false));
      return;
    }
    const next = this.scene.boxes[step(this.scene, index, direction)];
    if (next) this.#run(this.select([next.item.name]));
  }

  /** @param {boolean} isShown */
  #toggleHelp(isShown) {
    this.help.hidden = !isShown;
    if (isShown) /** @type {HTMLElement | null} */ (this.help.firstElementChild)?.focus();
    else this.stage.element.focus({ preventScroll: true });
  }

  /** @param {boolean} isShown */
  #toggleOutline(isShown) {
    this.outline.show(isShown);
    if (!isShown) this.stage.element.focus({ preventScroll: true });
  }

  /** @returns {import("./stage.js").Insets} */
  #insets() {
    const isSmall = this.stage.width <= 700;
    const hasPanel = !this.parts.panel.hidden;
    const bottom = hasPanel && isSmall ? this.parts.panel.offsetHeight + 16 : 56;
    const mapWidth = isSmall ? 76 : 120;
    // A tall picture is narrow: it is centred beside the minimap only where it would lie under it.
    const bannerHeight = this.parts.banner?.isConnected ? this.parts.banner.offsetHeight + 8 : 0;
    return { top: (isSmall ? 52 : 60) + bannerHeight, right: hasPanel && !isSmall ? 372 : 16, bottom, left: this.scene.width > this.stage.width - 2 * mapWidth ? mapWidth : 16 };
  }

  #applyTheme() {
    for (const [name, value] of Object.entries(cssVariables(this.palette))) this.frame.style.setProperty(name, value);
    this.host.dataset.theme = this.theme;
    this.stage.palette = this.palette;
    if (this.isReady) this.#recolour();
  }

  #afterPaint() {
    this.minimap.follow(this.stage.interaction.transform(), this.stage.width, this.stage.height, this.scene);
    this.#showCrumbs();
  }

  /** The way to the selection; without one, to the open module that fills the view while its title is out of sight. */
  #showCrumbs() {
    const name = [...this.selected].slice(-1)[0] ?? this.#moduleInView();
    if (name === this.crumbed) return;
    this.crumbed = name;
    const path = name === null ? [] : this.#pathTo(name);
    this.parts.crumbs.hidden = path.length === 0;
    this.parts.crumbs.replaceChildren(
      ...crumbContent(this.document, path, (target) => {
        if (target === null) this.#run(this.fit());
        else this.#run(this.focus(target, true));
      }),
    );
  }

  /** @returns {string | null} */
  #moduleInView() {
    const { stage, scene } = this;
    const centre = stage.toScene(stage.width / 2, stage.height / 2);
    const top = stage.toScene(0, 0).y;
    let found = null;
    for (const box of scene.boxes) {
      const isAround = box.item.isOpen && box.x <= centre.x && box.x + box.width >= centre.x && box.y < top && box.y + box.height >= centre.y;
      if (isAround) found = box.item.name;
    }
    return found;
  }

  /** @param {string} name */
  #pathTo(name) {
    const { callByName, nodeByName } = indexGraph(this.graph);
    const node = this.graph.nodes[nodeByName.get(name) ?? -1];
    let call = node ? node.call : (callByName.get(name) ?? null);
    const path = node ? [{ label: node.name.split(".").pop() ?? node.name, name: /** @type {string | null} */ (node.name) }] : [];
    while (call !== null) {
      const row = /** @type {import("./types.js").ModuleCall} */ (this.graph.calls[call]);
      const around = row.parent === null ? "" : `${this.graph.calls[row.parent]?.name ?? ""}.`;
      const label = row.name.startsWith(around) ? row.name.slice(around.length) : row.name;
      path.unshift(row.parent === null ? { label: this.graph.title, name: null } : { label, name: row.name });
      call = row.parent;
    }
    return path;
  }

  #showPanel() {
    const [name] = [...this.selected].slice(-1);
    const item = name === undefined ? null : this.#itemOf(name);
    const { panel } = this.parts;
    if (item === null) {
      panel.hidden = true;
      this.frame.classList.remove("with-panel");
      return;
    }
    const content = panelContent(this.document, this.graph, item, this.notes[item.name] ?? null, {
      onClose: () => this.#hidePanel(),
      copy: (text) => copyText(this.document, this.root, text),
      onGo: (target) => this.#run(this.focus(target, true)),
      values: this.options.values,
      ...this.#repeatActions(item),
    });
    panel.replaceChildren(...content);
    panel.scrollTop = 0;
    // A second click of a double click must not land on the panel that the first one brought.
    if (panel.hidden && !this.stage.interaction.isReduced()) panel.classList.add("arriving");
    panel.hidden = false;
    this.frame.classList.add("with-panel");
  }

  /** @param {Item} item */
  #repeatActions(item) {
    const run = item.kind === "node" ? undefined : indexGraph(this.graph).repeatOf.get(item.id);
    return {
      run: run ? { shown: item.kind === "repeat" ? 0 : 1, total: run.members.length, members: item.members } : null,
      onUnfold: (/** @type {"all" | {from: number, to: number}} */ which) => this.#run(this.apply(unfoldState(this.graph, this.state, item, which), item.name)),
      onFold: () => this.#run(this.apply(foldState(this.graph, this.state, item.id), item.name)),
    };
  }

  #hidePanel() {
    this.parts.panel.hidden = true;
    this.frame.classList.remove("with-panel");
    this.stage.element.focus({ preventScroll: true });
  }

  /** @type {(item: Item, isWhole: boolean) => Promise<void>} */
  toggle(item, isWhole) {
    return this.apply(toggle(this.graph, this.state, item, isWhole), item.name);
  }

  /** @param {string} name */
  open(name) {
    const item = this.scene.boxes[this.stage.spatial.indexByName.get(name) ?? -1]?.item;
    if (item) return item.isOpenable ? this.toggle(item, false) : Promise.resolve();
    return this.apply(openByName(this.graph, this.state, name), name);
  }

  /** @param {string} name */
  close(name) {
    const id = indexGraph(this.graph).callByName.get(name);
    return id === undefined ? Promise.resolve() : this.apply(closeById(this.graph, this.state, id), name);
  }

  openAll() {
    return this.#restart(allOpen(this.graph, this.state.hide));
  }

  closeAll() {
    return this.#restart({ ...closedState(), hide: this.state.hide });
  }

  /** @param {number} levels of modules that are open */
  depth(levels) {
    return this.#restart(levelsState(this.graph, Math.max(levels, 0), this.state.hide));
  }

  /** @param {1 | -1} change */
  changeDepth(change) {
    const { deepest, shallowest } = openLevels(this.scene.visible.items);
    return this.depth(change > 0 ? shallowest + 1 : Math.max(deepest - 1, 0));
  }

  fit() {
    return this.stage.interaction.moveTo(this.stage.wholeView(), true);
  }

  /**
   * @param {string[]} names
   * @param {boolean} [isMoving] bring what is selected into view
   */
  async select(names, isMoving = true) {
    this.selected = new Set(names.filter((name) => this.#itemOf(name) !== null));
    this.#emphasise();
    this.outline.select(this.selected);
    this.#showPanel();
    this.options.onSelect([...this.selected]);
    const [last] = [...this.selected].slice(-1);
    const index = last === undefined ? -1 : this.#boxOf(last);
    const box = this.scene.boxes[index];
    if (box) this.parts.spoken.textContent = describeBox(this.graph, box);
    if (box && isMoving) await this.stage.bringIntoView(index);
    await this.stage.painted();
  }

  /**
   * Show a node or call, opening what encloses it.
   *
   * @param {string} name
   * @param {boolean} isSelecting
   */
  async focus(name, isSelecting) {
    if (this.#itemOf(name) === null) return;
    const index = this.stage.spatial.indexByName.get(name);
    if (index === undefined) await this.apply(revealState(this.graph, this.state, name), null);
    if (isSelecting) await this.select([name], false);
    await this.stage.centreOn(this.stage.spatial.indexByName.get(name) ?? -1);
    await this.stage.painted();
  }

  /** @param {import("./toolbar.js").SaveFormat} format */
  async save(format) {
    const stem = fileStem(this.graph.title);
    if (format === "json") {
      download(this.document, `${stem}.json`, new Blob([JSON.stringify(this.source)], { type: "application/json" }));
    } else if (format === "svg") {
      download(this.document, `${stem}.svg`, new Blob([this.svg()], { type: "image/svg+xml" }));
    } else {
      const look = { graph: this.graph, palette: this.palette, emphasis: { ...this.stage.emphasis, hovered: -1 } };
      download(this.document, `${stem}.png`, await scenePng(this.document, look, this.scene));
    }
  }

  svg() {
    const { colourOf, hits } = this.stage.emphasis;
    const isHit = (/** @type {import("./types.js").Box} */ box) => hits.has(this.scene.boxes.indexOf(box));
    return sceneToSvg(this.scene, this.graph, this.palette, hits.size > 0 ? { colourOf, isHit } : { colourOf });
  }

  /** @param {Record<string, any>} changes options of options.js, those that change a running view */
  update(changes) {
    if (changes.theme) this.theme = changes.theme === "auto" ? detectTheme(this.document) : changes.theme;
    if (changes.theme) this.#applyTheme();
    if (changes.highlighted) this.highlighted = changes.highlighted;
    if (changes.notes) this.notes = changes.notes;
    if (changes.numbers) {
      this.numbers = changes.numbers;
      this.colourBy = Object.keys(this.numbers).length > 0 ? "numbers" : "type";
      this.toolbar.setModes(this.#modes(), this.colourBy);
    }
    if (this.isReady) this.#recolour();
    this.#run(this.#updateState(changes));
  }

  /** @param {Record<string, any>} changes */
  async #updateState(changes) {
    if (changes.opened) await this.apply(startState(this.graph, { ...this.options, ...changes, opened: changes.opened }), null);
    if (changes.selected) await this.select(changes.selected);
    if (changes.focus) await this.focus(changes.focus, false);
  }

  destroy() {
    this.controller.abort();
    this.layouter.then((layouter) => layouter.destroy());
    this.host.remove();
  }

  /** @param {Promise<void>} ready @returns {Atlas} */
  #makeAtlas(ready) {
    ready.catch((error) => this.#fail(error));
    const view = this;
    const boxNamed = (/** @type {string} */ name) => this.scene.boxes[this.stage.spatial.indexByName.get(name) ?? -1];
    return {
      ready,
      visible: () => this.scene.boxes.map((box) => box.item.name),
      rect: (name) => {
        const box = boxNamed(name);
        return box ? this.stage.toViewport(box) : null;
      },
      handle: (name) => {
        const box = boxNamed(name);
        const area = box ? handleRect(box) : null;
        return area ? this.stage.toViewport(area) : null;
      },
      open: (name) => this.open(name),
      close: (name) => this.close(name),
      openAll: () => this.openAll(),
      closeAll: () => this.closeAll(),
      depth: (levels) => this.depth(levels),
      select: (name) => this.select(Array.isArray(name) ? name : [name]),
      get selection() {
        return [...view.selected];
      },
      search: (text) => findNames(this.graph, text),
      focus: (name) => this.focus(name, false),
      stats: () => this.#stats(),
    };
  }

  #stats() {
    const { boxes, routes, stats } = this.scene;
    return {
      nodes: boxes.length,
      edges: routes.length,
      layout_ms: stats.layoutMs,
      paint_ms: this.stage.paintMs,
      engine_calls: stats.engineCalls,
      memo_hits: stats.memoHits,
    };
  }
}
