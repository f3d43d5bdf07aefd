/**
 * Questions to the kernel, and its answers, over the messages of a widget's model.
 *
 * To Python: `{type: "values", id, name, at}`. Back: `{type: "values", id, tensors}` with one buffer for each tensor that
 * has a picture, or `{type: "values", id, error}`. Unasked comes `{type: "problem", text}`: what a callback raised.
 *
 * @typedef {import("./values.js").TensorValues} TensorValues
 * @typedef {import("./values.js").Ask} Ask
 * @typedef {{id: number, type: string, tensors?: TensorValues[], error?: string, text?: string}} Answer
 */

/** After this the panel says that the kernel is busy, and after that that it may be gone; seen from here both look the same. */
export const BUSY_MS = 1_000;
export const SILENT_MS = 20_000;

export const STATES = {
  computing: "the kernel is computing…",
  busy: "the kernel is busy; values come when it is free",
  silent: "no answer yet: the kernel is busy, or gone. If it is gone, run the cell again",
  gone: "no kernel: run the cell again to get values",
};

/**
 * @typedef {Object} Waiting one question that has no answer yet
 * @property {object} message
 * @property {(found: TensorValues[]) => void} resolve
 * @property {(error: Error) => void} reject
 * @property {(text: string) => void} onState
 * @property {ReturnType<typeof setTimeout>[]} timers
 */

/**
 * A question stays open while the kernel is busy or gone, and is asked again when the view is connected again.
 *
 * @param {import("./widget.js").Model} model
 * @param {(text: string) => void} onProblem
 * @param {() => boolean} isConnected whether the front end still has a kernel for the model
 * @returns {{ask: Ask, end: () => void}}
 */
export function askKernel(model, onProblem, isConnected) {
  /** @type {Map<number, Waiting>} */
  const waiting = new Map();
  let lastId = 0;
  const forget = (/** @type {Waiting} */ { timers }) => timers.splice(0).forEach(clearTimeout);
  const send = (/** @type {Waiting} */ asked) => {
    const { message, onState, timers } = asked;
    forget(asked);
    if (!isConnected()) return onState(STATES.gone);
    const sayLater = (/** @type {string} */ text, /** @type {number} */ delay) =>
      timers.push(setTimeout(onState, delay, text));
    sayLater(STATES.busy, BUSY_MS);
    sayLater(STATES.silent, SILENT_MS);
    const status = (/** @type {{content?: {execution_state?: string}}} */ { content }) => {
      if (content?.execution_state !== "busy" || ![...waiting.values()].includes(asked)) return;
      forget(asked);
      sayLater(STATES.computing, BUSY_MS);
    };
    try {
      model.send(message, { iopub: { status } });
    } catch {
      // Front ends differ in what they raise where the kernel was shut down.
      forget(asked);
      onState(STATES.gone);
    }
  };
  const receive = (/** @type {Answer} */ answer, /** @type {DataView[]} */ buffers) => {
    if (answer.type === "problem") onProblem(answer.text ?? "");
    const asked = answer.type === "values" ? waiting.get(answer.id) : undefined;
    if (asked === undefined) return;
    waiting.delete(answer.id);
    forget(asked);
    if (answer.tensors === undefined) asked.reject(new Error(answer.error ?? "the kernel gave no answer"));
    else asked.resolve(answer.tensors.map((tensor) => withPicture(tensor, buffers)));
  };
  // ipywidgets tells so when the kernel restarts; a microtask later its own view shows it, too.
  const reconnect = () => queueMicrotask(() => waiting.forEach(send));
  const handlers = { "msg:custom": receive, comm_live_update: reconnect };
  for (const [event, handler] of Object.entries(handlers)) model.on(event, handler);
  return {
    ask: (name, at, onState) =>
      new Promise((resolve, reject) => {
        const id = (lastId += 1);
        const asked = { message: { type: "values", id, name, at }, resolve, reject, onState, timers: [] };
        waiting.set(id, asked);
        send(asked);
      }),
    end() {
      for (const [event, handler] of Object.entries(handlers)) model.off(event, handler);
      waiting.forEach(forget);
      waiting.clear();
    },
  };
}

/** @type {(tensor: TensorValues, buffers: DataView[]) => TensorValues} */
function withPicture(tensor, buffers) {
  const { picture } = tensor;
  if (!picture) return tensor;
  const buffer = buffers[picture.buffer];
  // Buffers come at any offset, where an array of floats can't begin.
  const numbers = Array.from({ length: picture.rows * picture.columns }, (_, index) =>
    buffer.getFloat32(4 * index, true),
  );
  return { ...tensor, picture: { ...picture, numbers } };
}
