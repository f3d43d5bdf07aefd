/**
 * What clicks and keys do to a view.
 *
 * @typedef {import("./view.js").View} View
 */
import { step } from "./walk.js";

/** @type {(view: View, index: number, isHandle: boolean, event: MouseEvent) => void} index of a box, -1 for the ground */
export function onClick(view, index, isHandle, event) {
  view.controls.toolbar.closeMenus();
  view.controls.search.close();
  const item = view.scene.boxes[index]?.item;
  if (!item) view.run(view.select([]));
  else if (isHandle) view.run(view.toggle(item, event.shiftKey));
  else if (event.shiftKey || event.ctrlKey || event.metaKey)
    view.run(view.select(withOrWithout(view.selected, item.name)));
  else {
    view.run(view.select([item.name], false));
    view.uncoverSoon(index);
  }
}

/** @type {(selected: Set<string>, name: string) => string[]} */
function withOrWithout(selected, name) {
  const names = [...selected];
  return names.includes(name) ? names.filter((other) => other !== name) : [...names, name];
}

/**
 * @type {(view: View, action: import("./interact.js").ActionName, event: KeyboardEvent) => boolean} false: nothing was done
 */
export function onAction(view, action, event) {
  const [name] = [...view.selected].slice(-1);
  const index = name === undefined ? -1 : view.boxOf(name);
  const box = view.scene.boxes[index];
  switch (action) {
    case "search":
      view.controls.search.focus();
      return true;
    case "fit":
      view.run(view.fit());
      return true;
    case "zoomTo":
      view.run(view.stage.zoomTo(index));
      return index >= 0;
    case "toggle":
      if (box) view.run(view.toggle(box.item, event.shiftKey));
      return box !== undefined;
    case "up":
    case "down":
    case "left":
    case "right":
      walk(view, index, action);
      return true;
    case "zoomIn":
    case "zoomOut":
      view.stage.zoomBy(action === "zoomIn" ? 1.4 : 1 / 1.4);
      return true;
    case "openAll":
      view.run(view.openAll());
      return true;
    case "closeAll":
      view.run(view.closeAll());
      return true;
    case "outline":
      view.toggleOutline(!view.controls.outline.isShown());
      return true;
    case "help":
      view.toggleHelp(view.controls.help.hidden === true);
      return true;
    case "escape":
      return escape(view);
  }
}

/** @type {(view: View) => boolean} */
function escape(view) {
  if (!view.controls.help.hidden) view.toggleHelp(false);
  else if (view.controls.outline.isShown()) view.toggleOutline(false);
  else if (view.controls.toolbar.closeMenus()) return true;
  else if (view.controls.search.isActive()) view.controls.search.clear();
  else if (view.selected.size > 0 || !view.controls.panel.hidden) view.run(view.select([]));
  else return false;
  return true;
}

/** @type {(view: View, index: number, direction: "up"|"down"|"left"|"right") => void} */
function walk(view, index, direction) {
  const box = view.scene.boxes[index];
  if (direction === "right" && box?.item.isOpenable) {
    view.run(view.toggle(box.item, false));
    return;
  }
  const next = view.scene.boxes[step(view.scene, index, direction)];
  if (next) view.run(view.select([next.item.name]));
}
