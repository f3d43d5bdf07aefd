/**
 * The search box: a combobox over names, with the query language of query.js.
 *
 * @typedef {Object} SearchHandlers
 * @property {(query: string) => string[]} find
 * @property {(names: string[]) => void} onFound what is found at the moment, to be marked on the map
 * @property {(name: string) => void} onPick
 * @property {(name: string) => string} describe type of a call or operation of a node
 * @property {() => void} onLeave give the focus back to the map
 */
import { element, icon } from "./dom.js";
import { shortName } from "./format.js";

const GLASS = "M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0 -9M10.5 10.5L14 14";
/** Longer lists are read by nobody; the map marks all of them. */
const MOST_RESULTS = 60;
const EXAMPLES = ["op:softmax", "in:h.3 type:Linear", "shape:*,768 -kind:input", "status:failed"];

/**
 * @param {Document} document
 * @param {AbortSignal} signal
 * @param {SearchHandlers} handlers
 */
export function createSearch(document, signal, handlers) {
  const input = element(document, "input", {
    type: "search",
    role: "combobox",
    "aria-label": "Search nodes and modules",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": "results",
    placeholder: "Search: name, op:, in:, shape:…",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
  });
  const count = element(document, "span", { class: "count", "aria-live": "polite" });
  const list = element(document, "div", {
    class: "menu results",
    role: "listbox",
    id: "results",
    "aria-label": "Search results",
    hidden: true,
  });
  const hint = element(document, "kbd", { class: "medium", "aria-hidden": "true" }, ["/"]);
  const box = element(document, "div", { class: "box search" }, [icon(document, GLASS), input, count, hint, list]);
  /** @type {string[]} */
  let names = [];
  let active = 0;

  const show = (/** @type {boolean} */ isShown) => {
    list.hidden = !isShown;
    input.setAttribute("aria-expanded", String(isShown));
    if (!isShown) input.removeAttribute("aria-activedescendant");
  };
  const activate = (/** @type {number} */ index) => {
    const options = [...list.querySelectorAll('[role="option"]')];
    active = options.length === 0 ? 0 : (index + options.length) % options.length;
    options.forEach((option, at) => option.setAttribute("aria-selected", String(at === active)));
    const option = options[active];
    if (!option) return;
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView?.({ block: "nearest" });
  };
  const refresh = () => {
    const query = input.value.trim();
    names = query === "" ? [] : handlers.find(query);
    count.textContent = query === "" ? "" : `${names.length} found`;
    hint.hidden = query !== "";
    list.replaceChildren(...(query === "" ? hints(document) : optionsOf(document, names, handlers.describe)));
    show(true);
    activate(0);
    handlers.onFound(names);
  };
  const pick = (/** @type {number} */ index) => {
    const name = names[index];
    if (name === undefined) return;
    activate(index);
    handlers.onPick(name);
  };
  const clear = () => {
    input.value = "";
    names = [];
    count.textContent = "";
    hint.hidden = false;
    show(false);
    handlers.onFound([]);
  };
  input.addEventListener("input", refresh, { signal });
  input.addEventListener("focus", refresh, { signal });
  box.addEventListener(
    "focusout",
    (event) => {
      if (!box.contains(/** @type {Node | null} */ (event.relatedTarget))) show(false);
    },
    { signal },
  );
  input.addEventListener("keydown", (event) => onKey(event), { signal });
  // The focus stays in the box, otherwise the list would close before the click arrives.
  list.addEventListener("pointerdown", (event) => event.preventDefault(), { signal });
  list.addEventListener(
    "click",
    (event) => {
      const option = /** @type {Element} */ (event.target).closest("[data-index]");
      const example = /** @type {Element} */ (event.target).closest("[data-example]");
      if (option) {
        pick(Number(option.getAttribute("data-index")));
        show(false);
      } else if (example) {
        input.value = example.getAttribute("data-example") ?? "";
        refresh();
      }
    },
    { signal },
  );

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key === "ArrowDown") activate(active + 1);
    else if (event.key === "ArrowUp") activate(active - 1);
    else if (event.key === "Enter") {
      pick(active);
      // Enter again goes to the next one.
      const next = active + 1;
      if (event.shiftKey || names.length < 2) show(false);
      else activate(next);
    } else if (event.key === "Escape") {
      clear();
      handlers.onLeave();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  return {
    box,
    focus: () => {
      input.focus({ preventScroll: true });
      input.select();
    },
    clear,
    close: () => show(false),
    isActive: () => names.length > 0 || input.value !== "",
  };
}

/** @param {Document} document */
function hints(document) {
  const examples = EXAMPLES.map((example) =>
    element(document, "button", { type: "button", tabindex: "-1", "data-example": example, role: "presentation" }, [
      element(document, "code", {}, [example]),
    ]),
  );
  return [
    element(document, "div", { class: "hint", role: "presentation" }, ["Part of a name or type, or for example:"]),
    ...examples,
  ];
}

/** @type {(document: Document, names: string[], describe: (name: string) => string) => HTMLElement[]} */
function optionsOf(document, names, describe) {
  if (names.length === 0)
    return [element(document, "div", { class: "hint", role: "presentation" }, ["Nothing found."])];
  const options = names.slice(0, MOST_RESULTS).map((name, index) => {
    const short = shortName(name);
    const kind = describe(name);
    return element(
      document,
      "div",
      { role: "option", id: `result-${index}`, "data-index": index, "data-name": name, "aria-selected": "false" },
      [
        element(document, "b", {}, [short]),
        " ",
        element(document, "span", { class: "muted" }, [kind]),
        short === name ? null : element(document, "span", { class: "path" }, [name]),
      ],
    );
  });
  const rest = names.length - options.length;
  return rest > 0
    ? [
        ...options,
        element(document, "div", { class: "hint", role: "presentation" }, [`and ${rest} more, marked on the map`]),
      ]
    : options;
}
