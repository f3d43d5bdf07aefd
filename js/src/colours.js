/**
 * "Colour by": which colour a box gets from what it is or from a number, and the legend to it. Pure.
 *
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").Item} Item
 * @typedef {import("./theme.js").Palette} Palette
 *
 * @typedef {{label: string, colour: string}} LegendRow
 * @typedef {Object} Colouring
 * @property {(item: Item) => string | null} colourOf null where the mode says nothing about an item
 * @property {LegendRow[]} legend
 * @property {string} title
 * @property {boolean} isRamp whether the legend goes from little to much
 */
import { formatCount, formatMetric, metricLabel } from "./format.js";
import { familyOf } from "./theme.js";

/** @type {Record<keyof import("./theme.js").FamilyColours, string>} */
const FAMILY_LABELS = {
  linear: "linear",
  convolution: "convolution",
  attention: "attention",
  feedforward: "feed-forward",
  norm: "normalisation",
  embedding: "embedding",
  recurrent: "recurrent",
  passive: "activation, pooling, dropout",
  other: "other modules",
};

/**
 * The modes that a graph offers: `type`, `dtype`, `depth`, then one for each metric that the document has numbers for.
 *
 * @param {Graph} graph
 * @param {boolean} hasNumbers whether Python gave numbers to colour by
 * @returns {{id: string, label: string}[]}
 */
export function colourModes(graph, hasNumbers) {
  const metrics = new Set([...graph.nodes, ...graph.calls].flatMap((row) => Object.keys(row.metrics)));
  return [
    { id: "type", label: "module type" },
    { id: "dtype", label: "dtype" },
    { id: "depth", label: "depth" },
    ...[...metrics].sort().map((name) => ({ id: `metric:${name}`, label: metricLabel(name) })),
    ...(hasNumbers ? [{ id: "numbers", label: "numbers from Python" }] : []),
  ];
}

/**
 * @param {Graph} graph
 * @param {string} mode id of a mode
 * @param {Palette} palette
 * @param {Record<string, number>} numbers by name, from Python
 * @param {Item[]} items what is visible: the range of a ramp is theirs
 * @param {string} [legend] what the numbers are
 * @returns {Colouring}
 */
export function colouring(graph, mode, palette, numbers, items, legend = "") {
  if (mode === "dtype") return byLabel(graph, palette, "dtype", items, (item) => dtypeOf(graph, item));
  if (mode === "depth") return byDepth(palette, items);
  if (mode === "numbers")
    return byNumber(
      palette,
      legend || "numbers",
      items,
      (item) => numbers[item.name],
      (value) => formatMetric("", value),
    );
  if (mode.startsWith("metric:")) {
    const name = mode.slice("metric:".length);
    return byNumber(
      palette,
      metricLabel(name),
      items,
      (item) => metricOf(graph, item, name),
      // The title says what is counted.
      (value) => (name === "parameters" ? formatCount(value) : formatMetric(name, value)),
    );
  }
  return byFamily(graph, palette, items);
}

/** @type {(graph: Graph, palette: Palette, items: Item[]) => Colouring} */
function byFamily(graph, palette, items) {
  const families = new Set(
    items.filter((item) => item.kind !== "node").map((item) => familyOf(graph.calls[item.id]?.type ?? "")),
  );
  const legend = Object.keys(palette.families)
    .filter((family) => families.has(/** @type {any} */ (family)))
    .map((family) => ({
      label: FAMILY_LABELS[/** @type {keyof typeof FAMILY_LABELS} */ (family)],
      colour: palette.families[/** @type {keyof typeof FAMILY_LABELS} */ (family)],
    }));
  // Cards take the colour of their family by themselves, so that the plain picture needs no colouring at all.
  return { colourOf: () => null, legend, title: "module type", isRamp: false };
}

/** @type {(graph: Graph, item: Item) => string | null} */
function dtypeOf(graph, item) {
  const row = item.kind === "node" ? graph.nodes[item.id] : graph.calls[item.id];
  const first = row?.outputs[0];
  return first === undefined ? null : (graph.specs[first]?.dtype ?? null);
}

/** @type {(graph: Graph, palette: Palette, title: string, items: Item[], labelOf: (item: Item) => string | null) => Colouring} */
function byLabel(graph, palette, title, items, labelOf) {
  // Colours go by the whole graph, not by what is visible: opening a module must not recolour the rest.
  const all = new Set(graph.specs.map((spec) => spec.dtype));
  const colours = new Map(
    [...all].map((label, index) => [
      label,
      /** @type {string} */ (palette.categories[index % palette.categories.length]),
    ]),
  );
  const shown = new Set(items.map(labelOf));
  const legend = [...colours].filter(([label]) => shown.has(label)).map(([label, colour]) => ({ label, colour }));
  return { colourOf: (item) => colours.get(labelOf(item) ?? "") ?? null, legend, title, isRamp: false };
}

/** @type {(palette: Palette, items: Item[]) => Colouring} */
function byDepth(palette, items) {
  const deepest = items.reduce((most, item) => Math.max(most, item.depth), 0);
  const colourOf = (/** @type {number} */ depth) =>
    /** @type {string} */ (palette.categories[depth % palette.categories.length]);
  const legend = Array.from({ length: deepest + 1 }, (_, depth) => ({ label: String(depth), colour: colourOf(depth) }));
  return { colourOf: (item) => colourOf(item.depth), legend, title: "depth", isRamp: false };
}

/** @type {(palette: Palette, title: string, items: Item[], valueOf: (item: Item) => number | undefined, format: (value: number) => string) => Colouring} */
function byNumber(palette, title, items, valueOf, format) {
  const values = items.map((item) => valueOf(item) ?? NaN).filter(Number.isFinite);
  const low = values.reduce((least, value) => Math.min(least, value), Infinity);
  const high = values.reduce((most, value) => Math.max(most, value), -Infinity);
  const { ramp } = palette;
  const last = ramp.length - 1;
  // Sizes of a model span many orders of magnitude: on a linear scale all but the largest would look alike.
  const isWide = low >= 0 && high > 100 * Math.max(low, 1);
  const scale = (/** @type {number} */ value) => (isWide ? Math.log1p(value) : value);
  const unscale = (/** @type {number} */ value) => (isWide ? Math.expm1(value) : value);
  const span = scale(high) - scale(low);
  const shareOf = (/** @type {number} */ value) => (span === 0 ? 1 : (scale(value) - scale(low)) / span);
  const colourOf = (/** @type {Item} */ item) => {
    const value = valueOf(item);
    return value === undefined || !Number.isFinite(value)
      ? null
      : /** @type {string} */ (ramp[Math.round(shareOf(value) * last)]);
  };
  const legend =
    values.length === 0
      ? []
      : ramp.map((colour, index) => ({ label: format(unscale(scale(low) + (span * index) / last)), colour }));
  return { colourOf, legend, title, isRamp: true };
}

/** @type {(graph: Graph, item: Item, name: string) => number | undefined} */
function metricOf(graph, item, name) {
  if (item.kind === "node") return graph.nodes[item.id]?.metrics[name];
  if (item.kind === "call") return graph.calls[item.id]?.metrics[name];
  const parts = item.members.map((id) => graph.calls[id]?.metrics[name]).filter((value) => value !== undefined);
  return parts.length === 0 ? undefined : parts.reduce((sum, value) => sum + value, 0);
}
