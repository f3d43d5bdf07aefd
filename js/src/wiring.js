/**
 * Makes the parts of a view and connects them to it.
 *
 * @typedef {import("./view.js").View} View
 */
import { errorBanner } from "./banner.js";
import { copyText } from "./saving.js";
import { element } from "./dom.js";
import { listenToKeys } from "./interact.js";
import { onAction, onClick } from "./actions.js";
import { Stage } from "./stage.js";
import { STYLE } from "./style.js";
import { watchTheme } from "./theme.js";

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
