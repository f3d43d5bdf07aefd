/**
 * Makes the parts of a view and connects them to it.
 *
 * @typedef {import("./view.js").View} View
 */
import { errorBanner } from "./banner.js";
import { statusChip } from "./chrome.js";
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
export function makeSearch(view) {
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

/** @param {View} view */
export function makeToolbar(view) {
  return createToolbar(view.document, view.signal, view.search.box, view.modes(), {
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
export function makeMinimap(view) {
  return createMinimap(view.document, view.signal, (x, y) => {
    const { k } = view.stage.interaction.transform();
    const { width, height } = view.stage;
    void view.stage.interaction.moveTo({ k, x: width / 2 - x * k, y: height / 2 - y * k }, false);
  });
}

/** @param {View} view */
export function makeOutline(view) {
  return createOutline(view.document, view.signal, view.graph, {
    onSelect: (name) => view.run(view.select([name])),
    onToggle: (name, isOpen) => view.run(isOpen ? view.open(name) : view.close(name)),
    onClose: () => view.toggleOutline(false),
  });
}

/** @param {View} view */
export function makeParts(view) {
  const { document, graph } = view;
  const panel = element(document, "aside", { class: "panel", "aria-label": "Details", tabindex: -1, hidden: true });
  panel.addEventListener("animationend", () => panel.classList.remove("arriving"), { signal: view.signal });
  const banner = errorBanner(document, graph, view.signal, {
    onGo: (place) => view.run(view.focus(place, true)),
    onCopy: (report) => copyText(document, view.root, report),
    onClose: () => banner?.remove(),
  });
  return {
    panel,
    banner,
    crumbs: element(document, "nav", { class: "chip crumbs", "aria-label": "Enclosing modules", hidden: true }),
    legend: element(document, "div", { class: "chip legend", hidden: true }),
    busy: element(document, "div", { class: "chip busy", role: "status", hidden: true }, ["laying out…"]),
    spoken: element(document, "div", { class: "unseen", "aria-live": "polite" }),
  };
}

/** @param {View} view */
export function assemble(view) {
  const { document, parts } = view;
  const bottom = element(document, "div", { class: "bottom" }, [
    statusChip(document, view.graph),
    parts.crumbs,
    parts.legend,
  ]);
  const frame = element(document, "div", { class: view.options.isPage ? "frame" : "frame embedded" }, [
    view.toolbar.bar,
    view.stage.element,
    view.minimap.box,
    view.outline.box,
    bottom,
    parts.banner,
    parts.busy,
    parts.panel,
    view.help,
    parts.spoken,
  ]);
  view.root.append(element(document, "style", {}, [STYLE]), frame);
  view.stage.element.addEventListener("pointerdown", () => clearTimeout(view.uncovering), { signal: view.signal });
  // A page has the keys to itself; in a notebook they are the view's only while the focus is in it.
  listenToKeys(view.options.isPage ? document : frame, view.signal, (action, event) => onAction(view, action, event));
  if (view.options.theme === "auto") {
    watchTheme(document, view.signal, (theme) => {
      view.theme = theme;
      view.applyTheme();
    });
  }
  return frame;
}
