/**
 * A document like that of GPT-2, made by hand for tests that need a large graph with repetition.
 *
 * @param {number} layers
 * @param {{failsIn?: number, proof?: string}} [options] failsIn: number of the block whose attention raises
 * @returns {any} a document
 */
export function gpt2Document(layers, { failsIn = -1, proof = "passed" } = {}) {
  const builder = new Builder("GPT2LMHeadModel");
  const wide = builder.spec([1, 128, 768]);
  const ids = builder.node({ name: "input_ids", kind: "input", outputs: [builder.spec([1, 128], "int64", 8)] });
  const model = builder.call("transformer", "GPT2Model", 0, { parameters: 124439808 });
  const wte = builder.module("transformer.wte", "Embedding", model, "embedding", [ids], wide, { parameters: 38597376 });
  const arange = builder.node({
    name: "transformer.arange",
    kind: "op",
    op: "arange",
    call: model,
    outputs: [builder.spec([1, 128], "int64", 8)],
  });
  const wpe = builder.module("transformer.wpe", "Embedding", model, "embedding", [arange], wide, {
    parameters: 786432,
  });
  const mask = builder.node({
    name: "transformer.mask",
    kind: "constant",
    call: model,
    outputs: [builder.spec([1, 1, 128, 128], "bool", 1)],
  });
  let hidden = builder.op("transformer.add", "add", model, [wte, wpe], wide);
  for (let layer = 0; layer < layers; layer += 1) {
    const result = block(builder, model, layer, hidden, mask, layer === failsIn);
    if (result === null) return builder.document("not_applicable");
    hidden = result;
  }
  const norm = builder.module("transformer.ln_f", "LayerNorm", model, "layer_norm", [hidden], wide, {
    parameters: 1536,
  });
  const head = builder.module("lm_head", "Linear", 0, "linear", [norm], builder.spec([1, 128, 50257]), {
    parameters: 38597376,
  });
  const output = builder.node({ name: "output.logits", kind: "output", outputs: [builder.spec([1, 128, 50257])] });
  builder.edge(head, output, "output");
  return builder.document(proof);
}

/** @type {(builder: Builder, model: number, layer: number, hidden: number, mask: number, isFailing: boolean) => number | null} */
function block(builder, model, layer, hidden, mask, isFailing) {
  const name = `transformer.h.${layer}`;
  const wide = builder.spec([1, 128, 768]);
  const heads = builder.spec([1, 12, 128, 64]);
  const self = builder.call(name, "GPT2Block", model, { parameters: 7087872, flops: 1.9e9, size_bytes: 9e6 });
  const norm = builder.module(`${name}.ln_1`, "LayerNorm", self, "layer_norm", [hidden], wide, { parameters: 1536 });
  const attention = builder.call(`${name}.attn`, "GPT2Attention", self, { parameters: 2362368, flops: 7e8 });
  const packed = builder.module(
    `${name}.attn.c_attn`,
    "Conv1D",
    attention,
    "addmm",
    [norm],
    builder.spec([1, 128, 2304]),
    { parameters: 1771776, flops: 4.5e8 },
  );
  const split = builder.op(`${name}.attn.split`, "split", attention, [packed], wide, 3);
  const parts = [0, 1, 2].map((slot) => {
    const view = builder.op(
      `${name}.attn.view_${slot}`,
      "view",
      attention,
      [[split, slot]],
      builder.spec([1, 128, 12, 64]),
    );
    return builder.op(`${name}.attn.transpose_${slot}`, "transpose", attention, [view], heads);
  });
  const attend = builder.op(
    `${name}.attn.scaled_dot_product_attention`,
    "scaled_dot_product_attention",
    attention,
    [...parts, mask],
    heads,
  );
  if (isFailing) {
    builder.fail(attend, [0, model, self, attention]);
    return null;
  }
  const reshape = builder.op(`${name}.attn.reshape`, "reshape", attention, [attend], wide);
  const project = builder.module(`${name}.attn.c_proj`, "Conv1D", attention, "addmm", [reshape], wide, {
    parameters: 590592,
    flops: 1.5e8,
  });
  const dropout = builder.module(`${name}.attn.resid_dropout`, "Dropout", attention, "dropout", [project], wide, {});
  const middle = builder.op(`${name}.add`, "add", self, [dropout, hidden], wide);
  const norm2 = builder.module(`${name}.ln_2`, "LayerNorm", self, "layer_norm", [middle], wide, { parameters: 1536 });
  const mlp = builder.call(`${name}.mlp`, "GPT2MLP", self, { parameters: 4722432, flops: 1.2e9 });
  const up = builder.module(`${name}.mlp.c_fc`, "Conv1D", mlp, "addmm", [norm2], builder.spec([1, 128, 3072]), {
    parameters: 2362368,
    flops: 6e8,
  });
  const act = builder.module(
    `${name}.mlp.act`,
    "NewGELUActivation",
    mlp,
    "gelu",
    [up],
    builder.spec([1, 128, 3072]),
    {},
  );
  const down = builder.module(`${name}.mlp.c_proj`, "Conv1D", mlp, "addmm", [act], wide, {
    parameters: 2360064,
    flops: 6e8,
  });
  return builder.op(`${name}.add_1`, "add", self, [down, middle], wide);
}

class Builder {
  /** @param {string} title */
  constructor(title) {
    this.title = title;
    /** @type {any[]} */
    this.specs = [];
    /** @type {any[]} */
    this.nodes = [];
    /** @type {any[]} */
    this.edges = [];
    /** @type {any[]} */
    this.calls = [];
    /** @type {any} */
    this.error = null;
    this.sources = [
      {
        file: "models/modeling_gpt2.py",
        line: 214,
        function: "forward",
        code: [
          "        attn_output = attn_output.reshape(*shape)",
          "        attn_output = self.c_proj(attn_output)",
          "        attn_output = self.resid_dropout(attn_output)",
        ],
        first_line: 213,
      },
    ];
    this.call(title, title, null, { parameters: 124439808 });
  }

  /** @type {(shape: number[], dtype?: string, bytes?: number) => number} */
  spec(shape, dtype = "float32", bytes = 4) {
    const found = this.specs.findIndex((spec) => String(spec.shape) === String(shape) && spec.dtype === dtype);
    if (found >= 0) return found;
    const size = shape.reduce((product, length) => product * length, bytes);
    return this.specs.push({ shape, dtype, device: "cpu", requires_grad: false, size_bytes: size }) - 1;
  }

  /** @type {(name: string, type: string, parent: number | null, metrics: Record<string, number>) => number} */
  call(name, type, parent, metrics) {
    const fqn = parent === null ? "" : name;
    return (
      this.calls.push({
        name,
        fqn,
        type,
        parent,
        status: "ok",
        inputs: [],
        outputs: [],
        detail: "",
        source: null,
        metrics,
      }) - 1
    );
  }

  /** @param {any} fields */
  node(fields) {
    const plain = {
      op: null,
      call: null,
      status: "ok",
      outputs: [],
      arguments: [],
      source: null,
      note: null,
      metrics: {},
    };
    return this.nodes.push({ ...plain, ...fields }) - 1;
  }

  /** @type {(tail: number | number[], head: number, slot: string) => void} */
  edge(tail, head, slot) {
    const [node, result] = Array.isArray(tail) ? tail : [tail, 0];
    this.edges.push([node, head, result, slot, this.nodes[node].outputs[result]]);
  }

  /** @type {(name: string, op: string, call: number, inputs: (number | number[])[], spec: number, results?: number) => number} */
  op(name, op, call, inputs, spec, results = 1) {
    const outputs = Array.from({ length: results }, () => spec);
    const id = this.node({
      name,
      kind: "op",
      op,
      call,
      outputs,
      source: 0,
      arguments:
        op === "transpose"
          ? [
              ["dim0", "1"],
              ["dim1", "2"],
            ]
          : [],
    });
    inputs.forEach((tail, at) => this.edge(tail, id, at === 0 ? "input" : String(at)));
    return id;
  }

  /** @type {(name: string, type: string, parent: number, op: string, inputs: (number | number[])[], spec: number, metrics: Record<string, number>) => number} */
  module(name, type, parent, op, inputs, spec, metrics) {
    const id = this.call(name, type, parent, metrics);
    const call = this.calls[id];
    call.source = 0;
    call.detail = type === "LayerNorm" ? "(768,), eps=1e-05, elementwise_affine=True" : "";
    call.outputs = [spec];
    call.inputs = inputs.map((tail) =>
      Array.isArray(tail) ? this.nodes[tail[0]].outputs[tail[1]] : this.nodes[tail].outputs[0],
    );
    return this.op(`${name}.${op}`, op, id, inputs, spec);
  }

  /** @type {(node: number, calls: number[]) => void} */
  fail(node, calls) {
    this.nodes[node].status = "failed";
    this.nodes[node].outputs = [];
    for (const id of calls) this.calls[id].status = "failed";
    this.error = {
      type: "RuntimeError",
      message: "The size of tensor a (128) must match the size of tensor b (64) at non-singleton dimension 3",
      node,
      calls,
      source: 0,
      explanation: "The mask has 128 keys, the keys have 64: past_key_values was cut but attention_mask was not.",
    };
  }

  /** @param {string} proof */
  document(proof) {
    const { title, specs, sources, calls, nodes, edges, error } = this;
    const ids = (/** @type {string} */ kind) => nodes.map((_, id) => id).filter((id) => nodes[id].kind === kind);
    const operations = nodes.filter((node) => node.kind === "op").length;
    return {
      schema_version: 1,
      generator: "torchatlas test",
      title,
      specs,
      sources,
      calls,
      nodes,
      edges,
      inputs: ids("input"),
      outputs: ids("output"),
      error,
      coverage: { operations, nodes: operations, opaque: 0, outside: 0 },
      proof: { status: proof, reason: "" },
    };
  }
}
