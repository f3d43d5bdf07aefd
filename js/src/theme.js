/**
 * Light and dark palettes, and which of them the surroundings ask for.
 *
 * The hues of module families keep their order under the common colour vision deficiencies (they differ in lightness as
 * well, after Okabe and Ito, "Color Universal Design", 2008), and no meaning rests on colour alone. Text colours reach
 * WCAG AA (4.5:1) on every surface they are written on, outlines that carry meaning 3:1; js/test/theme.test.js computes it.
 */

/**
 * @typedef {"light"|"dark"} ThemeName
 * @typedef {{linear: string, convolution: string, attention: string, feedforward: string, norm: string, embedding: string,
 *   recurrent: string, passive: string, other: string}} FamilyColours
 * @typedef {Object} Palette
 * @property {ThemeName} name
 * @property {string} background
 * @property {string} surface panels of the interface
 * @property {string} line hairlines and outlines of cards
 * @property {string} control outlines of controls, 3:1 on the surface
 * @property {string} ink
 * @property {string} muted
 * @property {string} card
 * @property {string[]} levels fill of open modules, by depth; repeats after the last
 * @property {string} edge
 * @property {string} outline of operations
 * @property {string} input
 * @property {string} output
 * @property {string} parameter
 * @property {string} buffer
 * @property {string} constant
 * @property {string} selected
 * @property {string} upstream edges that end at the selection
 * @property {string} downstream edges that start at it
 * @property {string} farUpstream edges on the way to the selection
 * @property {string} farDownstream
 * @property {string} hit outline of what the search found
 * @property {string} hitFill
 * @property {string} good
 * @property {string} warning
 * @property {string} bad
 * @property {string} badFill
 * @property {string} code
 * @property {string} codeLine background of the line that ran
 * @property {string} shadow
 * @property {FamilyColours} families
 * @property {string[]} categories colours for any other set of labels
 * @property {string[]} ramp from little to much
 */

/** @type {Palette} */
const LIGHT = {
  name: "light",
  background: "#fafaf8",
  surface: "#ffffff",
  line: "#d9dde3",
  control: "#868e9b",
  ink: "#1d2129",
  muted: "#566071",
  card: "#ffffff",
  levels: ["#f3f4f1", "#ebeeea", "#e4e9e6", "#eceeee"],
  edge: "#788192",
  outline: "#788192",
  input: "#1663c4",
  output: "#14702f",
  parameter: "#6d40c4",
  buffer: "#6d40c4",
  constant: "#566071",
  selected: "#1259be",
  upstream: "#1259be",
  downstream: "#a34b06",
  farUpstream: "#84aae4",
  farDownstream: "#d9a273",
  hit: "#a06000",
  hitFill: "#fff3d6",
  good: "#14702f",
  warning: "#8a5200",
  bad: "#c5221f",
  badFill: "#fdecea",
  code: "#f5f6f4",
  codeLine: "#d2e2f8",
  shadow: "rgba(29, 33, 41, 0.14)",
  families: {
    linear: "#2f6fde",
    convolution: "#0b7f96",
    attention: "#b2367c",
    feedforward: "#0f8a6c",
    norm: "#a06a00",
    embedding: "#7a4fd0",
    recurrent: "#b4550a",
    passive: "#8a93a3",
    other: "#475467",
  },
  categories: ["#2f6fde", "#a06a00", "#0f8a6c", "#b2367c", "#7a4fd0", "#0b7f96", "#b4550a", "#475467"],
  ramp: ["#dbe9f6", "#a8cbe8", "#67a5d6", "#2f79b9", "#10508f", "#082f5f"],
};

/** @type {Palette} */
const DARK = {
  name: "dark",
  background: "#15171c",
  surface: "#1b1e24",
  line: "#373d49",
  control: "#727c8d",
  ink: "#e8eaee",
  muted: "#a2acbc",
  card: "#262b34",
  levels: ["#1b1e25", "#20242c", "#252a33", "#1e222a"],
  edge: "#8691a3",
  outline: "#8691a3",
  input: "#7ab8ff",
  output: "#6fd08c",
  parameter: "#bda4ff",
  buffer: "#bda4ff",
  constant: "#a2acbc",
  selected: "#6ea8fe",
  upstream: "#6ea8fe",
  downstream: "#f0a35e",
  farUpstream: "#486fa8",
  farDownstream: "#966a3e",
  hit: "#f2c14e",
  hitFill: "#3a311c",
  good: "#6fd08c",
  warning: "#f2c14e",
  bad: "#ff7b72",
  badFill: "#3a1d1f",
  code: "#15171c",
  codeLine: "#263449",
  shadow: "rgba(0, 0, 0, 0.5)",
  families: {
    linear: "#7ab0ff",
    convolution: "#5cc8dd",
    attention: "#f08cc0",
    feedforward: "#4cc9a3",
    norm: "#e0b050",
    embedding: "#b79bff",
    recurrent: "#f0a35e",
    passive: "#8691a3",
    other: "#a9b4c4",
  },
  categories: ["#7ab0ff", "#e0b050", "#4cc9a3", "#f08cc0", "#b79bff", "#5cc8dd", "#f0a35e", "#a9b4c4"],
  ramp: ["#1f3a57", "#22558a", "#2f79b9", "#5ba0d8", "#9bc8ee", "#dceefc"],
};

/** @type {Record<ThemeName, Palette>} */
export const PALETTES = { light: LIGHT, dark: DARK };

/** The order matters: `MultiheadAttention` is no head, `LayerNorm` no layer, `ConvNormActivation` a convolution. */
const FAMILY_PATTERNS = /** @type {[keyof FamilyColours, RegExp][]} */ ([
  ["attention", /attention|attn|\bmha\b/i],
  ["embedding", /embed|positional|rotary|patch(ify|merg)/i],
  ["recurrent", /lstm|gru|rnn/i],
  ["feedforward", /mlp|feed_?forward|ffn|expert|\bmoe/i],
  ["linear", /linear|^conv1d$|dense|lora/i],
  ["convolution", /conv(?!ert)/i],
  ["norm", /norm|^frozenbatch/i],
  [
    "passive",
    /dropout|identity|flatten|pool|relu|gelu|silu|elu$|sigmoid|tanh|softmax|swish|activation|pad\d|upsample|droppath/i,
  ],
]);

/**
 * Which family a module's class belongs to, judged by its name.
 *
 * `Conv1D` of transformers is a linear layer, torch's `Conv1d` a convolution: the case of the letters decides.
 *
 * @param {string} type name of the class
 * @returns {keyof FamilyColours}
 */
export function familyOf(type) {
  let family = families.get(type);
  if (family === undefined) {
    family =
      type === "Conv1d" ? "convolution" : (FAMILY_PATTERNS.find(([, pattern]) => pattern.test(type))?.[0] ?? "other");
    if (families.size >= MOST_KNOWN) families.clear();
    families.set(type, family);
  }
  return family;
}

/** Each frame asks for the same few again, thousands of times. @type {Map<string, keyof FamilyColours>} */
const families = new Map();
/** @type {Map<string, string>} */
const mixtures = new Map();
const MOST_KNOWN = 1000;

/**
 * @param {string} one #rrggbb
 * @param {string} other #rrggbb
 * @param {number} share of the other, 0 to 1
 * @returns {string} #rrggbb between the two
 */
export function mix(one, other, share) {
  const key = `${one} ${other} ${share}`;
  const known = mixtures.get(key) ?? mixedAnew(one, other, share);
  if (mixtures.size >= MOST_KNOWN) mixtures.clear();
  mixtures.set(key, known);
  return known;
}

/** @type {(one: string, other: string, share: number) => string} */
function mixedAnew(one, other, share) {
  const channels = [1, 3, 5].map((at) => {
    const [a, b] = [one, other].map((colour) => parseInt(colour.slice(at, at + 2), 16));
    return Math.round(a + (b - a) * share)
      .toString(16)
      .padStart(2, "0");
  });
  return `#${channels.join("")}`;
}

/**
 * Fill of an open module.
 *
 * @param {Palette} palette
 * @param {number} depth 0 at the top level; negative for the ground itself
 */
export function levelFill(palette, depth) {
  return depth < 0 ? palette.background : /** @type {string} */ (palette.levels[depth % palette.levels.length]);
}

/**
 * The theme that the surroundings show.
 *
 * JupyterLab and Notebook 7 set `data-jp-theme-light` on the body; VS Code sets a class and `data-vscode-theme-kind`;
 * Colab sets `theme` on the root element. Elsewhere the system's preference counts.
 *
 * @param {Document} document
 * @returns {ThemeName}
 */
export function detectTheme(document) {
  const body = document.body;
  const isLightLab = body?.getAttribute("data-jp-theme-light");
  if (isLightLab) return isLightLab === "false" ? "dark" : "light";
  const kind = `${body?.getAttribute("data-vscode-theme-kind") ?? ""} ${body?.className ?? ""}`;
  if (/vscode-(dark|high-contrast(?!-light))/.test(kind)) return "dark";
  if (/vscode-(light|high-contrast-light)/.test(kind)) return "light";
  const colab = document.documentElement.getAttribute("theme");
  if (colab === "dark" || colab === "light") return colab;
  return document.defaultView?.matchMedia?.("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/**
 * Call back whenever the surroundings change their theme.
 *
 * @param {Document} document
 * @param {AbortSignal} signal ends the watching
 * @param {(theme: ThemeName) => void} onChange
 */
export function watchTheme(document, signal, onChange) {
  let last = detectTheme(document);
  const check = () => {
    const now = detectTheme(document);
    if (now !== last) onChange((last = now));
  };
  document.defaultView?.matchMedia?.("(prefers-color-scheme: dark)").addEventListener("change", check, { signal });
  const observer = new MutationObserver(check);
  const attributeFilter = ["class", "data-jp-theme-light", "data-vscode-theme-kind", "theme"];
  observer.observe(document.documentElement, { attributeFilter });
  if (document.body) observer.observe(document.body, { attributeFilter });
  signal.addEventListener("abort", () => observer.disconnect());
}

/**
 * The palette as CSS custom properties of the view's root.
 *
 * @param {Palette} palette
 * @returns {Record<string, string>}
 */
export function cssVariables(palette) {
  const colours = Object.entries(palette).filter(([key, value]) => key !== "name" && typeof value === "string");
  const entries = colours.map(([key, value]) => [`--atlas-${key}`, value]);
  return { "color-scheme": palette.name, ...Object.fromEntries(entries) };
}

/** @param {Palette} palette @returns {string} the same, as a style */
export function cssText(palette) {
  const variables = Object.entries(cssVariables(palette));
  return variables.map(([name, value]) => `${name}: ${value}`).join("; ");
}
