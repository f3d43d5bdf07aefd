/**
 * The side panel: everything that is known of the selected node or module call. Text reaches the page as text only.
 *
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").GraphNode} GraphNode
 * @typedef {import("./types.js").ModuleCall} ModuleCall
 * @typedef {import("./types.js").Item} Item
 *
 * @typedef {Object} PanelHandlers
 * @property {() => void} onClose
 * @property {(text: string) => Promise<boolean>} copy
 * @property {(name: string) => void} onGo select and show another node or call
 * @property {import("./values.js").Ask | null} values null without a kernel
 * @property {HTMLElement | null} keptValues what the panel shows of the same item already
 * @property {{shown: number, total: number, members: number[]} | null} run the repetition that the call is a part of
 * @property {(which: "all" | {from: number, to: number}) => void} onUnfold show members of a repeat one by one
 * @property {() => void} onFold show the repetition as one box again
 */
import { element, icon, withCode } from "./dom.js";
import { formatBytes, formatMetric, formatSpec, metricLabel, shortName } from "./format.js";
import { isValueMetric, valuesBody } from "./values.js";

const COPY = "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3";
const CROSS = "M4 4l8 8M12 4l-8 8";
/** Rows of a list before the rest is only counted. */
const MOST_ROWS = 12;

/**
 * @param {Document} document
 * @param {Graph} graph
 * @param {Item} item
 * @param {string | null} note text from Python
 * @param {PanelHandlers} handlers
 * @returns {Node[]} the content of the panel
 */
export function panelContent(document, graph, item, note, handlers) {
  const row = /** @type {GraphNode | ModuleCall} */ (
    item.kind === "node" ? graph.nodes[item.id] : graph.calls[item.id]
  );
  const context = { document, graph, item, row, handlers };
  return [
    heading(context),
    failureSection(context),
    repeatSection(context),
    noteSection(document, [item.kind === "node" ? /** @type {GraphNode} */ (row).note : null, note]),
    dataSection(context),
    sourceSection(context),
    valuesSection(context),
    cutSection(context),
  ].filter((part) => part !== null);
}

/** @typedef {{document: Document, graph: Graph, item: Item, row: GraphNode | ModuleCall, handlers: PanelHandlers}} Context */

/** @param {Context} context @returns {boolean} */
const isNode = ({ item }) => item.kind === "node";

/** @param {Context} context */
function heading(context) {
  const { document, row, item, handlers } = context;
  const close = element(document, "button", { type: "button", class: "plain close", "aria-label": "Close the panel" }, [
    icon(document, CROSS),
  ]);
  close.addEventListener("click", handlers.onClose);
  const short = shortName(row.name);
  const type = isNode(context) ? kindLabel(/** @type {GraphNode} */ (row)) : /** @type {ModuleCall} */ (row).type;
  const count = item.kind === "repeat" ? ` ×${item.members.length}` : "";
  return element(document, "header", { class: "panel-head" }, [
    element(document, "h2", { class: "panel-title" }, [
      short,
      " ",
      element(document, "span", { class: "muted" }, [`${type}${count}`]),
    ]),
    close,
    copyRow(document, row.name, "panel-path", handlers),
  ]);
}

/** @param {GraphNode} node */
function kindLabel(node) {
  if (node.kind === "op") return "operation";
  return node.kind === "opaque" ? "opaque operation" : node.kind;
}

/** @type {(document: Document, text: string, className: string, handlers: PanelHandlers) => HTMLElement} */
function copyRow(document, text, className, handlers) {
  const button = element(
    document,
    "button",
    { type: "button", class: "plain copy", "aria-label": "Copy", title: "Copy" },
    [icon(document, COPY)],
  );
  button.addEventListener("click", async () => {
    const done = await handlers.copy(text);
    button.classList.toggle("done", done);
    button.setAttribute("aria-label", done ? "Copied" : "Copying is not allowed here");
    button.title = button.getAttribute("aria-label") ?? "";
  });
  return element(document, "div", { class: `${className} copyable` }, [element(document, "span", {}, [text]), button]);
}

/** @type {(document: Document, title: string, content: (Node | null)[]) => HTMLElement} */
function section(document, title, content) {
  return element(document, "section", {}, [element(document, "h3", {}, [title]), ...content]);
}

/** @type {(document: Document, rows: [string, (Node | string)[], string?][]) => HTMLElement} */
function table(document, rows) {
  const list = element(document, "dl", {});
  for (const [label, lines, className] of rows) {
    list.append(element(document, "dt", {}, [label]));
    list.append(
      element(
        document,
        "dd",
        { class: className },
        lines.map((line) => element(document, "div", {}, [line])),
      ),
    );
  }
  return list;
}

/** @param {Context} context */
function failureSection({ document, graph, item, row }) {
  if (row.status !== "failed") return null;
  const isNode = item.kind === "node";
  const error = graph.errors.find(({ node, calls }) => (isNode ? node === item.id : calls.includes(item.id)));
  if (!error) return null; // an error that the model caught itself; its note tells
  return element(document, "section", { class: "failure" }, [
    element(document, "h3", {}, [isNode ? "Failed here" : "Failed inside"]),
    element(document, "p", { class: "strong" }, [`${error.type}: ${error.message}`]),
    error.explanation ? element(document, "p", {}, withCode(document, error.explanation)) : null,
    ...error.suggestions.map((suggestion) => element(document, "p", {}, ["→ ", ...withCode(document, suggestion)])),
  ]);
}

/** @param {Context} context */
function repeatSection({ document, item, handlers }) {
  const { run } = handlers;
  if (!run) return null;
  const button = (/** @type {string} */ text, /** @type {() => void} */ act) => {
    const made = element(document, "button", { type: "button", class: "act" }, [text]);
    made.addEventListener("click", act);
    return made;
  };
  if (item.kind !== "repeat") {
    return section(document, "Repeats", [
      element(document, "div", { class: "acts" }, [
        `one of ${run.total} equal blocks`,
        button("Fold", handlers.onFold),
      ]),
    ]);
  }
  const count = item.members.length;
  const number = (/** @type {string} */ label, /** @type {number} */ value) =>
    element(document, "input", { type: "number", min: 1, max: count, value, "aria-label": label });
  const from = number("First block to show", 1);
  const to = number("Last block to show", Math.min(3, count));
  const showRange = () => {
    const [first, last] = [Number(from.value), Number(to.value)].sort((a, b) => a - b);
    handlers.onUnfold({
      from: Math.max(/** @type {number} */ (first), 1) - 1,
      to: Math.min(/** @type {number} */ (last), count),
    });
  };
  return section(document, "Repeats", [
    element(document, "div", { class: "acts" }, [
      `${count} equal blocks`,
      button("Show all", () => handlers.onUnfold("all")),
    ]),
    element(document, "div", { class: "acts" }, ["show", from, "to", to, button("Show", showRange)]),
  ]);
}

/** @type {(document: Document, notes: (string | null)[]) => HTMLElement | null} */
function noteSection(document, notes) {
  const given = notes.filter((text) => text);
  if (given.length === 0) return null;
  return element(
    document,
    "section",
    { class: "notes" },
    given.map((text) => element(document, "p", {}, [text])),
  );
}

/** @param {Context} context */
function dataSection(context) {
  const { document, graph, row } = context;
  /** @type {[string, (Node | string)[], string?][]} */
  const rows = [];
  const add = (/** @type {string} */ label, /** @type {string[]} */ lines, className = "mono") => {
    if (lines.length > 0)
      rows.push([
        label,
        lines.length > MOST_ROWS ? [...lines.slice(0, MOST_ROWS), `and ${lines.length - MOST_ROWS} more`] : lines,
        className,
      ]);
  };
  add("in", inputLines(context));
  add(
    "out",
    row.outputs.map((index) => specLine(graph, index, true)),
  );
  add("parameters", isNode(context) ? [] : parameterLines(graph, /** @type {ModuleCall} */ (row)));
  add("arguments", argumentLines(context));
  // Zero stands for what is not known, or says nothing; the size of a single result stands beside it.
  const costs = Object.entries(row.metrics).filter(
    ([name, value]) => value !== 0 && !isValueMetric(name) && (name !== "size_bytes" || row.outputs.length > 1),
  );
  const cost = costs.map(([name, value]) =>
    name === "parameters" || name === "flops"
      ? formatMetric(name, value)
      : `${formatMetric(name, value)} ${costWord(name)}`.trim(),
  );
  add("cost", cost.length > 0 ? [cost.join(" · ")] : [], "");
  return rows.length === 0 ? null : section(document, "Data", [table(document, rows)]);
}

/** @param {string} name of a metric */
const costWord = (name) => (name === "size_bytes" ? "of results" : /_ms$/.test(name) ? "" : metricLabel(name));

/** @type {(graph: Graph, index: number, withBytes: boolean) => string} */
function specLine(graph, index, withBytes) {
  const spec = graph.specs[index];
  if (!spec) return "";
  const place = spec.device === "cpu" || spec.device === "" ? "" : ` · ${spec.device}`;
  const size = withBytes && spec.sizeBytes > 0 ? ` · ${formatBytes(spec.sizeBytes)}` : "";
  return `${formatSpec(spec)}${size}${place}`;
}

/** @param {Context} context @returns {string[]} */
function inputLines(context) {
  const { graph, row } = context;
  if (!isNode(context)) return /** @type {ModuleCall} */ (row).inputs.map((index) => specLine(graph, index, false));
  return graph.edges
    .filter((edge) => edge.head === row.id)
    .map((edge) => {
      const spec = graph.specs[edge.spec];
      return `${edge.slot && /** @type {GraphNode} */ (row).kind !== "output" ? `${edge.slot}: ` : ""}${spec ? formatSpec(spec) : ""}`;
    });
}

/** @type {(graph: Graph, call: ModuleCall) => string[]} parameters and buffers that the module itself holds */
function parameterLines(graph, call) {
  if (call.fqn === null) return [];
  const prefix = call.fqn === "" ? "" : `${call.fqn}.`;
  return graph.nodes
    .filter((node) => (node.kind === "parameter" || node.kind === "buffer") && node.name.startsWith(prefix))
    .filter((node) => !node.name.slice(prefix.length).includes("."))
    .map((node) => {
      const spec = graph.specs[node.outputs[0] ?? -1];
      return `${node.name.slice(prefix.length)} ${spec ? formatSpec(spec).replace(/ float32$/, "") : ""}`;
    });
}

/** @param {Context} context @returns {string[]} */
function argumentLines(context) {
  const { row } = context;
  if (isNode(context)) return /** @type {GraphNode} */ (row).arguments.map(([name, text]) => `${name}=${text}`);
  const { detail } = /** @type {ModuleCall} */ (row);
  return detail === "" ? [] : splitDetail(detail);
}

/**
 * `extra_repr()` at its outer commas: one argument a line.
 *
 * @param {string} detail
 * @returns {string[]}
 */
export function splitDetail(detail) {
  const parts = [""];
  let depth = 0;
  for (const character of detail) {
    if ("([{".includes(character)) depth += 1;
    if (")]}".includes(character)) depth -= 1;
    if ((character === "," && depth === 0) || character === "\n") parts.push("");
    else parts[parts.length - 1] += character;
  }
  return parts.map((part) => part.trim()).filter(Boolean);
}

/** @param {Context} context */
function sourceSection({ document, graph, row, handlers }) {
  const source = row.source === null ? undefined : graph.sources[row.source];
  if (!source) return null;
  const place = `${source.file.split(/[\\/]/).pop()}:${source.line}`;
  const indent = Math.min(
    ...source.code.filter((line) => line.trim()).map((line) => line.length - line.trimStart().length),
    40,
  );
  const lines = source.code.map((line, index) => {
    const isHere = source.firstLine + index === source.line;
    return element(document, "div", { class: isHere ? "code-line here" : "code-line" }, [
      element(document, "span", { class: "code-number", "aria-hidden": "true" }, [String(source.firstLine + index)]),
      element(document, "span", {}, [line.slice(indent) || " "]),
    ]);
  });
  const head = copyRow(document, place, "code-place", {
    ...handlers,
    copy: () => handlers.copy(`${source.file}:${source.line}`),
  });
  head.title = `${source.file}:${source.line}, in ${source.function}`;
  return section(document, "Source", [
    element(document, "div", { class: "code", tabindex: 0, role: "group", "aria-label": "Source lines" }, [
      head,
      ...lines,
    ]),
  ]);
}

/** @param {Context} context */
function valuesSection({ document, row, handlers }) {
  if (row.outputs.length === 0) return null;
  const body = handlers.keptValues ?? valuesBody(document, row.name, row.metrics, handlers.values);
  return body && section(document, "Values", [body]);
}

/** @param {Context} context */
function cutSection({ document, row, handlers }) {
  if (row.status === "failed" || row.outputs.length === 0) return null;
  const line = `trace.extract(node_out=${pythonString(row.name)})`;
  const shown = element(document, "div", { class: "code", tabindex: 0, role: "group", "aria-label": "Python line" }, [
    copyRow(document, line, "code-line", handlers),
  ]);
  return section(document, "Cut here", [shown]);
}

/**
 * @param {string} text
 * @returns {string} a Python literal
 */
export function pythonString(text) {
  const escaped = Array.from(text, (character) => {
    if (character === "\\" || character === '"') return `\\${character}`;
    const code = /** @type {number} */ (character.codePointAt(0));
    const isControl = code < 32 || (code >= 127 && code < 160) || code === 0x2028 || code === 0x2029;
    return isControl ? `\\u${code.toString(16).padStart(4, "0")}` : character;
  }).join("");
  return `"${escaped}"`;
}
