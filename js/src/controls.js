/**
 * What frames the map: makes it, connects it to the view and keeps it up to date.
 *
 * @typedef {import("./view.js").View} View
 */
import { legendContent } from "./chrome.js";
import { createToolbar } from "./toolbar.js";
import { createSearch } from "./search.js";
import { findNames } from "./query.js";
import { createOutline } from "./outline.js";
import { createMinimap } from "./minimap.js";
import { element } from "./dom.js";
import { helpOverlay, statusChip } from "./chrome.js";
import { openLevels } from "./states.js";
import { familyOf } from "./theme.js";

/** @type {Record<import("./graphindex.js").Filter, string>} */
const FILTER_LABELS = {
  constants: "constants",
  parameters: "parameters",
  shapeOnly: "shape-only operations",
  dead: "dead branches",
};

/** @param {View} view */
function makeSearch(view) {
  return createSearch(view.document, view.signal, {
    find: (query) => findNames(view.graph, query),
    onFound: (names) => {
      view.found = names;
      view.emphasise();
    },
    onPick: (name) => view.run(view.focus(name, true)),
    describe: (name) => view.typeOf(name),
    onLeave: () => view.stage.element.focus({ preventScroll: true }),
  });
}

/** @type {(view: View, search: HTMLElement) => ReturnType<typeof createToolbar>} */
function makeToolbar(view, search) {
  return createToolbar(view.document, view.signal, search, view.modes(), {
    onDepth: (change) => view.run(view.changeDepth(change)),
    onOpenAll: () => view.run(view.openAll()),
    onCloseAll: () => view.run(view.closeAll()),
    onColour: (mode) => {
      view.colourBy = mode;
      view.recolour();
    },
    onFilter: (filter, isHidden) => {
      view.run(view.apply({ ...view.state, hide: { ...view.state.hide, [filter]: isHidden } }, null));
    },
    onFit: () => view.run(view.fit()),
    onSave: (format) => view.run(view.save(format)),
    onHelp: () => view.toggleHelp(true),
  });
}

/** @param {View} view */
function makeMinimap(view) {
  return createMinimap(view.document, view.signal, (x, y) => {
    const { k } = view.stage.interaction.transform();
    const { width, height } = view.stage;
    void view.stage.interaction.moveTo({ k, x: width / 2 - x * k, y: height / 2 - y * k }, false);
  });
}

/** @param {View} view */
function makeOutline(view) {
  return createOutline(view.document, view.signal, view.graph, {
    onSelect: (name) => view.run(view.select([name])),
    onToggle: (name, isOpen) => view.run(isOpen ? view.open(name) : view.close(name)),
    onClose: () => view.toggleOutline(false),
  });
}

/** @typedef {ReturnType<typeof makeControls>} Controls */

/**
 * What frames the map, put into the frame in the order in which the tab key goes through it.
 *
 * @param {View} view
 */
export function makeControls(view) {
  const { document, signal, frame, stage } = view;
  const search = makeSearch(view);
  const controls = {
    search,
    toolbar: makeToolbar(view, search.box),
    minimap: makeMinimap(view),
    outline: makeOutline(view),
    help: helpOverlay(document, signal, () => view.toggleHelp(false)),
    panel: element(document, "aside", { class: "panel", "aria-label": "Details", tabindex: -1, hidden: true }),
    crumbs: element(document, "nav", { class: "chip crumbs", "aria-label": "Enclosing modules", hidden: true }),
    legend: element(document, "div", { class: "chip legend", hidden: true }),
    busy: element(document, "div", { class: "chip busy", role: "status", hidden: true }, ["laying out…"]),
    spoken: element(document, "div", { class: "unseen", "aria-live": "polite" }),
  };
  const { panel } = controls;
  panel.addEventListener("animationend", () => panel.classList.remove("arriving"), { signal });
  const bottom = element(document, "div", { class: "bottom" }, [
    statusChip(document, view.graph),
    controls.crumbs,
    controls.legend,
  ]);
  frame.prepend(controls.toolbar.bar);
  stage.element.after(controls.minimap.box, controls.outline.box, bottom);
  frame.append(controls.busy, panel, controls.help, controls.spoken);
  return controls;
}

/** The toolbar says how deep the map is open and what is hidden. @type {(view: View, controls: Controls) => void} */
export function showState(view, { toolbar }) {
  const { items, hidden } = view.scene.visible;
  const filters = /** @type {import("./graphindex.js").Filter[]} */ (Object.keys(FILTER_LABELS));
  toolbar.setDepth(String(openLevels(items).deepest));
  toolbar.setFilters(
    filters.map((filter) => ({
      filter,
      label: FILTER_LABELS[filter],
      count: hidden[filter],
      isHidden: view.state.hide[filter],
    })),
  );
}

/** Legend and minimap. @type {(view: View, controls: Controls) => void} */
export function showColours(view, { legend, minimap }) {
  const { document, graph, palette, scene, colouring } = view;
  if (!colouring) return;
  const content = view.colourBy === "type" ? [] : legendContent(document, colouring);
  legend.replaceChildren(...content);
  legend.hidden = content.length === 0;
  const plain = palette.edge;
  const fills = scene.boxes.map(
    ({ item }) =>
      colouring.colourOf(item) ??
      (item.kind === "node" ? plain : palette.families[familyOf(graph.calls[item.id]?.type ?? "")]),
  );
  minimap.draw(scene, palette, (index) => fills[index] ?? plain, document.defaultView?.devicePixelRatio ?? 1);
}
