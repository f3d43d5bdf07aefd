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

/**
 * @param {import("./widget.js").Model} model
 * @param {(text: string) => void} onProblem
 * @returns {{ask: Ask, end: () => void}}
 */
export function askKernel(model, onProblem) {
  /** @type {Map<number, {resolve: (found: TensorValues[]) => void, reject: (error: Error) => void}>} */
  const waiting = new Map();
  let lastId = 0;
  const receive = (/** @type {Answer} */ answer, /** @type {DataView[]} */ buffers) => {
    if (answer.type === "problem") onProblem(answer.text ?? "");
    const asked = answer.type === "values" ? waiting.get(answer.id) : undefined;
    if (asked === undefined) return;
    waiting.delete(answer.id);
    if (answer.tensors === undefined) asked.reject(new Error(answer.error ?? "the kernel gave no answer"));
    else asked.resolve(answer.tensors.map((tensor) => withPicture(tensor, buffers)));
  };
  model.on("msg:custom", receive);
  return {
    ask: (name, at) =>
      new Promise((resolve, reject) => {
        lastId += 1;
        waiting.set(lastId, { resolve, reject });
        model.send({ type: "values", id: lastId, name, at });
      }),
    end() {
      model.off("msg:custom", receive);
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
