/**
 * The panel's section about values: numbers, a histogram, and a heat map of the last two axes with a slider for each other.
 *
 * @typedef {Object} Picture a slice as a heat map
 * @property {number} rows
 * @property {number} columns
 * @property {number} buffer which of the message's buffers holds the numbers
 * @property {number[]} [numbers] row by row
 * @property {number} low of the numbers, which the colours go by
 * @property {number} high
 * @property {number[]} at index on each axis before the last two
 * @property {number[]} sizes of those axes
 * @property {number[]} of size of the slice; larger than rows and columns where neighbours were averaged
 *
 * @typedef {Object} TensorValues
 * @property {number[]} shape
 * @property {string} dtype
 * @property {number} count
 * @property {number | null} min null where no element is finite
 * @property {number | null} max
 * @property {number | null} mean
 * @property {number | null} std
 * @property {number} zeros share of all elements
 * @property {number} nan
 * @property {number} inf
 * @property {number[]} histogram counts of finite elements in equal steps from min to max
 * @property {Picture | null} [picture]
 *
 * @typedef {(name: string, at: number[] | null, onState: (text: string) => void) => Promise<TensorValues[]>} Ask
 *   at: null for the middle of each axis; onState is told what the answer waits for, where it takes its time
 */
import { element } from "./dom.js";
import { formatShape, significant } from "./format.js";

/** Tensors of one result before the rest is only counted. */
const MOST_TENSORS = 4;
const METRIC = "value_";

/** @param {string} name of a metric @returns {boolean} whether it is shown here and not among the costs */
export const isValueMetric = (name) => name.startsWith(METRIC);

/**
 * @param {Document} document
 * @param {string} name of a node or call
 * @param {Record<string, number>} metrics of it; those that were measured while tracing come without a kernel
 * @param {Ask | null} ask
 * @returns {HTMLElement | null}
 */
export function valuesBody(document, name, metrics, ask) {
  const measured = measuredRows(metrics);
  if (!ask && measured.length === 0) return null;
  const body = element(document, "div", { class: "values", "aria-live": "polite" });
  const known = measured.length > 0 ? [table(document, measured)] : [];
  if (!ask) {
    body.append(...known);
    return body;
  }
  let last = 0;
  const state = line(document, "waiting for the kernel…");
  const show = async (/** @type {number[] | null} */ at) => {
    const ticket = (last += 1);
    const say = (/** @type {string} */ text) => {
      if (ticket !== last) return;
      state.textContent = text;
      body.append(state);
    };
    try {
      const tensors = await ask(name, at, say);
      if (ticket === last) body.replaceChildren(...tensorParts(document, tensors, show));
    } catch (error) {
      if (ticket !== last) return;
      const reason = error instanceof Error ? error.message : String(error);
      body.replaceChildren(...known, line(document, `no values: ${reason}`));
    }
  };
  body.append(...known, state);
  show(null);
  return body;
}

/** @type {(document: Document, text: string) => HTMLElement} */
const line = (document, text) => element(document, "p", { class: "muted" }, [text]);

/** @type {(document: Document, tensors: TensorValues[], show: (at: number[]) => void) => Node[]} */
function tensorParts(document, tensors, show) {
  if (tensors.length === 0) return [line(document, "no tensors")];
  const parts = tensors.slice(0, MOST_TENSORS).flatMap((tensor, index) => [
    ...(tensors.length > 1 ? [line(document, `${index}: ${formatShape(tensor.shape)} ${tensor.dtype}`)] : []),
    ...histogram(document, tensor),
    table(document, numberRows(tensor)),
    // The sliders of several tensors would have to be told apart.
    ...(tensor.picture && tensors.length === 1 ? heatMap(document, tensor.picture, show) : []),
  ]);
  const rest = tensors.length - MOST_TENSORS;
  return rest > 0 ? [...parts, line(document, `and ${rest} more`)] : parts;
}

/** @type {(document: Document, tensor: TensorValues) => HTMLElement[]} */
function histogram(document, { histogram: counts, min, max }) {
  if (counts.length === 0 || min === null || max === null) return [];
  const most = Math.max(...counts, 1);
  const bars = counts.map((count) => {
    const bar = element(document, "i");
    bar.style.height = `${count > 0 ? Math.max((count / most) * 40, 1) : 0}px`;
    return bar;
  });
  return [
    element(document, "div", { class: "histogram", "aria-hidden": "true" }, bars),
    element(document, "div", { class: "ends muted" }, [
      element(document, "span", {}, [significant(min)]),
      element(document, "span", {}, [significant(max)]),
    ]),
  ];
}

/** @type {(tensor: TensorValues) => [string, string][]} */
function numberRows({ min, max, mean, std, zeros, nan, inf, count }) {
  const written = (/** @type {number | null} */ value) => (value === null ? "–" : significant(value));
  return [
    ["range", `${written(min)} … ${written(max)}`],
    ["mean ± std", `${written(mean)} ± ${written(std)}`],
    ["zeros", count === 0 ? "–" : `${significant(zeros * 100)} %`],
    ["NaN / Inf", `${nan} / ${inf}`],
  ];
}

/** @type {(metrics: Record<string, number>) => [string, string][]} */
function measuredRows(metrics) {
  const of = (/** @type {string} */ name) => metrics[METRIC + name];
  if (of("zeros") === undefined) return [];
  const number = (/** @type {string} */ name) => of(name) ?? null;
  return numberRows({
    ...{ shape: [], dtype: "", count: 1, histogram: [] },
    ...{ min: number("min"), max: number("max"), mean: number("mean"), std: number("std") },
    ...{ zeros: of("zeros"), nan: of("nan"), inf: of("inf") },
  });
}

/** @type {(document: Document, rows: [string, string][]) => HTMLElement} */
function table(document, rows) {
  const cells = rows.flatMap(([label, text]) => [
    element(document, "dt", {}, [label]),
    element(document, "dd", { class: "mono" }, [text]),
  ]);
  return element(document, "dl", {}, cells);
}

/** @type {(document: Document, picture: Picture, show: (at: number[]) => void) => Node[]} */
function heatMap(document, picture, show) {
  const { rows, columns, of } = picture;
  const isReduced = rows < (of[0] ?? 1) || columns < (of[1] ?? 1);
  const label = `Heat map of ${of.join(" × ")} elements, from ${significant(picture.low)} to ${significant(picture.high)}`;
  const canvas = element(document, "canvas", { class: "heat", role: "img", "aria-label": label, title: label });
  Object.assign(canvas, { width: columns, height: rows });
  // Long rows stay readable: a vector is drawn as a band.
  canvas.style.aspectRatio = `${columns} / ${Math.min(Math.max(rows, columns / 12), columns * 1.2)}`;
  paint(canvas, picture);
  const caption = `${of.join(" × ")}${isReduced ? `, averaged to ${rows} × ${columns}` : ""}`;
  return [canvas, line(document, caption), ...sliders(document, picture, show)];
}

/** @type {(document: Document, picture: Picture, show: (at: number[]) => void) => HTMLElement[]} */
function sliders(document, { at, sizes }, show) {
  const inputs = sizes.map((size, axis) =>
    element(document, "input", {
      ...{ type: "range", min: 0, max: size - 1, value: at[axis] ?? 0 },
      ...{ "aria-label": `Index on axis ${axis}` },
    }),
  );
  return inputs.flatMap((input, axis) => {
    const size = sizes[axis] ?? 1;
    if (size < 2) return [];
    const shown = element(document, "output", {}, [`axis ${axis}: ${input.value}`]);
    input.addEventListener("input", () => (shown.textContent = `axis ${axis}: ${input.value}`));
    input.addEventListener("change", () => show(inputs.map((each) => Number(each.value))));
    return [element(document, "div", { class: "acts" }, [input, shown])];
  });
}

/** @type {(canvas: HTMLCanvasElement, picture: Picture) => void} */
function paint(canvas, { rows, columns, numbers = [], low, high }) {
  const context = canvas.getContext?.("2d");
  if (!context) return;
  const pixels = context.createImageData(columns, rows);
  numbers.forEach((value, index) => pixels.data.set([...heatColour(value, low, high), 255], index * 4));
  context.putImageData(pixels, 0, 0);
}

const WHITE = [247, 247, 247];
/** Ends of ColorBrewer's "PuOr", which people with the common colour vision deficiencies can tell apart. */
const NEGATIVE = [179, 88, 6];
const POSITIVE = [84, 39, 136];
const NOT_A_NUMBER = [220, 0, 90];

/**
 * Zero is white; the larger end of the range, on either side, is full colour.
 *
 * @param {number} value
 * @param {number} low
 * @param {number} high
 * @returns {number[]} red, green, blue, 0 to 255
 */
export function heatColour(value, low, high) {
  if (Number.isNaN(value)) return NOT_A_NUMBER;
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const share = Math.min(Math.abs(value) / most, 1);
  const end = value < 0 ? NEGATIVE : POSITIVE;
  return WHITE.map((start, channel) => Math.round(start + ((end[channel] ?? 0) - start) * share));
}
