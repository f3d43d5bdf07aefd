/**
 * Builds the bundles into python/torchatlas/static/: `atlas.js` (the view in a notebook, an ES module with the layout worker
 * as text), `page.js` (the same for pages, a script that can stand in HTML), `loader.js` (what each notebook view carries),
 * `lite.js` (the map that a notebook keeps), `standin.js` (one function, which starts it), `viz.wasm` (Graphviz, handed in at
 * run time), `headless.js` (one script for an embedded V8) and the licences of what is bundled.
 */
import { build } from "esbuild";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const jsFolder = dirname(fileURLToPath(import.meta.url));
const root = dirname(jsFolder);
const source = join(jsFolder, "src");
const modules = join(root, "node_modules");
const target = join(root, "python", "torchatlas", "static");
const vizFolder = join(modules, "@viz-js", "viz");

/** @type {import("esbuild").BuildOptions} */
const shared = {
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  legalComments: "none",
  target: "es2022",
  charset: "ascii",
  define: { "import.meta.url": '""' },
  logLevel: "warning",
};

/**
 * @param {string} text
 * @param {RegExp} pattern
 * @param {string | ((...found: string[]) => string)} replacement
 * @param {string} where
 * @returns {string}
 */
function replaceOnce(text, pattern, replacement, where) {
  const found = text.match(new RegExp(pattern, "g")) ?? [];
  if (found.length !== 1) throw new Error(`${where}: expected ${pattern} once, found it ${found.length} times`);
  return text.replace(pattern, /** @type {string} */ (replacement));
}

/**
 * viz.js ships Graphviz as a binary string inside its JavaScript, full of characters that neither HTML nor JSON keeps
 * small or whole. The bytes go to a file of their own and `instance()` takes them as an argument.
 *
 * @returns {Promise<{wasm: Uint8Array, backend: string, index: string}>}
 */
async function splitViz() {
  const backendPath = join(vizFolder, "lib", "backend.js");
  const indexPath = join(vizFolder, "src", "index.js");
  let literal = "";
  const backend = replaceOnce(
    await readFile(backendPath, "utf8"),
    /binaryDecode\(('(?:[^'\\]|\\[^])*'|"(?:[^"\\]|\\[^])*"|`(?:[^`\\]|\\[^])*`)\)/,
    (_all, found) => {
      literal = found;
      return "moduleArg.wasmBinary";
    },
    backendPath,
  );
  const index = replaceOnce(
    await readFile(indexPath, "utf8"),
    /instance\(\) \{\s*return Module\(\)/,
    "instance(moduleArg) { return Module(moduleArg)",
    indexPath,
  );
  return { wasm: decodeBinary(literal), backend, index };
}

/**
 * @param {string} literal JavaScript string literal with one character per byte
 * @returns {Uint8Array}
 */
function decodeBinary(literal) {
  const text = /** @type {string} */ (new Function(`return ${literal}`)());
  // As viz.js does it: a character above 255 stands for the byte 0.
  const bytes = Uint8Array.from(text, (character) => {
    const code = character.charCodeAt(0);
    return (~code >> 8) & code;
  });
  if (!WebAssembly.validate(bytes)) throw new Error("the binary string of viz.js is not a wasm module");
  return bytes;
}

/**
 * @param {{backend: string, index: string}} viz
 * @param {string | null} workerText
 * @returns {import("esbuild").Plugin}
 */
function substitute(viz, workerText) {
  return {
    name: "substitute",
    setup(hooks) {
      hooks.onResolve({ filter: /^@viz-js\/viz$/ }, () => ({ path: join(vizFolder, "src", "index.js") }));
      hooks.onLoad({ filter: /viz[\\/]src[\\/]index\.js$/ }, () => ({ contents: viz.index }));
      hooks.onLoad({ filter: /viz[\\/]lib[\\/]backend\.js$/ }, () => ({ contents: viz.backend }));
      hooks.onLoad({ filter: /engine[\\/]workersource\.js$/ }, () => ({
        contents: `export const workerSource = ${JSON.stringify(workerText)};`,
      }));
    },
  };
}

/**
 * A script inside HTML ends at the first end tag, and a comment in it would change what that is. Browsers read pages twice as
 * fast that are ASCII all through.
 *
 * @param {string} text
 * @returns {string}
 */
function checkInline(text) {
  const found = text.match(/<!--|<\/?script|[\u0080-\uffff]/i);
  if (found) throw new Error(`page.js holds ${found[0]} and can't stand in a page`);
  return text;
}

/**
 * @param {import("esbuild").Metafile[]} metafiles
 * @returns {string[]} names of the npm packages in the bundles, sorted
 */
function bundledPackages(metafiles) {
  const names = new Set();
  for (const path of metafiles.flatMap((metafile) => Object.keys(metafile.inputs))) {
    const found = path.match(/node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/);
    if (found) names.add(found[1].replace("\\", "/"));
  }
  return [...names].sort();
}

/**
 * @param {string} name of an npm package
 * @returns {Promise<string>}
 */
async function noticeOf(name) {
  const folder = join(modules, name);
  const about = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const own = (await readdir(folder)).filter((file) => /^(licen[cs]e|notice)/i.test(file));
  const kept = await readdir(join(jsFolder, "licenses"));
  const prefix = `${name.replace("@", "").replace("/", "-")}.`;
  const paths = [
    ...own.map((file) => join(folder, file)),
    ...kept.filter((file) => file.startsWith(prefix)).map((file) => join(jsFolder, "licenses", file)),
  ];
  if (paths.length === 0) throw new Error(`no licence text for ${name}: add one as js/licenses/${prefix}txt`);
  const texts = await Promise.all(paths.map((path) => readFile(path, "utf8")));
  return [`${name} ${about.version} (${about.license})`, ...texts.map((text) => text.trim())].join("\n\n");
}

/**
 * @param {string} text a module whose default export is a function
 * @returns {string} the function alone, an expression
 */
function functionOf(text) {
  return replaceOnce(text.trim(), /^var (\w+)=([^]*);export\{\1 as default\};$/, "$2", "standin.js");
}

async function main() {
  const viz = await splitViz();
  const worker = await build({
    ...shared,
    entryPoints: [join(source, "engine", "worker.js")],
    format: "iife",
    plugins: [substitute(viz, null)],
  });
  const workerText = /** @type {any} */ (worker.outputFiles)[0].text;
  const atlas = await build({
    ...shared,
    entryPoints: [join(source, "widget.js")],
    format: "esm",
    plugins: [substitute(viz, workerText)],
  });
  const page = await build({
    ...shared,
    entryPoints: [join(source, "page.js")],
    format: "iife",
    globalName: "torchatlas",
    plugins: [substitute(viz, workerText)],
  });
  const loader = await build({ ...shared, entryPoints: [join(source, "loader.js")], format: "esm" });
  const lite = await build({ ...shared, entryPoints: [join(source, "lite.js")], format: "esm" });
  const standIn = await build({ ...shared, entryPoints: [join(source, "standin.js")], format: "esm" });
  const headless = await build({
    ...shared,
    entryPoints: [join(source, "headless.js")],
    format: "iife",
    globalName: "torchatlas",
    plugins: [substitute(viz, null)],
  });
  const metafiles = [worker, atlas, page, headless].flatMap(({ metafile }) => metafile ?? []);
  const notices = await Promise.all(bundledPackages(metafiles).map(noticeOf));
  const line = `\n\n${"-".repeat(80)}\n\n`;
  await mkdir(target, { recursive: true });
  await Promise.all([
    writeFile(join(target, "atlas.js"), /** @type {any} */ (atlas.outputFiles)[0].contents),
    writeFile(join(target, "page.js"), checkInline(/** @type {any} */ (page.outputFiles)[0].text)),
    writeFile(join(target, "loader.js"), /** @type {any} */ (loader.outputFiles)[0].contents),
    writeFile(join(target, "lite.js"), /** @type {any} */ (lite.outputFiles)[0].contents),
    writeFile(join(target, "standin.js"), functionOf(/** @type {any} */ (standIn.outputFiles)[0].text)),
    writeFile(join(target, "headless.js"), /** @type {any} */ (headless.outputFiles)[0].contents),
    writeFile(join(target, "viz.wasm"), viz.wasm),
    writeFile(join(target, "THIRD_PARTY_NOTICES.txt"), `${notices.join(line)}\n`),
  ]);
}

await main();
