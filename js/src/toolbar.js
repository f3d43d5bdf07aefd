/**
 * The bar at the top: depth, colour, filters, fit, save, help.
 *
 * @typedef {import("./graphindex.js").Filter} Filter
 * @typedef {{filter: Filter, label: string, count: number, isHidden: boolean}} FilterRow
 * @typedef {"svg"|"png"|"json"} SaveFormat
 *
 * @typedef {Object} ToolbarHandlers
 * @property {(step: 1 | -1) => void} onDepth
 * @property {() => void} onOpenAll
 * @property {() => void} onCloseAll
 * @property {(mode: string) => void} onColour
 * @property {(filter: Filter, isHidden: boolean) => void} onFilter
 * @property {() => void} onFit
 * @property {(format: SaveFormat) => void} onSave
 * @property {() => void} onHelp
 */
import { element, icon } from "./dom.js";

const CARET = "M4.5 6.5l3.5 3.5l3.5 -3.5";
const UNFOLD = "M4.5 6l3.5 -3.5l3.5 3.5M4.5 10l3.5 3.5l3.5 -3.5";
const FOLD = "M4.5 2.5l3.5 3.5l3.5 -3.5M4.5 13.5l3.5 -3.5l3.5 3.5";

/**
 * @param {Document} document
 * @param {AbortSignal} signal
 * @param {HTMLElement} search
 * @param {{id: string, label: string}[]} modes
 * @param {ToolbarHandlers} handlers
 */
export function createToolbar(document, signal, search, modes, handlers) {
  const button = (
    /** @type {string} */ className,
    /** @type {string} */ label,
    /** @type {(Node | string)[]} */ content,
    /** @type {() => void} */ act,
  ) => {
    // A button with words is called by them; a name of its own would not match what is read on it.
    const hasWords = content.some((part) => typeof part === "string" && part.length > 1);
    const name = hasWords ? null : label;
    const made = element(
      document,
      "button",
      { type: "button", class: className, "aria-label": name, title: label },
      content,
    );
    made.addEventListener("click", act, { signal });
    return made;
  };
  const depthText = element(document, "b", {}, ["1"]);
  const depth = element(document, "div", { class: "box", role: "group", "aria-label": "Depth" }, [
    element(document, "span", { class: "wide" }, ["Depth"]),
    depthText,
    button("step", "One level less", ["−"], () => handlers.onDepth(-1)),
    button("step", "One level more", ["+"], () => handlers.onDepth(1)),
    button("step medium", "Open all modules (e)", [icon(document, UNFOLD)], handlers.onOpenAll),
    button("step medium", "Close all modules (c)", [icon(document, FOLD)], handlers.onCloseAll),
  ]);
  const select = element(document, "select", { "aria-label": "Colour by" });
  const setModes = (/** @type {{id: string, label: string}[]} */ list, /** @type {string} */ current) => {
    select.replaceChildren(...list.map(({ id, label }) => element(document, "option", { value: id }, [label])));
    select.value = current;
  };
  setModes(modes, "type");
  select.addEventListener("change", () => handlers.onColour(select.value), { signal });
  const colour = element(document, "div", { class: "box medium" }, [
    element(document, "span", { class: "wide" }, ["Colour"]),
    select,
    caret(document),
  ]);
  const hiddenText = element(document, "b", {}, ["nothing"]);
  const hidden = menuBox(
    document,
    signal,
    "Hidden",
    [element(document, "span", { class: "wide" }, ["Hidden"]), hiddenText, icon(document, CARET)],
    "",
  );
  const save = menuBox(document, signal, "Save", ["Save", icon(document, CARET)], " right");
  for (const [format, label] of /** @type {[SaveFormat, string][]} */ ([
    ["svg", "SVG picture"],
    ["png", "PNG picture"],
    ["json", "JSON document"],
  ])) {
    save.menu.append(
      button("", label, [label], () => {
        save.close();
        handlers.onSave(format);
      }),
    );
  }
  const more = button("box narrow", "More controls", ["⋯"], () => {
    const isShown = bar.classList.toggle("more");
    more.setAttribute("aria-expanded", String(isShown));
  });
  more.setAttribute("aria-expanded", "false");
  const bar = element(document, "div", { class: "bar", role: "toolbar", "aria-label": "View" }, [
    search,
    depth,
    colour,
    hidden.box,
    element(document, "div", { class: "grow" }),
    button(
      "box",
      "Fit the whole graph (f)",
      ["Fit", element(document, "kbd", { class: "medium", "aria-hidden": "true" }, ["f"])],
      handlers.onFit,
    ),
    save.box,
    more,
    button("box medium", "Help (?)", [element(document, "kbd", {}, ["?"])], handlers.onHelp),
  ]);
  hidden.box.classList.add("medium");
  return {
    bar,
    setModes,
    /** @param {string} text */
    setDepth: (text) => {
      depthText.textContent = text;
    },
    /** @param {FilterRow[]} rows */
    setFilters: (rows) => {
      hiddenText.textContent = hiddenSummary(rows);
      hidden.menu.replaceChildren(...rows.map((row) => filterRow(document, signal, row, handlers.onFilter)));
    },
    closeMenus: () => [hidden, save].filter((menu) => menu.close()).length > 0,
  };
}

/** @param {Document} document */
function caret(document) {
  const drawing = icon(document, CARET);
  drawing.classList.add("caret");
  return drawing;
}

/**
 * @param {FilterRow[]} rows
 * @returns {string}
 */
export function hiddenSummary(rows) {
  const hidden = rows.filter((row) => row.isHidden && row.count > 0);
  if (hidden.length === 0) return "nothing";
  const total = hidden.reduce((sum, row) => sum + row.count, 0);
  const [first] = hidden;
  return hidden.length === 1 && first ? `${first.count} ${first.label}` : `${total} nodes`;
}

/** @type {(document: Document, signal: AbortSignal, row: FilterRow, onFilter: (filter: Filter, isHidden: boolean) => void) => HTMLElement} */
function filterRow(document, signal, row, onFilter) {
  const box = element(document, "input", { type: "checkbox", checked: row.isHidden, disabled: row.count === 0 });
  box.addEventListener("change", () => onFilter(row.filter, box.checked), { signal });
  return element(document, "label", {}, [
    box,
    `hide ${row.label}`,
    element(document, "span", { class: "end" }, [String(row.count)]),
  ]);
}

/** @type {(document: Document, signal: AbortSignal, label: string, content: (Node | string)[], side: string) => {box: HTMLElement, menu: HTMLElement, close: () => boolean}} */
function menuBox(document, signal, label, content, side) {
  const opener = element(
    document,
    "button",
    { type: "button", class: "box", "aria-expanded": "false", "aria-haspopup": "true" },
    content,
  );
  const menu = element(document, "div", { class: `menu${side}`, role: "group", "aria-label": label, hidden: true });
  const box = element(document, "div", { class: "menu-box" }, [opener, menu]);
  box.style.position = "relative";
  const toggle = (/** @type {boolean} */ isOpen) => {
    const wasOpen = !menu.hidden;
    menu.hidden = !isOpen;
    opener.setAttribute("aria-expanded", String(isOpen));
    return wasOpen;
  };
  opener.addEventListener("click", () => toggle(menu.hidden === true), { signal });
  box.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || menu.hidden) return;
      toggle(false);
      opener.focus();
      event.stopPropagation();
    },
    { signal },
  );
  box.addEventListener(
    "focusout",
    (event) => {
      const next = /** @type {Node | null} */ (event.relatedTarget);
      if (next !== null && !box.contains(next)) toggle(false);
    },
    { signal },
  );
  return { box, menu, close: () => toggle(false) };
}
