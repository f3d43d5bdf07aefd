/**
 * The options of a view, as they come from Python (snake_case) or from a caller in JavaScript, checked and completed.
 *
 * @typedef {["open" | "close" | "focus", string[]]} Command what to do, and names
 *
 * @typedef {Object} Options
 * @property {number | null} depth levels of module calls that are open at the start; null leaves it to the view
 * @property {string | null} height as CSS; null fills the element
 * @property {string | null} width
 * @property {"auto"|"light"|"dark"} theme
 * @property {boolean | null} showConstants
 * @property {boolean | null} foldRepeats
 * @property {string[] | null} opened names of calls that are open at the start; comes before depth
 * @property {Command[]} commands what is opened, closed and shown after that, in order
 * @property {string[]} selected
 * @property {string[]} highlighted
 * @property {Record<string, number>} numbers to colour by, by name
 * @property {string} legend what the numbers are
 * @property {Record<string, string>} notes by name
 * @property {string} colourBy id of a mode of colours.js
 * @property {boolean} isPage the view is the page: no border
 * @property {boolean} useWorker
 * @property {import("./layout.js").WasmSource | null} wasm Graphviz; null lays out in plain JavaScript
 * @property {import("./values.js").Ask | null} values asks the kernel; null without one
 * @property {(names: string[]) => void} onSelect
 * @property {(names: string[]) => void} onOpen names of the open calls
 * @property {(items: import("./types.js").Item[]) => void} onVisible what is drawn
 */

/**
 * @param {Record<string, any>} given
 * @returns {Options}
 */
export function readOptions(given) {
  const theme = given.theme === "light" || given.theme === "dark" ? given.theme : "auto";
  const size = (/** @type {unknown} */ value) =>
    typeof value === "number" ? `${value}px` : typeof value === "string" ? value : null;
  return {
    depth: Number.isInteger(given.depth) && given.depth >= 0 ? given.depth : null,
    height: size(given.height),
    width: size(given.width),
    theme,
    showConstants: given.show_constants ?? given.showConstants ?? null,
    foldRepeats: given.fold_repeats ?? given.foldRepeats ?? null,
    opened: given.opened ?? null,
    commands: given.commands ?? [],
    selected: given.selected ?? [],
    highlighted: given.highlighted ?? [],
    numbers: given.numbers ?? {},
    legend: given.legend ?? "",
    notes: given.notes ?? {},
    colourBy: given.colour_by ?? given.colourBy ?? (Object.keys(given.numbers ?? {}).length > 0 ? "numbers" : "type"),
    isPage: given.isPage ?? false,
    useWorker: given.useWorker ?? true,
    wasm: given.wasm ?? null,
    values: given.values ?? null,
    onSelect: given.onSelect ?? (() => undefined),
    onOpen: given.onOpen ?? (() => undefined),
    onVisible: given.onVisible ?? (() => undefined),
  };
}
