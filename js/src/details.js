/**
 * Side panel and breadcrumb of a view.
 *
 * @typedef {import("./view.js").View} View
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").Item} Item
 */
import { crumbContent } from "./chrome.js";
import { element } from "./dom.js";
import { panelContent } from "./panel.js";
import { copyText } from "./saving.js";
import { foldState, indexGraph, unfoldState } from "./visible.js";

/**
 * The way to the selection; without one, to the open module that fills the view while its title is out of sight.
 *
 * @param {View} view
 */
export function showCrumbs(view) {
  const name = [...view.selected].slice(-1)[0] ?? moduleInView(view);
  if (name === view.crumbed) return;
  view.crumbed = name;
  const path = name === null ? [] : pathTo(view.graph, name);
  view.controls.crumbs.hidden = path.length === 0;
  view.controls.crumbs.replaceChildren(
    ...crumbContent(view.document, path, (target) => {
      if (target === null) view.run(view.fit());
      else view.run(view.focus(target, true));
    }),
  );
}

/** @param {View} view @returns {string | null} */
function moduleInView({ stage, scene }) {
  const centre = stage.toScene(stage.width / 2, stage.height / 2);
  const top = stage.toScene(0, 0).y;
  let found = null;
  for (const box of scene.boxes) {
    const isAround =
      box.item.isOpen &&
      box.x <= centre.x &&
      box.x + box.width >= centre.x &&
      box.y < top &&
      box.y + box.height >= centre.y;
    if (isAround) found = box.item.name;
  }
  return found;
}

/**
 * @param {Graph} graph
 * @param {string} name
 * @returns {{label: string, name: string | null}[]} outermost first; the name of the outermost is null
 */
export function pathTo(graph, name) {
  const { callByName, nodeByName } = indexGraph(graph);
  const node = graph.nodes[nodeByName.get(name) ?? -1];
  let call = node ? node.call : (callByName.get(name) ?? null);
  const path = node
    ? [{ label: node.name.split(".").pop() ?? node.name, name: /** @type {string | null} */ (node.name) }]
    : [];
  while (call !== null) {
    const row = /** @type {import("./types.js").ModuleCall} */ (graph.calls[call]);
    const around = row.parent === null ? "" : `${graph.calls[row.parent]?.name ?? ""}.`;
    const label = row.name.startsWith(around) ? row.name.slice(around.length) : row.name;
    path.unshift(row.parent === null ? { label: graph.title, name: null } : { label, name: row.name });
    call = row.parent;
  }
  return path;
}

/**
 * The panel of what was selected last.
 *
 * @param {View} view
 */
export function showPanel(view) {
  const [name] = [...view.selected].slice(-1);
  const item = name === undefined ? null : view.itemOf(name);
  const { panel } = view.controls;
  if (item === null) {
    panel.hidden = true;
    view.frame.classList.remove("with-panel");
    return;
  }
  const isSame = panel.dataset.name === item.name && !panel.hidden;
  const content = panelContent(view.document, view.graph, item, view.notes[item.name] ?? null, {
    onClose: () => view.hidePanel(),
    copy: (text) => copyText(view.document, view.root, text),
    onGo: (target) => view.run(view.focus(target, true)),
    values: view.options.values,
    // The kernel need not be asked again each time that something else on the map changes.
    keptValues: isSame ? panel.querySelector(".values") : null,
    ...repeatActions(view, item),
  });
  const problem = view.problem ? [problemSection(view.document, view.problem)] : [];
  panel.replaceChildren(...problem, ...content);
  if (!isSame) panel.scrollTop = 0;
  panel.dataset.name = item.name;
  // A second click of a double click must not land on the panel that the first one brought.
  if (panel.hidden && !view.stage.interaction.isReduced()) panel.classList.add("arriving");
  panel.hidden = false;
  view.frame.classList.add("with-panel");
}

/** @type {(document: Document, text: string) => HTMLElement} */
function problemSection(document, text) {
  return element(document, "section", { class: "failure", role: "alert" }, [
    element(document, "h3", {}, ["Failed in Python"]),
    element(document, "p", {}, [text]),
  ]);
}

/** @type {(view: View, item: Item) => Pick<import("./panel.js").PanelHandlers, "run"|"onUnfold"|"onFold">} */
function repeatActions(view, item) {
  const run = item.kind === "node" ? undefined : indexGraph(view.graph).repeatOf.get(item.id);
  return {
    run: run ? { shown: item.kind === "repeat" ? 0 : 1, total: run.members.length, members: item.members } : null,
    onUnfold: (/** @type {"all" | {from: number, to: number}} */ which) =>
      view.run(view.apply(unfoldState(view.graph, view.state, item, which), item.name)),
    onFold: () => view.run(view.apply(foldState(view.graph, view.state, item.id), item.name)),
  };
}
