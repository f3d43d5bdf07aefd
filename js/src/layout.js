/**
 * From a visible graph to a scene in px.
 *
 * - `createLayouter({wasm, workerFactory?})` gives `{layout(graph, visible), destroy()}`; `layout` answers with a promise of
 *   a Scene, or of null when a later call has taken its place. It lays out in a worker where one can be made, else on this
 *   thread; by Graphviz where that runs, else by the simple engine (`scene.stats.engine` says which).
 * - `layoutSync(graph, visible, engine, memo?)` does the same at once, for headless use and tests; `engine` is
 *   `simpleEngine` or what `createVizEngine(wasm)` (engine/viz.js) resolves to; `memo` comes from `createMemo()`.
 *
 * Each scope is laid out alone, inner ones first, and remembered by its structure: equal blocks are laid out once, and a
 * click lays out only the scopes on the way to the top.
 *
 * @typedef {import("./types.js").Graph} Graph
 * @typedef {import("./types.js").VisibleGraph} VisibleGraph
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./types.js").Box} Box
 * @typedef {import("./types.js").Route} Route
 * @typedef {import("./scopes.js").Scope} Scope
 * @typedef {import("./scopes.js").Scopes} Scopes
 * @typedef {import("./measure.js").Face} Face
 * @typedef {import("./arrange/arrange.js").ScopeTask} ScopeTask
 * @typedef {import("./arrange/arrange.js").ScopeLayout} ScopeLayout
 * @typedef {import("./engine/ranks.js").Problem} Problem
 * @typedef {import("./engine/ranks.js").Solution} Solution
 *
 * @typedef {{name: "viz"|"simple", solve: (problem: Problem) => Solution}} Engine
 * @typedef {Map<string, {id: number, layout: ScopeLayout}>} Memo by structure, one per engine
 * @typedef {import("./engine/client.js").WasmSource} WasmSource
 * @typedef {Object} Layouter
 * @property {(graph: Graph, visible: VisibleGraph) => Promise<Scene | null>} layout
 * @property {() => Promise<"viz"|"simple">} ready starts the engine for hard scopes, else started when first needed; says
 *   which there is
 * @property {() => void} destroy
 * @typedef {Generator<Problem[], Scene, Solution[]>} Steps asks for solutions, level by level
 */
import { arrange, toProblem } from "./arrange/arrange.js";
import { createSolver } from "./engine/client.js";
import { solveSimply } from "./engine/simple.js";
import { chooseFolds } from "./arrange/folds.js";
import { arrangeList } from "./arrange/list.js";
import { edgeText, faceOf, headerDetail, labelWidth, LABEL_HEIGHT, STACK_OVERHANG } from "./measure.js";
import { bundles, endsOf, splitScopes } from "./scopes.js";

/** Scopes that a layouter remembers before it starts afresh. */
const MOST_REMEMBERED = 5000;
/**
 * Crossings within a scope up to which the simple engine's drawing is taken as it is. Graphviz, which takes a worker, a start
 * and ten times as long, then has next to nothing to win: most models are drawn without it.
 */
const FEW_CROSSINGS = 1;

/** @type {Engine} */
export const simpleEngine = { name: "simple", solve: solveSimply };

/** @returns {Memo} */
export const createMemo = () => new Map();

/**
 * @param {Graph} graph
 * @param {VisibleGraph} visible
 * @param {Engine} engine
 * @param {Memo} [memo] gets what is laid out anew
 * @returns {Scene}
 */
export function layoutSync(graph, visible, engine, memo = createMemo()) {
  const start = now();
  const steps = layoutSteps(graph, visible, memo);
  let step = steps.next();
  while (!step.done) step = steps.next(step.value.map((problem) => engine.solve(problem)));
  return timed(step.value, engine.name, start);
}

/**
 * @param {{wasm?: WasmSource | null, workerFactory?: (() => Worker) | null}} options wasm: the bytes of
 *   Graphviz; without them the simple engine draws. workerFactory: null to stay on this thread
 * @returns {Layouter}
 */
export function createLayouter({ wasm = null, workerFactory } = {}) {
  /** @type {import("./engine/client.js").Solver | null} */
  let made = null;
  // Most pictures need none.
  const solver = () => (made ??= createSolver({ wasm, workerFactory }));
  const memos = { viz: createMemo(), simple: createMemo() };
  /** The engine of the last layout, at first the one that is hoped for. */
  let usual = /** @type {"viz"|"simple"} */ (wasm ? "viz" : "simple");
  let latest = 0;
  return {
    async layout(graph, visible) {
      latest += 1;
      const ticket = latest;
      const start = now();
      const begin = () => {
        if (memos[usual].size > MOST_REMEMBERED) memos[usual].clear();
        const steps = layoutSteps(graph, visible, memos[usual]);
        return { steps, step: steps.next(), asked: 0 };
      };
      let run = begin();
      while (!run.step.done) {
        const name = await solver().ready();
        if (ticket !== latest) return null;
        if (name !== usual) {
          usual = name;
          run = begin();
          continue;
        }
        const solutions = await solver().solve(run.step.value, name);
        if (ticket !== latest) return null;
        run = { steps: run.steps, step: run.steps.next(solutions), asked: run.asked + 1 };
      }
      return timed(run.step.value, run.asked > 0 ? usual : "simple", start);
    },
    ready: () => solver().ready(),
    destroy() {
      latest += 1;
      made?.destroy();
    },
  };
}

/** @returns {number} ms; embedded engines have no `performance` */
const now = () => globalThis.performance?.now() ?? Date.now();

/** @type {(scene: Scene, engine: "viz"|"simple", start: number) => Scene} */
const timed = (scene, engine, start) => ({ ...scene, stats: { ...scene.stats, engine, layoutMs: now() - start } });

/**
 * @param {Graph} graph
 * @param {VisibleGraph} visible
 * @param {Memo} memo
 * @returns {Steps}
 */
function* layoutSteps(graph, visible, memo) {
  const faces = visible.items.map((item) => faceOf(graph, item));
  const split = splitScopes(visible);
  const labels = labelsOf(graph, visible);
  /** @type {{id: number, layout: ScopeLayout}[]} */
  const found = new Array(split.scopes.length);
  const isStack = (/** @type {number} */ item) => visible.items[item].kind === "repeat";
  const context = {
    scopes: split.scopes,
    columnHeights: chooseFolds(split.scopes),
    faces,
    labels,
    found,
    isRound: isRoundFace(graph, visible),
    isStack,
  };
  let engineCalls = 0;
  let memoHits = 0;
  for (const level of byHeight(split.scopes)) {
    /** @type {Map<string, {task: ScopeTask, scopes: number[]}>} */
    const missing = new Map();
    for (const at of level) {
      const { task, key } = taskOf(at, context);
      const known = memo.get(key);
      const waiting = missing.get(key);
      if (known) found[at] = known;
      else if (waiting) waiting.scopes.push(at);
      else missing.set(key, { task, scopes: [at] });
      if (known || waiting) memoHits += 1;
    }
    const plans = [...missing].map(([key, { task, scopes }]) => ({ key, task, scopes, plan: planOf(task) }));
    const asked = plans.flatMap(({ plan }) => (plan?.isHard ? [plan.problem] : []));
    engineCalls += plans.filter(({ plan }) => plan && !isTrivial(plan.problem)).length;
    const answers = asked.length > 0 ? yield asked : [];
    let next = 0;
    for (const { key, task, scopes, plan } of plans) {
      const layout = plan
        ? arrange(task, plan.isHard ? answers[next++] : plan.solution, plan.railOf, plan.kept)
        : arrangeList(task);
      const entry = { id: memo.size, layout };
      memo.set(key, entry);
      for (const at of scopes) found[at] = entry;
    }
  }
  const scene = assemble(graph, visible, faces, split, labels, found);
  const weights = linkWeights(graph, visible);
  scene.routes.forEach((route) => (route.weight = weights[route.link]));
  return { ...scene, stats: { engine: "simple", layoutMs: 0, engineCalls, memoHits } };
}

/** @param {Scope[]} scopes @returns {number[][]} indices of scopes by height: what is inside comes first */
function byHeight(scopes) {
  /** @type {number[][]} */
  const levels = [];
  scopes.forEach((scope, at) => {
    while (levels.length <= scope.height) levels.push([]);
    levels[scope.height].push(at);
  });
  return levels;
}

/**
 * @param {ScopeTask} task
 * @returns {(ReturnType<typeof toProblem> & {solution: Solution, isHard: boolean}) | null} null where nothing is to solve;
 *   hard: worth asking Graphviz
 */
function planOf(task) {
  if (task.isList) return null;
  const plan = toProblem(task);
  const { crossings, ...solution } = solveSimply(plan.problem);
  return { ...plan, solution, isHard: crossings > FEW_CROSSINGS };
}

/** @param {Problem} problem @returns {boolean} a chain, for which no engine needs to be asked */
function isTrivial({ kinds, edges }) {
  const fed = new Uint8Array(kinds.length);
  const read = new Uint8Array(kinds.length);
  for (const { tail, head } of edges) {
    if (read[tail]++ > 0 || fed[head]++ > 0) return false;
  }
  return edges.length === kinds.length - 1;
}

/** @typedef {{text: string, width: number}} Label width: px */

/** @type {(graph: Graph, visible: VisibleGraph) => Label[]} per link */
function labelsOf(graph, visible) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { spec } of visible.links) {
    const { dtype } = graph.specs[spec];
    counts.set(dtype, (counts.get(dtype) ?? 0) + 1);
  }
  const usual = [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "float32";
  /** @type {Map<number, Label>} */
  const known = new Map();
  const bundled = bundles(visible);
  return visible.links.map((link) => {
    const { spec } = link;
    const count = bundled.size > 0 ? bundled.get(endsOf(link)) : undefined;
    const found = count === undefined ? known.get(spec) : undefined;
    if (found) return found;
    const one = edgeText(graph, spec, usual);
    const text = count === undefined ? one : `${count} tensors, ${one}`;
    const label = { text, width: labelWidth(text) };
    if (count === undefined) known.set(spec, label);
    return label;
  });
}

/** @type {(graph: Graph, visible: VisibleGraph) => number[]} per link, 0 to 1 */
function linkWeights(graph, visible) {
  const sizes = visible.links.map(({ spec }) => graph.specs[spec].sizeBytes);
  const most = sizes.reduce((a, b) => Math.max(a, b), 1);
  return sizes.map((size) => Math.sqrt(size / most));
}

/** @type {(graph: Graph, visible: VisibleGraph) => (item: number) => boolean} */
const isRoundFace = (graph, visible) => (at) => {
  const item = visible.items[at];
  if (item.kind !== "node") return false;
  const { kind } = graph.nodes[item.id];
  return kind === "op" || kind === "opaque" || kind === "input" || kind === "output";
};

/**
 * @typedef {Object} Context what tasks are made from
 * @property {Scope[]} scopes
 * @property {number[]} columnHeights per scope
 * @property {Face[]} faces per item
 * @property {Label[]} labels per link
 * @property {{id: number, layout: ScopeLayout}[]} found per scope; those inside come first
 * @property {(item: number) => boolean} isRound
 * @property {(item: number) => boolean} isStack
 *
 * @param {number} at
 * @param {Context} context
 * @returns {{task: ScopeTask, key: string}} key: equal for scopes that look the same
 */
function taskOf(at, { scopes, columnHeights, faces, labels, found, isRound, isStack }) {
  const scope = scopes[at];
  /** @type {string[]} */
  const parts = [scope.isList ? "list" : `${columnHeights[at]}`];
  const blocks = scope.children.map((item, place) => {
    const inner = scope.inner[place];
    if (inner >= 0) {
      const { width, height, inDx, outDx, axisDx } = found[inner].layout;
      parts.push(`#${found[inner].id}`);
      return { width, height, isRound: false, inDx, outDx, axisDx };
    }
    const { width } = faces[item];
    const height = faces[item].height + (isStack(item) ? STACK_OVERHANG : 0);
    const round = isRound(item);
    parts.push(`${width}x${height}${round ? "r" : ""}`);
    return { width, height, isRound: round, inDx: null, outDx: null, axisDx: 0 };
  });
  /** @type {Map<number, number>} */
  const tensors = new Map();
  const portOf = (/** @type {number} */ place, /** @type {number} */ tensor, /** @type {"ins"|"outs"} */ side) => {
    const inner = place < 0 ? -1 : scope.inner[place];
    return inner < 0 ? -1 : (scopes[inner][side].get(tensor) ?? -1);
  };
  const edges = scope.edges.map(({ tail, head, tensor, link }) => {
    const local = tensors.get(tensor) ?? tensors.size;
    tensors.set(tensor, local);
    const width = link < 0 ? 0 : labels[link].width;
    const tailPort = portOf(tail, tensor, "outs");
    const headPort = portOf(head, tensor, "ins");
    parts.push(`${tail}.${tailPort}>${head}.${headPort}:${local}:${width}`);
    return { tail, head, tailPort, headPort, tensor: local, labelWidth: width };
  });
  const face = scope.item < 0 || scope.isList ? { width: 0, height: 0 } : faces[scope.item];
  const [ins, outs] = [scope.ins.size, scope.outs.size];
  const key = `${face.height} ${face.width} ${ins} ${outs} ${parts.join(" ")}`;
  const task = {
    isList: scope.isList,
    columnHeight: columnHeights[at],
    blocks,
    ins,
    outs,
    edges,
    headerHeight: face.height,
    titleWidth: face.width,
  };
  return { task, key };
}

/**
 * The pieces of a link end to end, each beginning where the one before it ends.
 *
 * @param {import("./scopes.js").Step[]} path
 * @param {{layout: ScopeLayout}[]} found
 * @param {number[]} originX per scope
 * @param {number[]} originY
 * @returns {number[]}
 */
function joined(path, found, originX, originY) {
  /** @type {number[]} */
  let points = [];
  for (const { scope, edge } of path) {
    const piece = found[scope].layout.lines[edge].points;
    const [dx, dy] = [originX[scope], originY[scope]];
    const isFirst = points.length === 0;
    let at = isFirst ? 0 : points.length;
    points = isFirst ? piece.slice() : points.concat(piece.slice(2));
    for (; at < points.length; at += 2) {
      points[at] += dx;
      points[at + 1] += dy;
    }
  }
  return points;
}

/**
 * Puts the scopes into each other and joins the pieces of each link.
 *
 * @param {Graph} graph
 * @param {VisibleGraph} visible
 * @param {Face[]} faces
 * @param {Scopes} split
 * @param {Label[]} labels
 * @param {{id: number, layout: ScopeLayout}[]} found
 * @returns {Scene}
 */
function assemble(graph, visible, faces, { scopes, paths }, labels, found) {
  const hasFailed = (/** @type {import("./types.js").Item} */ { id }) => graph.calls[id]?.status === "failed";
  /** @type {Box[]} */
  const boxes = new Array(visible.items.length);
  const originX = new Array(scopes.length).fill(0);
  const originY = new Array(scopes.length).fill(0);
  scopes.forEach((scope, at) => {
    const { layout } = found[at];
    scope.children.forEach((item, place) => {
      const inner = scope.inner[place];
      const x = originX[at] + layout.xs[place];
      const y = originY[at] + layout.ys[place];
      if (inner >= 0) {
        originX[inner] = x;
        originY[inner] = y;
      }
      // A list has no border of its own.
      if (item < 0) return;
      const face = faces[item];
      const { title, subtitle, detail, badge } = face;
      const size = inner < 0 ? face : found[inner].layout;
      const lines = inner < 0 ? [] : found[inner].layout.inDx.map((dx) => size.width / 2 + dx);
      boxes[item] = {
        item: visible.items[item],
        parent: scope.item,
        x,
        y,
        width: size.width,
        height: size.height,
        headerHeight: inner < 0 ? 0 : face.height,
        title,
        subtitle,
        detail: inner < 0 ? detail : headerDetail(detail, size.width, hasFailed(visible.items[item]), lines),
        badge,
      };
    });
  });
  const routes = visible.links.map((link, at) => {
    const points = joined(paths[at], found, originX, originY);
    let isRail = false;
    /** @type {Route["label"]} */
    let label = null;
    for (const { scope, edge } of paths[at]) {
      const { layout } = found[scope];
      const line = layout.lines[edge];
      isRail ||= line.isRail;
      const corner = scopes[scope].edges[edge].link === at ? layout.labels[edge] : null;
      if (corner) {
        const place = { x: corner.x + originX[scope], y: corner.y + originY[scope] };
        label = { text: labels[at].text, ...place, width: labels[at].width, height: LABEL_HEIGHT };
      }
    }
    return {
      link: at,
      tail: link.tail,
      head: link.head,
      points,
      curve: /** @type {const} */ ("bezier"),
      isRail,
      weight: 1,
      label,
    };
  });
  const { width, height } = found[0].layout;
  return {
    width,
    height,
    boxes,
    routes,
    visible,
    stats: { engine: "simple", layoutMs: 0, engineCalls: 0, memoHits: 0 },
  };
}
