/** Numbers, shapes and dtypes as people write them. Pure. */

/** @typedef {import("./types.js").TensorSpec} TensorSpec */

/** @type {Record<string, string>} */
const SHORT_DTYPES = {
  float64: "f64",
  float32: "f32",
  float16: "f16",
  bfloat16: "bf16",
  int64: "i64",
  int32: "i32",
  int16: "i16",
  int8: "i8",
  uint8: "u8",
  complex64: "c64",
  complex128: "c128",
};

/** @param {string} dtype as torch writes it, without `torch.` */
export const shortDtype = (dtype) => SHORT_DTYPES[dtype] ?? dtype;

/** @param {number[] | null} shape */
export function formatShape(shape) {
  if (shape === null) return "?";
  return shape.length === 0 ? "scalar" : shape.join("×");
}

/**
 * A count with three significant digits: 590592 is "591 k", 38600000 "38.6 M".
 *
 * @param {number} count
 */
export function formatCount(count) {
  return scaled(count, 1000, ["", " k", " M", " G", " T", " P"]);
}

/** @param {number} bytes in decimal units: 1 kB is 1000 bytes */
export function formatBytes(bytes) {
  return scaled(bytes, 1000, [" B", " kB", " MB", " GB", " TB", " PB"]);
}

/** @param {number} ms */
export function formatTime(ms) {
  return ms >= 1000
    ? `${significant(ms / 1000)} s`
    : ms >= 1 || ms === 0
      ? `${significant(ms)} ms`
      : `${significant(ms * 1000)} µs`;
}

/** @param {number} count */
export const groupDigits = (count) => String(Math.round(count)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

/**
 * A metric of the document with its unit, told by its name.
 *
 * @param {string} name
 * @param {number} value
 */
export function formatMetric(name, value) {
  if (name.endsWith("_bytes")) return formatBytes(value);
  if (name.endsWith("_ms")) return formatTime(value);
  if (name === "flops") return `${scaled(value, 1000, [" ", " k", " M", " G", " T", " P"])}FLOPs`;
  if (name === "parameters") return `${groupDigits(value)} params`;
  return Number.isInteger(value) ? groupDigits(value) : significant(value);
}

/** @param {string} name of a metric, for example `size_bytes` */
export const metricLabel = (name) =>
  name === "size_bytes" ? "size of results" : name.replace(/_(bytes|ms)$/, "").replaceAll("_", " ");

/** @param {TensorSpec} spec */
export const formatSpec = (spec) => `${formatShape(spec.shape)} ${spec.dtype}`;

/**
 * @param {number} value
 * @param {number} base
 * @param {string[]} units
 */
function scaled(value, base, units) {
  let step = 0;
  let rest = Math.abs(value);
  // 999.5 would be written as 1.00e+3 with three digits, so it belongs to the next unit.
  while (rest >= base - 0.5 && step < units.length - 1) {
    rest /= base;
    step += 1;
  }
  return `${value < 0 ? "−" : ""}${significant(rest)}${units[step]}`;
}

/** @param {number} value @returns {string} three significant digits, no exponent for what people meet */
export function significant(value) {
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value).replace("-", "−");
  const text =
    Math.abs(value) >= 1e-4 && Math.abs(value) < 1e6 ? String(Number(value.toPrecision(3))) : value.toExponential(2);
  return text.replace("-", "−");
}

/**
 * The end of a dotted name that tells it from its neighbours: `attn`, but `h.0` where the last part is a number.
 *
 * @param {string} name
 */
export function shortName(name) {
  const parts = name.split(".");
  const last = parts[parts.length - 1];
  const before = parts[parts.length - 2];
  return /^\d+(:\d+)?$/.test(last) && before !== undefined ? `${before}.${last}` : last || name;
}
