/**
 * What stopped the forward, in a banner: the sentence, the line of code, what would help, the way there. Where a run
 * looked past its failures there are several; arrows step through them.
 *
 * @typedef {import("./types.js").Failure} Failure
 * @typedef {import("./types.js").Graph} Graph
 *
 * @typedef {Object} BannerHandlers
 * @property {(place: string) => void} onGo show the node or call that failed
 * @property {(report: string) => Promise<boolean>} onCopy whether the report is on the clipboard
 * @property {() => void} onClose
 */
import { element, icon, withCode } from "./dom.js";

const CROSS = "M4 4l8 8M12 4l-8 8";
const WARNING = "M8 2L14.5 13.5H1.5ZM8 6.5v3.5M8 11.8v.2";
const BACK = "M10 3L5 8l5 5";
const ON = "M6 3l5 5-5 5";
const COPIED_MS = 1500;

/**
 * @param {Graph} graph
 * @param {Failure | null} failure
 * @returns {string} name of the operation, or of the innermost call, that failed; "" where nothing did
 */
export function failurePlace(graph, failure = graph.error) {
  if (!failure) return "";
  if (failure.node !== null) return graph.nodes[failure.node]?.name ?? "";
  return graph.calls[failure.calls[failure.calls.length - 1] ?? -1]?.name ?? "";
}

/**
 * @param {Document} document
 * @param {Graph} graph
 * @param {AbortSignal} signal
 * @param {BannerHandlers} handlers
 * @returns {HTMLElement | null} null where nothing failed
 */
export function errorBanner(document, graph, signal, handlers) {
  const { errors } = graph;
  if (errors.length === 0) return null;
  let current = 0;
  const button = (/** @type {string} */ name, /** @type {any} */ content, /** @type {() => void} */ act) => {
    const isIcon = typeof content !== "string";
    const made = element(document, "button", { type: "button", class: isIcon ? "plain" : "go" }, [content]);
    if (isIcon) made.setAttribute("aria-label", name);
    made.addEventListener("click", act, { signal });
    return made;
  };
  const text = element(document, "div", { class: "text", tabindex: 0, "aria-live": "polite" });
  const count = element(document, "span", { class: "muted count" });
  const show = (/** @type {number} */ step) => {
    current = (current + step + errors.length) % errors.length;
    text.replaceChildren(...failureText(document, graph, errors[current]));
    count.textContent = `${current + 1} of ${errors.length}`;
    if (step !== 0) handlers.onGo(failurePlace(graph, errors[current]));
  };
  const copy = button("Copy report", "Copy report", async () => {
    const done = await handlers.onCopy(graph.report);
    copy.textContent = done ? "Copied" : "Can’t copy";
    setTimeout(() => (copy.textContent = "Copy report"), COPIED_MS);
  });
  const steps = [
    button("Previous failure", icon(document, BACK), () => show(-1)),
    count,
    button("Next failure", icon(document, ON), () => show(1)),
  ];
  show(0);
  return element(document, "div", { class: "banner", role: "alert" }, [
    icon(document, WARNING),
    text,
    element(document, "div", { class: "ways" }, [
      button("Go to failure", "Go to failure", () => handlers.onGo(failurePlace(graph, errors[current]))),
      graph.report ? copy : null,
      errors.length > 1 ? element(document, "div", { class: "steps" }, steps) : null,
    ]),
    button("Dismiss", icon(document, CROSS), handlers.onClose),
  ]);
}

/** @type {(document: Document, graph: Graph, failure: Failure) => HTMLElement[]} */
function failureText(document, graph, failure) {
  const source = failure.source === null ? undefined : graph.sources[failure.source];
  const line = source?.code[source.line - source.firstLine]?.trim() ?? "";
  const lines = [
    element(document, "div", { class: "strong" }, [
      failure.message ? `${failure.type}: ${failure.message}` : failure.type,
    ]),
  ];
  if (failure.explanation) lines.push(element(document, "div", {}, withCode(document, failure.explanation)));
  for (const suggestion of failure.suggestions) {
    lines.push(element(document, "div", { class: "remedy" }, withCode(document, suggestion)));
  }
  if (source) {
    const file = source.file.split(/[\\/]/).pop();
    lines.push(element(document, "div", { class: "where muted" }, [`${file}:${source.line}  ${line}`]));
  }
  return lines;
}
