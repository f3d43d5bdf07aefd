/** Small documents in the shape of real models, for tests of the pipeline. */
import { SCHEMA_VERSION, decode } from "../src/schema.js";

/** @typedef {{node: number, slot: number, shape: number[], dtype: string}} Tensor */

const ITEM_SIZES = /** @type {Record<string, number>} */ ({ float32: 4, int64: 8, bool: 1 });

export class DocumentBuilder {
  /** @param {string} title */
  constructor(title) {
    this.title = title;
    /** @type {any[]} */
    this.specs = [];
    /** @type {any[]} */
    this.calls = [callRow(title, "", title, null)];
    /** @type {any[]} */
    this.nodes = [];
    /** @type {any[]} */
    this.edges = [];
    /** @type {number[]} */
    this.inputs = [];
    /** @type {number[]} */
    this.outputs = [];
    /** @type {any} */
    this.error = null;
    this.scope = 0;
    /** @type {Map<string, number>} */
    this.uses = new Map();
  }

  /** @param {string} name @param {number[]} shape @param {string} [dtype] @returns {Tensor} */
  input(name, shape, dtype = "float32") {
    const tensor = this.node("input", name, null, null, [], shape, dtype);
    this.inputs.push(tensor.node);
    return tensor;
  }

  /** @param {string} name @param {Tensor} tensor */
  output(name, tensor) {
    this.outputs.push(this.node("output", name, null, null, [tensor], tensor.shape, tensor.dtype).node);
  }

  /** @param {string} name @param {number[]} shape @returns {Tensor} */
  parameter(name, shape) {
    return this.node("parameter", this.pathOf(name), null, this.scope, [], shape, "float32");
  }

  /** @param {string} op @param {Tensor[]} tensors @param {number[]} [shape] @param {string} [dtype] @returns {Tensor} */
  op(op, tensors, shape = tensors[0].shape, dtype = tensors[0]?.dtype ?? "float32") {
    return this.node("op", this.unique(this.pathOf(op)), op, this.scope, tensors, shape, dtype);
  }

  /**
   * @template T
   * @param {string} name dotted, below the enclosing call
   * @param {string} type
   * @param {() => T} inside
   * @param {number} [parameters]
   * @returns {T}
   */
  call(name, type, inside, parameters = 0) {
    const fqn = this.pathOf(name);
    const count = (this.uses.get(fqn) ?? 0) + 1;
    this.uses.set(fqn, count);
    const row = callRow(count > 1 ? `${fqn}:${count}` : fqn, fqn, type, this.scope);
    row.metrics.parameters = parameters;
    const outer = this.scope;
    this.scope = this.calls.push(row) - 1;
    const result = inside();
    this.scope = outer;
    return result;
  }

  /** @param {string} name @param {Tensor} x @param {number} width @returns {Tensor} */
  linear(name, x, width) {
    const last = /** @type {number} */ (x.shape.at(-1));
    return this.call(
      name,
      "Linear",
      () => {
        const weight = this.parameter("weight", [width, last]);
        return this.op("linear", [x, weight], [...x.shape.slice(0, -1), width]);
      },
      width * (last + 1),
    );
  }

  /** @param {string} name @param {string} type @param {string} op @param {Tensor} x @returns {Tensor} */
  plain(name, type, op, x) {
    return this.call(name, type, () => this.op(op, [x]));
  }

  /** @returns {any} the raw document */
  build() {
    const { title, specs, calls, nodes, edges, inputs, outputs, error } = this;
    const operations = nodes.filter((node) => node.kind === "op").length;
    return {
      schema_version: SCHEMA_VERSION,
      generator: "synthetic",
      title,
      specs,
      sources: [],
      calls,
      nodes,
      edges,
      inputs,
      outputs,
      error,
      coverage: { operations, nodes: operations, opaque: 0, outside: 0 },
      proof: { status: "not_run", reason: "" },
    };
  }

  /** @param {string} name */
  pathOf(name) {
    const fqn = this.calls[this.scope].name;
    return this.scope === 0 ? name : `${fqn}.${name}`;
  }

  /** @param {string} name */
  unique(name) {
    const count = this.uses.get(name) ?? 0;
    this.uses.set(name, count + 1);
    return count === 0 ? name : `${name}_${count}`;
  }

  /** @type {(kind: string, name: string, op: string | null, call: number | null, tensors: Tensor[], shape: number[], dtype: string) => Tensor} */
  node(kind, name, op, call, tensors, shape, dtype) {
    const spec = this.spec(shape, dtype);
    const row = {
      name,
      kind,
      op,
      call,
      status: "ok",
      outputs: [spec],
      arguments: [],
      source: null,
      note: null,
      metrics: {},
    };
    const node = this.nodes.push(row) - 1;
    tensors.forEach((tensor, at) => {
      this.edges.push([tensor.node, node, tensor.slot, String(at), this.spec(tensor.shape, tensor.dtype)]);
    });
    return { node, slot: 0, shape, dtype };
  }

  /** @param {number[]} shape @param {string} dtype */
  spec(shape, dtype) {
    const key = `${shape} ${dtype}`;
    const found = this.specs.findIndex((spec) => `${spec.shape} ${spec.dtype}` === key);
    if (found >= 0) return found;
    const size = shape.reduce((product, length) => product * length, ITEM_SIZES[dtype] ?? 4);
    return this.specs.push({ shape, dtype, device: "cpu", requires_grad: false, size_bytes: size }) - 1;
  }
}

/** @type {(name: string, fqn: string, type: string, parent: number | null) => any} */
function callRow(name, fqn, type, parent) {
  return { name, fqn, type, parent, status: "ok", inputs: [], outputs: [], detail: "", source: null, metrics: {} };
}

/** @param {any} document @returns {import("../src/types.js").Graph} */
export function graphOf(document) {
  const result = decode(document);
  if (result.status === "failure") throw new Error(result.errors.join("\n"));
  return result.graph;
}

/**
 * @param {number} layers
 * @param {{hasMask?: boolean}} [options] hasMask: one mask goes to every block
 */
export function gpt2(layers, { hasMask = false } = {}) {
  const b = new DocumentBuilder("GPT2LMHeadModel");
  const ids = b.input("input_ids", [1, 128], "int64");
  const mask = hasMask ? b.input("attention_mask", [1, 128], "int64") : null;
  const hidden = b.call("transformer", "GPT2Model", () => {
    const token = b.call("wte", "Embedding", () => b.op("embedding", [ids], [1, 128, 768], "float32"), 38597376);
    const range = b.op("arange", [], [128], "int64");
    const position = b.call("wpe", "Embedding", () => b.op("embedding", [range], [128, 768], "float32"), 786432);
    let x = b.op("add", [token, position]);
    const wide = mask ? b.op("to", [b.op("unsqueeze", [mask], [1, 1, 1, 128])], [1, 1, 1, 128], "bool") : null;
    for (let i = 0; i < layers; i += 1) x = b.call(`h.${i}`, "GPT2Block", () => block(b, x, wide), 7087872);
    return b.plain("ln_f", "LayerNorm", "layer_norm", x);
  });
  const logits = b.linear("lm_head", hidden, 50257);
  b.output("output.logits", logits);
  return b.build();
}

/** @type {(b: DocumentBuilder, x: Tensor, mask: Tensor | null) => Tensor} */
function block(b, x, mask) {
  const normed = b.plain("ln_1", "LayerNorm", "layer_norm", x);
  const attended = b.call("attn", "GPT2Attention", () => attention(b, normed, mask), 2362368);
  const first = b.op("add", [attended, x]);
  const second = b.plain("ln_2", "LayerNorm", "layer_norm", first);
  const fed = b.call(
    "mlp",
    "GPT2MLP",
    () => {
      const wide = b.linear("c_fc", second, 3072);
      const active = b.call("act", "NewGELUActivation", () => {
        const cubed = b.op("pow", [wide]);
        const inner = b.op("add", [wide, b.op("mul", [cubed])]);
        return b.op("mul", [b.op("mul", [wide]), b.op("add", [b.op("tanh", [inner])])]);
      });
      return b.plain("dropout", "Dropout", "dropout", b.linear("c_proj", active, 768));
    },
    4722432,
  );
  return b.op("add", [first, fed]);
}

/** @type {(b: DocumentBuilder, x: Tensor, mask: Tensor | null) => Tensor} */
function attention(b, x, mask) {
  const joint = b.linear("c_attn", x, 2304);
  const split = b.op("split", [joint], [1, 128, 768]);
  const heads = [0, 1, 2].map((slot) => {
    const part = { ...split, slot };
    b.nodes[split.node].outputs[slot] = b.nodes[split.node].outputs[0];
    return b.op("transpose", [b.op("view", [part], [1, 128, 12, 64])], [1, 12, 128, 64]);
  });
  const mixed = b.op("scaled_dot_product_attention", mask ? [...heads, mask] : heads);
  const flat = b.op("reshape", [b.op("transpose", [mixed], [1, 128, 12, 64])], [1, 128, 768]);
  return b.plain("resid_dropout", "Dropout", "dropout", b.linear("c_proj", flat, 768));
}

/** @param {number[]} depths blocks per stage */
export function resnet(depths) {
  const b = new DocumentBuilder("ResNet");
  let x = b.input("x", [1, 3, 224, 224]);
  const conv = (/** @type {string} */ name, /** @type {Tensor} */ from, /** @type {number[]} */ shape) =>
    b.call(name, "Conv2d", () => b.op("conv2d", [from], shape), 9408);
  x = b.plain("relu", "ReLU", "relu", b.plain("bn1", "BatchNorm2d", "batch_norm", conv("conv1", x, [1, 64, 112, 112])));
  x = b.call("maxpool", "MaxPool2d", () => b.op("max_pool2d", [x], [1, 64, 56, 56]));
  depths.forEach((count, stage) => {
    const shape = [1, 64 * 2 ** stage, 56 / 2 ** stage, 56 / 2 ** stage];
    x = b.call(`layer${stage + 1}`, "Sequential", () => {
      for (let i = 0; i < count; i += 1) {
        x = b.call(`${i}`, "BasicBlock", () => {
          const inside = b.plain(
            "relu",
            "ReLU",
            "relu",
            b.plain("bn1", "BatchNorm2d", "batch_norm", conv("conv1", x, shape)),
          );
          const out = b.plain("bn2", "BatchNorm2d", "batch_norm", conv("conv2", inside, shape));
          const isWider = i === 0 && stage > 0;
          const skip = isWider
            ? b.call("downsample", "Sequential", () => b.plain("1", "BatchNorm2d", "batch_norm", conv("0", x, shape)))
            : x;
          return b.plain("relu", "ReLU", "relu", b.op("add_", [out, skip]));
        });
      }
      return x;
    });
  });
  x = b.call("avgpool", "AdaptiveAvgPool2d", () => b.op("adaptive_avg_pool2d", [x], [...x.shape.slice(0, 2), 1, 1]));
  b.output("output", b.linear("fc", b.op("flatten", [x], x.shape.slice(0, 2)), 1000));
  return b.build();
}

/** @param {number} levels */
export function unet(levels) {
  const b = new DocumentBuilder("UNet");
  let x = b.input("image", [1, 3, 256, 256]);
  const double = (/** @type {string} */ name, /** @type {Tensor} */ from, /** @type {number} */ width) =>
    b.call(name, "DoubleConv", () => {
      let y = from;
      for (const i of [1, 2]) {
        const shape = [1, width, ...from.shape.slice(2)];
        const z = b.call(`conv${i}`, "Conv2d", () => b.op("conv2d", [y], shape), 1728 * width);
        y = b.plain(`relu${i}`, "ReLU", "relu", z);
      }
      return y;
    });
  /** @type {Tensor[]} */
  const skips = [];
  for (let level = 0; level < levels; level += 1) {
    x = double(`down.${level}`, x, 64 * 2 ** level);
    skips.push(x);
    x = b.op("max_pool2d", [x], [1, x.shape[1], x.shape[2] / 2, x.shape[3] / 2]);
  }
  x = double("bottom", x, 64 * 2 ** levels);
  for (let level = levels - 1; level >= 0; level -= 1) {
    const skip = skips[level];
    x = b.call(`up.${level}`, "ConvTranspose2d", () => b.op("conv_transpose2d", [x], skip.shape));
    x = double(`merge.${level}`, b.op("cat", [skip, x], [1, 2 * skip.shape[1], ...skip.shape.slice(2)]), skip.shape[1]);
  }
  b.output("output", x);
  return b.build();
}

/** One cell called for each step of a sequence. @param {number} steps */
export function cellLoop(steps) {
  const b = new DocumentBuilder("CellLoop");
  const x = b.input("x", [1, steps, 8]);
  let h = b.input("h", [1, 16]);
  /** @type {Tensor[]} */
  const seen = [];
  for (let step = 0; step < steps; step += 1) {
    const now = b.op("getitem", [x], [1, 8]);
    h = b.call("cell", "GRUCell", () => {
      const gate = b.op("sigmoid", [b.op("add", [b.op("linear", [now], [1, 16]), b.op("linear", [h], [1, 16])])]);
      return b.op("mul", [gate, b.op("tanh", [h])]);
    });
    seen.push(h);
  }
  b.output("output", b.op("stack", seen, [1, steps, 16]));
  return b.build();
}

/** A chain of operations in the outermost call. @param {number} length */
export function chain(length) {
  const b = new DocumentBuilder("Chain");
  let x = b.input("x", [4]);
  for (let i = 0; i < length; i += 1) x = b.op(i % 2 === 0 ? "relu" : "sigmoid", [x]);
  b.output("output", x);
  return b.build();
}

/** Modules nested in each other. @param {number} depth */
export function nest(depth) {
  const b = new DocumentBuilder("Nest");
  const x = b.input("x", [4]);
  /** @type {(level: number) => Tensor} */
  const level = (at) => (at === 0 ? b.op("relu", [x]) : b.call("inner", "Nest", () => level(at - 1)));
  b.output("output", level(depth));
  return b.build();
}
