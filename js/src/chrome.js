/**
 * What frames the map: status chip, breadcrumb, legend, help. Each function gives elements.
 *
 * @typedef {import("./types.js").Graph} Graph
 */
import { failurePlace } from "./banner.js";
import { element, icon } from "./dom.js";
import { groupDigits } from "./format.js";
import { KEYS } from "./interact.js";

const CROSS = "M4 4l8 8M12 4l-8 8";

/**
 * How far the picture can be trusted, in a line.
 *
 * @param {Graph} graph
 * @returns {{mark: string, tone: "good"|"bad"|"plain", text: string}}
 */
export function statusOf(graph) {
  const { proof, coverage, error } = graph;
  const shown = `${groupDigits(coverage.nodes)} of ${groupDigits(coverage.operations)} operations`;
  const parts = [shown];
  if (coverage.opaque > 0) parts.push(`${coverage.opaque} opaque`);
  if (coverage.outside > 0) parts.push(`${coverage.outside} from outside torch`);
  if (error) {
    const place = failurePlace(graph);
    return {
      mark: "✗ stopped",
      tone: "bad",
      text: `${error.type}${place ? ` in ${place}` : ""} · ${parts.join(" · ")}`,
    };
  }
  if (proof.status === "passed")
    return { mark: "✓ proven", tone: "good", text: `${parts.join(" · ")} · replay bit-equal` };
  if (proof.status === "failed")
    return { mark: "✗ replay differs", tone: "bad", text: [proof.reason, ...parts].filter(Boolean).join(" · ") };
  const reason = proof.status === "not_applicable" && proof.reason ? `: ${proof.reason}` : "";
  return { mark: "", tone: "plain", text: `not verified${reason} · ${parts.join(" · ")}` };
}

/**
 * @param {Document} document
 * @param {Graph} graph
 */
export function statusChip(document, graph) {
  const { mark, tone, text } = statusOf(graph);
  return element(document, "div", { class: "chip status", role: "status" }, [
    mark ? element(document, "span", { class: tone }, [mark]) : null,
    mark ? ` ${text}` : text,
  ]);
}

/**
 * @param {Document} document
 * @param {{label: string, name: string | null}[]} path outermost first; the name of the outermost is null
 * @param {(name: string | null) => void} onGo
 */
export function crumbContent(document, path, onGo) {
  return path.flatMap(({ label, name }, at) => {
    const isLast = at === path.length - 1;
    const button = element(document, "button", { type: "button", "aria-current": isLast ? "true" : null }, [label]);
    button.addEventListener("click", () => onGo(name));
    return isLast ? [button] : [button, element(document, "span", { "aria-hidden": "true" }, ["›"])];
  });
}

/**
 * @param {Document} document
 * @param {import("./colours.js").Colouring} colouring
 */
export function legendContent(document, { title, legend }) {
  const rows = legend.map(({ label, colour }) => {
    const patch = element(document, "i");
    patch.style.background = colour;
    return element(document, "span", {}, [patch, label]);
  });
  return legend.length === 0 ? [] : [element(document, "b", {}, [title]), ...rows];
}

/**
 * @param {Document} document
 * @param {AbortSignal} signal
 * @param {() => void} onClose
 */
export function helpOverlay(document, signal, onClose) {
  const close = element(document, "button", { type: "button", class: "plain", "aria-label": "Close the help" }, [
    icon(document, CROSS),
  ]);
  close.addEventListener("click", onClose, { signal });
  const keys = KEYS.flatMap(({ shown, help }) => [
    element(document, "dt", {}, [element(document, "kbd", {}, [shown])]),
    element(document, "dd", {}, [help]),
  ]);
  const list = (/** @type {[string, string][]} */ rows) =>
    element(
      document,
      "dl",
      {},
      rows.flatMap(([term, text]) => [
        element(document, "dt", { class: "mono" }, [term]),
        element(document, "dd", {}, [text]),
      ]),
    );
  const mouse = list([
    ["click", "select; on the arrow: open or close"],
    ["double click", "open or close"],
    ["shift click", "on the arrow of a ×N: show all of them"],
    ["drag", "move"],
    ["wheel, pinch", "zoom"],
  ]);
  const query = list([
    ["attn", "part of a name or type"],
    ["op:softmax", "operations"],
    ["type:Linear", "modules of a class"],
    ["in:h.3", "inside a module"],
    ["shape:*,768", "shape of an output"],
    ["dtype:bf16", "dtype of an output"],
    ["kind:input", "also parameter, buffer, constant, output, module"],
    ["-op:add", "not"],
  ]);
  const heading = (/** @type {string} */ text) => element(document, "h3", {}, [text]);
  const overlay = element(
    document,
    "div",
    { class: "help", role: "dialog", "aria-modal": "true", "aria-label": "Help", hidden: true },
    [
      element(document, "div", { tabindex: -1 }, [
        element(document, "h2", {}, ["Help", close]),
        element(document, "div", { class: "columns" }, [
          element(document, "div", {}, [heading("Keys"), element(document, "dl", {}, keys)]),
          element(document, "div", {}, [heading("Mouse and touch"), mouse, heading("Search"), query]),
        ]),
      ]),
    ],
  );
  overlay.addEventListener("click", (event) => event.target === overlay && onClose(), { signal });
  return overlay;
}

/**
 * In place of the map, what went wrong.
 *
 * @param {Document} document
 * @param {string} title
 * @param {string[]} lines
 */
export function brokenView(document, title, lines) {
  return element(document, "div", { class: "broken", role: "alert" }, [
    element(document, "h2", {}, [title]),
    element(document, "pre", { tabindex: 0 }, [lines.join("\n")]),
  ]);
}
