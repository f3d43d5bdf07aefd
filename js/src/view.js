/**
 * The view: joins map, panels and layout, and owns what is open, selected, hidden and found.
 *
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").Item} Item
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./visible.js").State} State
 * @typedef {import("./options.js").Options} Options
 * @typedef {import("./options.js").Command} Command
 */
import { failurePlace } from "./banner.js";
import { brokenView } from "./chrome.js";
import { colourModes, colouring } from "./colours.js";
import { brokenAtlas, makeAtlas } from "./contract.js";
import { makeControls, showColours, showState } from "./controls.js";
import { showCrumbs, showPanel } from "./details.js";
import { element } from "./dom.js";
import { createLayouter } from "./layout.js";
import { withoutRounds } from "./loops.js";
import { readOptions } from "./options.js";
import { describeBox, describeRoute } from "./outline.js";
import { reach } from "./reach.js";
import { download, fileStem, scenePng } from "./saving.js";
import { decode } from "./schema.js";
import { closeById, levelsState, obey, openByName, openLevels, standInFinder, startState, toggle } from "./states.js";
import { STYLE } from "./style.js";
import { sceneToSvg } from "./svg.js";
import { cssText, detectTheme, PALETTES } from "./theme.js";
import { allOpen, closedState, indexGraph, revealState, visibleGraph } from "./visible.js";
import { makeBanner, makeFrame, makeStage } from "./wiring.js";

/** A layout that takes longer than this is announced. */
const PATIENCE_MS = 180;
/** After a click the map waits for a second one before it moves the box from under the panel. */
const DOUBLE_CLICK_MS = 320;
const IDLE_LIMIT_MS = 2000;
const ENGINE_DELAY_MS = 500;
const OUTLINE_DELAY_MS = 120;
/** After the first picture is on the screen; nobody reaches for the toolbar sooner. */
const CONTROLS_DELAY_MS = 40;
/** The minimap and the room around it, px; the toolbar, in one line. */
const MAP_WIDTH = 120;
const BAR_HEIGHT = 32;

/**
 * @param {HTMLElement} target
 * @param {unknown} source a document, as `JSON.parse` gives it
 * @param {Record<string, any>} [given] see options.js
 * @returns {{update: (changes: Record<string, any>) => void, destroy: () => void, atlas: import("./contract.js").Atlas}}
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
const describeError = (error) =>
  error instanceof Error ? (error.stack ?? `${error.name}: ${error.message}`) : String(error);

/** @type {(host: HTMLElement, title: string, lines: string[]) => ReturnType<typeof mount>} */
function showBroken(host, title, lines) {
  const document = host.ownerDocument;
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const frame = element(document, "div", { class: "frame" }, [brokenView(document, title, lines)]);
  frame.style.cssText = cssText(PALETTES[detectTheme(document)]);
  root.replaceChildren(element(document, "style", {}, [STYLE]), frame);
  host.dataset.broken = "true";
  const atlas = brokenAtlas(new Error(`${title}: ${lines.join("; ")}`));
  /** @type {any} */ (host).atlas = atlas;
  return { update: () => undefined, destroy: () => host.remove(), atlas };
}

/**
 * A while after what was painted is on the screen, which is in the second frame from now.
 *
 * @type {(document: Document, delayMs: number, work: () => void) => void}
 */
function whenShown({ defaultView: view, visibilityState }, delayMs, work) {
  const later = () => setTimeout(work, delayMs);
  // Browsers make no frames for what nobody sees.
  if (!view || visibilityState === "hidden") later();
  else view.requestAnimationFrame(() => view.requestAnimationFrame(later));
}

/** Safari has no idle callbacks. @type {(document: Document, work: () => void) => void} */
function whenIdle({ defaultView }, work) {
  if (defaultView?.requestIdleCallback) defaultView.requestIdleCallback(work, { timeout: IDLE_LIMIT_MS });
  else setTimeout(work, 0);
}

/** The engine to come, before it has started. @type {() => "viz"|"simple"} */
const likelyEngine = () => (typeof WebAssembly === "undefined" ? "simple" : "viz");

export class View {
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
    this.legend = options.legend;
    this.notes = options.notes;
    /** What went wrong in Python since something was selected. */
    this.problem = "";
    this.colourBy = options.colourBy;
    this.version = 0;
    /** @type {Promise<void>} */
    this.pending = Promise.resolve();
    this.layouter = createLayouter(
      options.useWorker ? { wasm: options.wasm } : { wasm: options.wasm, workerFactory: null },
    );
    this.isReady = false;
    this.isOutlineDue = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.uncovering = undefined;
    /** @type {string | null} whose path the breadcrumb shows */
    this.crumbed = null;
    this.root = host.attachShadow({ mode: "open" });
    this.stage = makeStage(this);
    this.banner = makeBanner(this);
    /** @type {import("./controls.js").Controls | null} */
    this.made = null;
    this.frame = makeFrame(this);
    this.applyTheme();
    const ready = this.#start();
    this.run(ready);
    this.atlas = makeAtlas(this, ready);
    /** @type {any} */ (host).atlas = this.atlas;
  }

  /** What frames the map. Made when it is first asked for, at the latest when the first picture is on the screen. */
  get controls() {
    if (this.made !== null) return this.made;
    const controls = makeControls(this);
    this.made = controls;
    if (this.isReady) {
      this.#refreshControls(controls);
      this.afterPaint();
    }
    return controls;
  }

  /** What is selected, as Python knows it. */
  get selection() {
    return withoutRounds(this.graph, this.selected);
  }

  get palette() {
    return PALETTES[this.theme];
  }

  get scene() {
    return this.stage.scene;
  }

  async #start() {
    await this.apply(this.state, null);
    this.isReady = true;
    // A picture that needs no Graphviz looks as it would with it; the name is put right when it has started.
    this.host.dataset.engine = this.scene.stats.engineCalls > 0 ? this.scene.stats.engine : likelyEngine();
    this.host.dataset.ready = "true";
    whenShown(this.document, CONTROLS_DELAY_MS, () => this.signal.aborted || this.controls);
    this.#startEngine();
    const [first] = this.selected;
    if (first !== undefined) await this.select([...this.selected]);
    await this.#show(this.options.commands);
  }

  /** Most pictures need no Graphviz. It starts now, for later ones, unless the first has needed it. */
  #startEngine() {
    const start = () => {
      if (this.signal.aborted) return;
      this.run(this.layouter.ready().then((name) => void (this.host.dataset.engine = name)));
    };
    // Not at the first moment of rest, which may lie before the picture is on the screen.
    setTimeout(() => whenIdle(this.document, start), ENGINE_DELAY_MS);
  }

  /** With its many rows the outline takes as long as the map; it follows when that is on the screen. */
  #drawOutlineLater() {
    whenShown(this.document, OUTLINE_DELAY_MS, () => this.#drawOutline());
  }

  #drawOutline() {
    if (!this.isOutlineDue || this.signal.aborted) return;
    this.isOutlineDue = false;
    this.controls.outline.draw(this.scene, this.selected);
  }

  /** Work that nobody waits for: what goes wrong in it is shown. @param {Promise<unknown>} work */
  run(work) {
    work.catch((error) => this.fail(error));
  }

  /** @param {unknown} error */
  fail(error) {
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
    return this.#change(state, anchor, false);
  }

  /** Show another state from its start: so much changes that no place is worth keeping. @param {State} state */
  #restart(state) {
    return this.#change(state, null, true);
  }

  /** @type {(state: State, anchor: string | null, isRestart: boolean) => Promise<void>} */
  #change(state, anchor, isRestart) {
    this.state = state;
    const version = (this.version += 1);
    this.pending = this.#lay(version, state, (scene) => this.stage.show(scene, anchor, isRestart));
    return this.pending;
  }

  /** @type {(version: number, state: State, show: (scene: Scene) => Promise<void>) => Promise<void>} */
  async #lay(version, state, show) {
    const visible = visibleGraph(this.graph, state);
    const timer = setTimeout(() => (this.controls.busy.hidden = false), PATIENCE_MS);
    const scene = await this.layouter.layout(this.graph, visible).finally(() => clearTimeout(timer));
    if (this.signal.aborted) return;
    if (version !== this.version || scene === null) return this.pending;
    if (this.made) this.made.busy.hidden = true;
    this.standIn = standInFinder(this.graph, visible.items);
    const shown = show(scene);
    this.#refresh();
    // Nothing moves at first, and there is nothing to wait for.
    if (!this.isReady) this.stage.paintNow();
    await shown;
    if (version !== this.version) return this.pending;
    this.#drawOutlineLater();
  }

  /** @returns {number} index of the box that a view starts at; -1 for the beginning */
  startBox() {
    return this.isReady ? -1 : this.boxOf(failurePlace(this.graph));
  }

  /** Everything around the map that depends on the scene. */
  #refresh() {
    const { items } = this.scene.visible;
    this.isOutlineDue = true;
    this.#colour();
    if (this.made) this.#refreshControls(this.made);
    const known = items.filter(({ kind, id }) => kind === "node" || this.graph.calls[id]?.loop === undefined);
    this.options.onOpen(known.filter((item) => item.isOpen).map((item) => item.name));
    this.options.onVisible(known);
  }

  /** @param {import("./controls.js").Controls} controls */
  #refreshControls(controls) {
    showState(this, controls);
    showColours(this, controls);
    // Who works in it must find it up to date.
    if (controls.outline.isShown()) this.#drawOutline();
    // What is selected may have been opened, closed or folded.
    if (!controls.panel.hidden) showPanel(this);
  }

  modes() {
    return colourModes(this.graph, Object.keys(this.numbers).length > 0);
  }

  /** Colours by what the user has chosen. */
  recolour() {
    this.#colour();
    if (this.made) showColours(this, this.made);
  }

  #colour() {
    const { items } = this.scene.visible;
    this.colouring = colouring(this.graph, this.colourBy, this.palette, this.numbers, items, this.legend);
    this.emphasise();
  }

  /** Mark on the map what is selected, found and highlighted. */
  emphasise() {
    const boxesOf = (/** @type {Iterable<string>} */ names) =>
      new Set([...names].map((name) => this.boxOf(name)).filter((index) => index >= 0));
    const selected = boxesOf(this.selected);
    // Until something is selected, the way from the inputs to a failure stands out.
    const starts = selected.size > 0 ? selected : boxesOf([failurePlace(this.graph)]);
    const { colourOf } = this.colouring ?? { colourOf: () => null };
    this.stage.emphasis = {
      selected,
      hovered: -1,
      hoveredRoute: -1,
      hits: boxesOf([...this.found, ...this.highlighted]),
      ...reach(this.scene, starts),
      colourOf: (box) => colourOf(box.item),
      hasNote: ({ item }) =>
        Object.hasOwn(this.notes, item.name) || (item.kind === "node" && Boolean(this.graph.nodes[item.id].note)),
    };
    this.stage.requestPaint();
  }

  /** @param {string} name @returns {number} index of the box that is or holds what is named */
  boxOf(name) {
    return this.standIn?.(name) ?? -1;
  }

  /** @param {string} name */
  typeOf(name) {
    const { callByName, nodeByName } = indexGraph(this.graph);
    const call = this.graph.calls[callByName.get(name) ?? -1];
    if (call) return call.type;
    const node = this.graph.nodes[nodeByName.get(name) ?? -1];
    return node?.kind === "op" || node?.kind === "opaque" ? "operation" : (node?.kind ?? "");
  }

  /** What the pointer is on, in full: names on the map are shortened. @type {(box: number, route: number) => void} indices */
  showHint(box, route) {
    const over = this.scene.boxes[box];
    const line = this.scene.routes[route];
    const boxHint = over ? `${over.item.name}\n${describeBox(this.graph, over)}` : "";
    this.stage.element.title = line ? describeRoute(this.graph, this.scene, line) : boxHint;
  }

  /** @param {string} name @returns {Item | null} what the panel is about */
  itemOf(name) {
    const box = this.scene.boxes[this.stage.spatial.indexByName.get(name) ?? -1];
    if (box) return box.item;
    const { callByName, nodeByName } = indexGraph(this.graph);
    const call = callByName.get(name);
    const id = call ?? nodeByName.get(name);
    if (id === undefined) return null;
    return {
      name,
      kind: call === undefined ? "node" : "call",
      id,
      parent: null,
      isOpen: false,
      isOpenable: false,
      members: [],
      depth: 0,
    };
  }

  /** @param {boolean} isShown */
  toggleHelp(isShown) {
    this.controls.help.hidden = !isShown;
    if (isShown) /** @type {HTMLElement | null} */ (this.controls.help.firstElementChild)?.focus();
    else this.stage.element.focus({ preventScroll: true });
  }

  /** @param {boolean} isShown */
  toggleOutline(isShown) {
    if (isShown) this.#drawOutline();
    this.controls.outline.show(isShown);
    if (!isShown) this.stage.element.focus({ preventScroll: true });
  }

  hidePanel() {
    this.controls.panel.hidden = true;
    this.frame.classList.remove("with-panel");
    this.stage.element.focus({ preventScroll: true });
  }

  /** @returns {import("./stage.js").Insets} */
  insets() {
    const isSmall = this.stage.width <= 700;
    const panel = this.made?.panel;
    // The first picture makes room for the panel that follows.
    const hasPanel = panel ? !panel.hidden : this.selected.size > 0;
    const bottom = hasPanel && isSmall && panel ? panel.offsetHeight + 16 : 56;
    // A tall picture is narrow: it makes room for the minimap only where it would lie under it.
    const isWide = !isSmall && this.scene.width > this.stage.width - 2 * MAP_WIDTH;
    const bannerHeight = this.banner?.isConnected ? this.banner.offsetHeight + 8 : 0;
    return {
      top: (this.made?.toolbar.bar.offsetHeight ?? BAR_HEIGHT) + (isSmall ? 20 : 28) + bannerHeight,
      right: hasPanel && !isSmall ? 372 : 16,
      bottom,
      left: isWide ? MAP_WIDTH : 16,
    };
  }

  applyTheme() {
    this.frame.style.cssText = cssText(this.palette);
    this.host.dataset.theme = this.theme;
    this.stage.palette = this.palette;
    if (this.isReady) this.recolour();
  }

  afterPaint() {
    if (this.made === null) return;
    this.made.minimap.follow(this.stage.interaction.transform(), this.stage.width, this.stage.height, this.scene);
    showCrumbs(this);
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
    return this.stage.fit();
  }

  /**
   * @param {string[]} names
   * @param {boolean} [isMoving] bring what is selected into view
   */
  async select(names, isMoving = true) {
    this.selected = new Set(names.filter((name) => this.itemOf(name) !== null));
    this.problem = "";
    this.emphasise();
    this.controls.outline.select(this.selected);
    showPanel(this);
    this.options.onSelect(this.selection);
    const [last] = [...this.selected].slice(-1);
    const index = last === undefined ? -1 : this.boxOf(last);
    const box = this.scene.boxes[index];
    if (box) this.controls.spoken.textContent = describeBox(this.graph, box);
    if (box && isMoving) await this.stage.bringIntoView(index);
    await this.stage.painted();
  }

  /** The panel may have come over what was clicked. @param {number} index of a box */
  uncoverSoon(index) {
    clearTimeout(this.uncovering);
    this.uncovering = setTimeout(() => {
      if (!this.signal.aborted && !this.scene.boxes[index]?.item.isOpen) this.run(this.stage.uncover(index));
    }, DOUBLE_CLICK_MS);
  }

  /**
   * Show a node or call, opening what encloses it.
   *
   * @param {string} name
   * @param {boolean} isSelecting
   */
  async focus(name, isSelecting) {
    if (this.itemOf(name) === null) return;
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
      const look = { graph: this.graph, palette: this.palette, emphasis: this.stage.emphasis };
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
    if (changes.theme) this.applyTheme();
    if (changes.highlighted) this.highlighted = changes.highlighted;
    if (changes.notes) this.notes = changes.notes;
    if (changes.problem !== undefined) this.problem = changes.problem;
    if (changes.legend !== undefined) this.legend = changes.legend;
    if (changes.numbers) {
      this.numbers = changes.numbers;
      this.colourBy = Object.keys(this.numbers).length > 0 ? "numbers" : "type";
      this.controls.toolbar.setModes(this.modes(), this.colourBy);
    }
    if (this.isReady) this.recolour();
    if ((changes.problem || changes.notes) && this.made?.panel.hidden === false) showPanel(this);
    this.run(this.#updateState(changes));
  }

  /** @param {Record<string, any>} changes */
  async #updateState(changes) {
    if (changes.opened)
      await this.apply(startState(this.graph, { ...this.options, ...changes, opened: changes.opened }), null);
    if (changes.commands) {
      const state = changes.commands.reduce((/** @type {State} */ now, /** @type {Command} */ command) => {
        return obey(this.graph, now, command);
      }, this.state);
      await this.apply(state, null);
      await this.#show(changes.commands);
    }
    if (changes.selected) await this.select(changes.selected);
    if (changes.focus) await this.focus(changes.focus, false);
  }

  /** Bring into view what the last of some commands asks for. @param {Command[]} commands */
  async #show(commands) {
    const [name] = commands.findLast(([kind]) => kind === "focus")?.[1] ?? [];
    if (name !== undefined) await this.focus(name, false);
  }

  destroy() {
    this.controller.abort();
    this.layouter.destroy();
    this.host.remove();
  }

  stats() {
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
