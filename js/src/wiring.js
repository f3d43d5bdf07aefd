/**
 * Makes the parts of a view and connects them to it.
 *
 * @typedef {import("./view.js").View} View
 */
import { errorBanner } from "./banner.js";
import { helpOverlay, statusChip } from "./chrome.js";
import { copyText } from "./saving.js";
import { element } from "./dom.js";
import { listenToKeys } from "./interact.js";
import { onAction, onClick } from "./actions.js";
import { createMinimap } from "./minimap.js";
import { createOutline } from "./outline.js";
import { findNames } from "./query.js";
import { createSearch } from "./search.js";
import { Stage } from "./stage.js";
import { STYLE } from "./style.js";
import { watchTheme } from "./theme.js";
import { createToolbar } from "./toolbar.js";

/** @param {View} view @returns {Stage} */
export function makeStage(view) {
  return new Stage(view.document, view.graph, view.palette, view.signal, {
    onClick: (index, isHandle, event) => onClick(view, index, isHandle, event),
    onDoubleClick: (index, isHandle) => {
      const item = view.scene.boxes[index]?.item;
      if (item && !isHandle) view.run(view.toggle(item, false));
    },
    onHover: (box, route) => view.showHint(box, route),
    onPainted: () => view.afterPaint(),
    insets: () => view.insets(),
    startBox: () => view.startBox(),
  });
}

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

/** What went wrong in the forward; it takes room from the first view. @param {View} view */
export function makeBanner(view) {
  const { document } = view;
  const banner = errorBanner(document, view.graph, view.signal, {
    onGo: (place) => view.run(view.focus(place, true)),
    onCopy: (report) => copyText(document, view.root, report),
    onClose: () => banner?.remove(),
  });
  return banner;
}

/**
 * The frame with the map alone, as it is first painted.
 *
 * @param {View} view
 */
export function makeFrame(view) {
  const { document, options, stage, signal } = view;
  const className = options.isPage ? "frame" : "frame embedded";
  const frame = element(document, "div", { class: className }, [stage.element, view.banner]);
  view.root.append(element(document, "style", {}, [STYLE]), frame);
  stage.element.addEventListener("pointerdown", () => clearTimeout(view.uncovering), { signal });
  // A page has the keys to itself; in a notebook they are the view's only while the focus is in it.
  listenToKeys(options.isPage ? document : frame, signal, (action, event) => onAction(view, action, event));
  if (options.theme === "auto") {
    watchTheme(document, signal, (theme) => {
      view.theme = theme;
      view.applyTheme();
    });
  }
  return frame;
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
