/**
 * The graph as a tree of text: what a screen reader reads, and anyone who prefers text. Mirrors what is open and
 * selected. The keys are those of the ARIA tree pattern (WAI-ARIA Authoring Practices, "Tree View").
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").Box} Box
 *
 * @typedef {Object} OutlineHandlers
 * @property {(name: string) => void} onSelect
 * @property {(name: string, isOpen: boolean) => void} onToggle open or close
 * @property {() => void} onClose
 */
import { element, icon } from "./dom.js";
import { formatBytes, formatShape, formatSpec, shortDtype } from "./format.js";
import { operationText } from "./measure.js";

/** A longer list slows the page down without helping anyone; search finds the rest. */
const MOST_ROWS = 1500;
const CROSS = "M4 4l8 8M12 4l-8 8";

/**
 * @param {Document} document
 * @param {AbortSignal} signal
 * @param {Graph} graph
 * @param {OutlineHandlers} handlers
 */
export function createOutline(document, signal, graph, handlers) {
  const tree = element(document, "div", { role: "tree", "aria-label": `Modules and operations of ${graph.title}` });
  const close = element(document, "button", { type: "button", class: "plain", "aria-label": "Close the outline" }, [
    icon(document, CROSS),
  ]);
  const box = element(document, "section", { class: "outline", "aria-label": "Outline" }, [
    element(document, "h2", {}, ["Outline", close]),
    tree,
  ]);
  close.addEventListener("click", handlers.onClose, { signal });
  let focused = "";

  const rows = () => /** @type {HTMLElement[]} */ ([...tree.querySelectorAll('[role="treeitem"]')]);
  const focusRow = (/** @type {HTMLElement | undefined} */ row) => {
    if (!row) return;
    for (const other of rows()) other.tabIndex = -1;
    row.tabIndex = 0;
    focused = row.dataset.name ?? "";
    row.focus();
  };
  tree.addEventListener(
    "click",
    (event) => {
      const row = /** @type {HTMLElement | null} */ (
        /** @type {Element} */ (event.target).closest('[role="treeitem"]')
      );
      const name = row?.dataset.name;
      if (!row || !name) return;
      focused = name;
      const isTwist =
        /** @type {Element} */ (event.target).classList.contains("twist") && row.hasAttribute("aria-expanded");
      if (isTwist) handlers.onToggle(name, row.getAttribute("aria-expanded") !== "true");
      else handlers.onSelect(name);
    },
    { signal },
  );
  tree.addEventListener(
    "keydown",
    (event) => {
      const all = rows();
      const at = all.findIndex((row) => row === event.target);
      const row = all[at];
      if (!row || !handleKey(event, all, at, row)) return;
      event.preventDefault();
      event.stopPropagation();
    },
    { signal },
  );

  /** @type {(event: KeyboardEvent, all: HTMLElement[], at: number, row: HTMLElement) => boolean} */
  function handleKey(event, all, at, row) {
    const name = row.dataset.name ?? "";
    const expanded = row.getAttribute("aria-expanded");
    const level = Number(row.getAttribute("aria-level"));
    const levelOf = (/** @type {HTMLElement} */ other) => Number(other.getAttribute("aria-level"));
    switch (event.key) {
      case "ArrowDown":
        focusRow(all[at + 1]);
        return true;
      case "ArrowUp":
        focusRow(all[at - 1]);
        return true;
      case "Home":
        focusRow(all[0]);
        return true;
      case "End":
        focusRow(all[all.length - 1]);
        return true;
      case "ArrowRight":
        if (expanded === "false") handlers.onToggle(name, true);
        else if (expanded === "true") focusRow(all[at + 1]);
        return true;
      case "ArrowLeft":
        if (expanded === "true") handlers.onToggle(name, false);
        else
          focusRow(
            all
              .slice(0, at)
              .reverse()
              .find((other) => levelOf(other) < level),
          );
        return true;
      case "Enter":
      case " ":
        handlers.onSelect(name);
        return true;
      default:
        return false;
    }
  }

  return {
    box,
    /** @type {(scene: Scene, selected: Set<string>) => void} */
    draw: (scene, selected) => {
      const hadFocus = tree.contains(/** @type {ShadowRoot} */ (tree.getRootNode()).activeElement ?? null);
      const shown = outlineOrder(scene).slice(0, MOST_ROWS);
      const current = shown.some((box) => box.item.name === focused) ? focused : (shown[0]?.item.name ?? "");
      const made = shown.map((box) =>
        rowOf(document, graph, box, selected.has(box.item.name), box.item.name === current),
      );
      const rest = scene.boxes.length - shown.length;
      if (rest > 0)
        made.push(
          element(document, "div", { role: "none", class: "muted" }, [`${rest} more: close modules or search`]),
        );
      tree.replaceChildren(...made);
      if (hadFocus) focusRow(rows().find((row) => row.dataset.name === current));
    },
    /** @param {Set<string>} selected */
    select: (selected) => {
      for (const row of rows()) row.setAttribute("aria-selected", String(selected.has(row.dataset.name ?? "")));
    },
    /** @param {boolean} isShown */
    show: (isShown) => {
      box.classList.toggle("shown", isShown);
      if (isShown) focusRow(rows().find((row) => row.tabIndex === 0) ?? rows()[0]);
    },
    isShown: () => box.classList.contains("shown"),
  };
}

/**
 * Each box followed by what is inside it, in order of execution.
 *
 * @param {Scene} scene
 * @returns {Box[]}
 */
export function outlineOrder(scene) {
  /** @type {Box[][]} */
  const inside = Array.from({ length: scene.boxes.length + 1 }, () => []);
  const indexOf = new Map(scene.boxes.map((box, index) => [box, index]));
  scene.boxes.forEach((box) => inside[box.parent + 1]?.push(box));
  const ordered = /** @type {Box[]} */ ([]);
  const stack = [...(inside[0] ?? [])].reverse();
  while (stack.length > 0) {
    const box = /** @type {Box} */ (stack.pop());
    ordered.push(box);
    stack.push(...[...(inside[/** @type {number} */ (indexOf.get(box)) + 1] ?? [])].reverse());
  }
  return ordered;
}

/**
 * @param {Graph} graph
 * @param {Box} box
 * @returns {string} what a screen reader says of a box
 */
export function describeBox(graph, box) {
  const { item } = box;
  const row = item.kind === "node" ? graph.nodes[item.id] : graph.calls[item.id];
  const spec = graph.specs[row?.outputs[0] ?? -1];
  const what = item.kind === "node" ? nodeKind(graph, item.id) : box.subtitle;
  const gives = spec ? `, gives ${formatShape(spec.shape)} ${shortDtype(spec.dtype)}` : "";
  const times = item.kind === "repeat" ? `, ${item.members.length} equal blocks` : "";
  return `${box.title} ${what}${times}${row?.status === "failed" ? ", failed" : ""}${gives}`.replace(/\s+/g, " ");
}

/**
 * @param {Graph} graph
 * @param {Scene} scene
 * @param {import("./types.js").Route} route
 * @returns {string} the tensor that runs along a route, where from and where to
 */
export function describeRoute(graph, scene, route) {
  const link = scene.visible.links[route.link];
  const spec = graph.specs[link.spec];
  const { outputs, name } = graph.nodes[link.tailNode];
  const result = outputs.length > 1 ? `, result ${link.tailSlot}` : "";
  const slots = link.slots.filter(Boolean).join(", ");
  const head = scene.boxes[route.head].item.name;
  const size = spec.sizeBytes > 0 ? ` · ${formatBytes(spec.sizeBytes)}` : "";
  return `${formatSpec(spec)}${size}\nfrom ${name}${result}\nto ${head}${slots ? ` (${slots})` : ""}`;
}

/** @type {(graph: Graph, id: number) => string} */
function nodeKind(graph, id) {
  const node = graph.nodes[id];
  if (node?.kind !== "op" && node?.kind !== "opaque") return `(${node?.kind})`;
  // A sign is no word.
  return operationText(node.op ?? "") === node.op ? "(operation)" : `(${node.op}, operation)`;
}

/** @type {(document: Document, graph: Graph, box: Box, isSelected: boolean, isCurrent: boolean) => HTMLElement} */
function rowOf(document, graph, box, isSelected, isCurrent) {
  const { item } = box;
  const canOpen = item.isOpen || item.isOpenable;
  const row = element(
    document,
    "div",
    {
      role: "treeitem",
      "aria-level": item.depth + 1,
      "aria-selected": String(isSelected),
      "aria-expanded": canOpen ? String(item.isOpen) : null,
      tabindex: isCurrent ? 0 : -1,
      "data-name": item.name,
    },
    [
      element(document, "span", { class: "twist", "aria-hidden": "true" }, [canOpen ? (item.isOpen ? "▾" : "▸") : "·"]),
      describeBox(graph, box),
    ],
  );
  row.style.paddingLeft = `${6 + item.depth * 14}px`;
  return row;
}
