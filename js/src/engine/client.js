/**
 * Solves layout problems by the best means there is: Graphviz in a worker, Graphviz on this thread, the simple engine.
 * Every step down is taken for good where it is due to the surroundings (no workers, no wasm), and for one problem where
 * it is due to the problem.
 *
 * @typedef {Uint8Array | ArrayBuffer | import("../packed.js").Packed} Wasm the bytes of Graphviz
 * @typedef {Wasm | Promise<Wasm | null>} WasmSource may still be on its way, or not come at all
 * @typedef {import("./ranks.js").Problem} Problem
 * @typedef {import("./ranks.js").Solution} Solution
 * @typedef {{isReady: () => Promise<boolean>, solve: (problems: Problem[]) => Promise<(Solution | null)[]>,
 *   destroy: () => void}} WorkerSolver
 * @typedef {Object} Solver
 * @property {() => Promise<"viz"|"simple">} ready which engine there is
 * @property {(problems: Problem[], engine: "viz"|"simple") => Promise<Solution[]>} solve
 * @property {() => void} destroy
 */
import { unpacked } from "../packed.js";
import { solveSimply } from "./simple.js";
import { createVizEngine, isFitForViz } from "./viz.js";
import { workerSource } from "./workersource.js";

/** How long Graphviz may take, in ms, before the simple engine steps in and the worker is given up. */
const START_LIMIT_MS = 20000;
/** How long a layout waits for Graphviz to start before the simple engine draws; later layouts try again. */
const PATIENCE_MS = 5000;
const SOLVE_LIMIT_MS = 6000;
const SOLVE_LIMIT_EACH_MS = 1500;

/**
 * @param {{wasm: WasmSource | null, workerFactory?: (() => Worker) | null}} options
 * @returns {Solver}
 */
export function createSolver({ wasm, workerFactory = blobWorkerFactory() }) {
  const inWorker = wasm && workerFactory ? sharedWorkerSolver(wasm, workerFactory) : null;
  /** @type {Promise<import("./viz.js").VizEngine | null> | null} */
  let here = null;
  const engineHere = () => {
    here ??= engineFrom(wasm).catch(() => null);
    return here;
  };
  /** @returns {Promise<"viz"|"simple">} */
  const start = async () => {
    if (inWorker && (await inWorker.isReady())) return "viz";
    return (await engineHere()) ? "viz" : "simple";
  };
  return {
    ready: () => withinPatience(start()),
    async solve(problems, engine) {
      const isAsked = (/** @type {Problem} */ problem) => engine === "viz" && isFitForViz(problem);
      const asked = problems.filter(isAsked);
      /** @type {(Solution | null)[]} */
      let answers = [];
      if (asked.length > 0) {
        if (inWorker && (await inWorker.isReady())) answers = await inWorker.solve(asked);
        else {
          const graphviz = await engineHere();
          answers = graphviz ? await graphviz.solveAll(asked) : [];
        }
      }
      let next = 0;
      return problems.map((problem) => (isAsked(problem) ? answers[next++] : null) ?? solveSimply(problem));
    },
    destroy() {
      inWorker?.destroy();
    },
  };
}

/** @type {(wasm: WasmSource | null) => Promise<import("./viz.js").VizEngine | null>} */
async function engineFrom(wasm) {
  const given = await wasm;
  return given ? createVizEngine(await unpacked(given)) : null;
}

/** @type {(start: Promise<"viz"|"simple">) => Promise<"viz"|"simple">} */
function withinPatience(start) {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve("simple"), PATIENCE_MS);
    start.then((name) => {
      clearTimeout(timer);
      resolve(name);
    });
  });
}

/** @type {WeakMap<object, {solver: WorkerSolver, users: number}>} */
const sharedSolvers = new WeakMap();

/**
 * Views that were given the same bytes share a worker: a notebook may hold many views.
 *
 * @param {WasmSource} wasm
 * @param {() => Worker} factory
 * @returns {WorkerSolver}
 */
function sharedWorkerSolver(wasm, factory) {
  const shared = sharedSolvers.get(wasm) ?? { solver: createWorkerSolver(wasm, factory), users: 0 };
  sharedSolvers.set(wasm, shared);
  shared.users += 1;
  let isGone = false;
  return {
    isReady: () => (isGone ? Promise.resolve(false) : shared.solver.isReady()),
    solve: (problems) => shared.solver.solve(problems),
    destroy() {
      if (isGone) return;
      isGone = true;
      shared.users -= 1;
      if (shared.users > 0) return;
      sharedSolvers.delete(wasm);
      shared.solver.destroy();
    },
  };
}

/**
 * A classic worker from a Blob: the kind that also runs from file:// and in sandboxed frames.
 *
 * @returns {(() => Worker) | null}
 */
function blobWorkerFactory() {
  const code = workerSource;
  if (code === null || typeof Worker === "undefined" || typeof Blob === "undefined") return null;
  return () => {
    const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    const worker = new Worker(url);
    // The worker has read its code when it first answers; until then the URL must live.
    worker.addEventListener("message", () => URL.revokeObjectURL(url), { once: true });
    return worker;
  };
}

/**
 * @param {WasmSource} wasm
 * @param {() => Worker} factory
 * @returns {WorkerSolver}
 */
function createWorkerSolver(wasm, factory) {
  /** @type {Worker | null} */
  let worker = null;
  /** @type {Promise<boolean> | null} */
  let start = null;
  let isGone = false;
  let lastId = 0;
  /** @type {Map<number, (answer: any) => void>} */
  const waiting = new Map();

  const stop = () => {
    worker?.terminate();
    worker = null;
    for (const answer of waiting.values()) answer(null);
    waiting.clear();
  };
  /** @type {(message: object, limitMs: number) => Promise<any>} null where no answer came */
  const ask = (message, limitMs) => {
    if (worker === null) return Promise.resolve(null);
    lastId += 1;
    const id = lastId;
    return new Promise((resolve) => {
      const timer = setTimeout(stop, limitMs);
      waiting.set(id, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      worker?.postMessage({ id, ...message });
    });
  };
  const begin = async () => {
    try {
      worker = factory();
    } catch {
      // Content security policies may forbid workers from Blobs: then this thread does the work.
      return false;
    }
    worker.onmessage = ({ data }) => {
      waiting.get(data.id)?.(data.answer);
      waiting.delete(data.id);
    };
    worker.onerror = stop;
    // The worker reads its code while Graphviz may still be on its way.
    const given = await Promise.resolve(wasm).catch(() => null);
    const hasStarted = given !== null && (await ask({ wasm: given }, START_LIMIT_MS)) === true;
    if (!hasStarted) stop();
    return hasStarted;
  };
  return {
    isReady() {
      if (isGone) return Promise.resolve(false);
      start ??= begin();
      return start;
    },
    async solve(problems) {
      if (worker === null) start = null;
      if (!(await this.isReady())) return problems.map(() => null);
      const answer = await ask({ problems }, SOLVE_LIMIT_MS + SOLVE_LIMIT_EACH_MS * problems.length);
      // After a failure the next request starts a new worker.
      if (answer === null) start = null;
      return answer ?? problems.map(() => null);
    },
    destroy() {
      isGone = true;
      stop();
    },
  };
}
