"""Rules for layers: normalisation, attention, embeddings, recurrent layers, losses."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import nn

from torchatlas.crash.diagnosis import Changes, Diagnosis, Given, Remedy
from torchatlas.crash.origin import came_from
from torchatlas.crash.shapes import origins
from torchatlas.crash.site import Site, Stub, class_text, dtype_text, shape_text
from torchatlas.crash.trial import blank
from torchatlas.crash.windows import looks_channels_first
from torchatlas.record import Value


def layer_norm(site: Site) -> Diagnosis | None:
    """`layer_norm` and `rms_norm` over other sizes than the input's last."""
    data, sizes = site.tensor("input", at=0), site.argument("normalized_shape", at=1)
    if site.name not in ("layer_norm", "rms_norm") or data is None or not isinstance(sizes, (tuple, list)):
        return None
    wanted, found = tuple(sizes), tuple(int(size) for size in data.shape[-len(sizes) :])
    if wanted == found:
        return None
    axis = next((i for i in range(len(found)) if i >= len(wanted) or wanted[i] != found[i]), 0)
    axis += len(data.shape) - len(found)
    expected = str(wanted[0]) if len(wanted) == 1 else shape_text(wanted)
    got = str(found[0]) if len(found) == 1 else shape_text(found)
    attribute = site.attribute("normalized_shape")
    sentence = (
        f"{site.subject} normalises the last dimension{'s' * (len(wanted) > 1)} {expected}{attribute}, got {got} "
        f"{came_from(site, data, axis)}"
    )
    key = site.key_of(data)
    remedies = []
    module = site.own_module
    if module is not None:
        size = found[0] if len(found) == 1 else list(found)
        text = f"`{class_text(module)}({size})`"
        remedies.append(Remedy(text, _resized(site, found, ("normalized_shape",), ("weight", "bias"))))
    turned = [i for i in range(len(data.shape) - 1) if len(wanted) == 1 and data.shape[i] == wanted[0]]
    if turned:
        shape = list(data.shape)
        shape[turned[-1]], shape[-1] = shape[-1], shape[turned[-1]]
        text = f"`.transpose({turned[-1]}, {len(shape) - 1})` on its input"
        remedies.append(Remedy(text, {key: Stub.like(data, shape)}))
    facts = {"expected": wanted, "got": found, "input": tuple(data.shape)}
    fitted = Given(Stub.like(data, (*data.shape[: len(data.shape) - len(wanted)], *wanted)))
    return Diagnosis("norm", sentence, facts, tuple(remedies), (Given(Stub.like(data)), fitted))


def _resized(site: Site, sizes: tuple[int, ...], shapes: tuple[str, ...], tensors: tuple[str, ...]) -> Changes:
    """The arguments as a layer made for other sizes would give them."""
    changes: dict[int | str, Any] = {}
    for name in shapes:
        changes[site.key_of(site.argument(name))] = sizes
    for name in tensors:
        value = site.tensor(name)
        if value is not None:
            changes[site.key_of(value)] = Stub.like(value, sizes)
    return changes


def batch_norm(site: Site) -> Diagnosis | None:
    """Batch, instance and group normalisation with another number of channels; one value per channel."""
    data = site.tensor("input", at=0)
    if site.name not in ("batch_norm", "instance_norm", "group_norm") or data is None:
        return None
    if "more than 1 value per channel" in site.message or "more than 1 spatial element" in site.message:
        sentence = (
            f"{site.subject} is in training mode and needs more than one value per channel to take a mean of, got "
            f"{site.described(data)}: a larger batch, or `.eval()`"
        )
        return Diagnosis("norm", sentence, {"input": tuple(data.shape)}, (), (Given(Stub.like(data)),))
    kept = [site.tensor(name) for name in ("running_mean", "weight", "running_var", "bias")]
    pattern = next((value for value in kept if value is not None), None)
    if len(data.shape) < 2:
        return None
    channels = int(data.shape[1])
    groups = site.argument("num_groups", at=1)
    if site.name == "group_norm" and isinstance(groups, int) and channels % groups:
        sentence = (
            f"{site.subject} splits the channels into {groups} groups{site.attribute('num_groups')}, got {channels}, "
            f"no multiple of it, {came_from(site, data, 1)}"
        )
        return Diagnosis("norm", sentence, {"groups": groups, "got": channels}, (), (Given(Stub.like(data)),))
    if pattern is None or pattern.shape[0] == channels:
        return None
    expected = int(pattern.shape[0])
    attribute = site.attribute("num_features", "num_channels") or f" (its {pattern.kind} is {site.described(pattern)})"
    sentence = f"{site.subject} expects {expected} channels{attribute}, got {channels} {came_from(site, data, 1)}"
    return _channel_count(site, data, sentence, expected, channels)


def _channel_count(site: Site, data: Value, sentence: str, expected: int, channels: int) -> Diagnosis:
    module = site.own_module
    remedies = []
    if module is not None:
        first = f"{site.argument('num_groups', at=1)}, " if site.name == "group_norm" else ""
        text = f"`{class_text(module)}({first}{channels})`"
        tensors = ("running_mean", "running_var", "weight", "bias")
        remedies.append(Remedy(text, _resized(site, (channels,), (), tensors)))
    if data.shape[-1] == expected and len(data.shape) in (3, 4) and not looks_channels_first(data.shape):
        order = (0, 2, 1) if len(data.shape) == 3 else (0, 3, 1, 2)
        shape = [data.shape[axis] for axis in order]
        text = f"`.permute{order}` on its input" if len(order) == 4 else "`.transpose(1, 2)` on its input"
        remedies.append(Remedy(text, {site.key_of(data): Stub.like(data, shape)}))
    shape = [data.shape[0], expected, *data.shape[2:]]
    facts = {"expected": expected, "got": channels, "input": tuple(data.shape)}
    assumptions = (Given(Stub.like(data)), Given(Stub.like(data, shape)))
    return Diagnosis("norm", sentence, facts, tuple(remedies), assumptions)


def attention(site: Site) -> Diagnosis | None:
    """`scaled_dot_product_attention`: head sizes, lengths, mask."""
    if site.name != "scaled_dot_product_attention":
        return None
    query, key, value = (site.tensor(name, at=at) for at, name in enumerate(("query", "key", "value")))
    if query is None or key is None or value is None or min(len(v.shape) for v in (query, key, value)) < 2:
        return None
    result = Given(Stub.like(query, (*query.shape[:-1], value.shape[-1])))
    if query.shape[-1] != key.shape[-1]:
        sentence = (
            f"{site.subject}: the head size of the query {site.sourced(query)} is {query.shape[-1]}, that of the key "
            f"{site.sourced(key)} is {key.shape[-1]}"
        )
        sentence += origins(site, ((query, len(query.shape) - 1), (key, len(key.shape) - 1)))
        facts = {"query": tuple(query.shape), "key": tuple(key.shape)}
        return Diagnosis("attention", sentence, facts, (), (result,))
    if key.shape[-2] != value.shape[-2]:
        sentence = (
            f"{site.subject}: the key {site.sourced(key)} has length {key.shape[-2]}, the value {site.sourced(value)} "
            f"has {value.shape[-2]}"
        )
        sentence += origins(site, ((key, len(key.shape) - 2), (value, len(value.shape) - 2)))
        facts = {"key": tuple(key.shape), "value": tuple(value.shape)}
        return Diagnosis("attention", sentence, facts, (), (result,))
    mask = site.tensor("attn_mask", at=3)
    scores = (*query.shape[:-1], key.shape[-2])
    if mask is not None and not _broadcasts(mask.shape, scores):
        return _mask_clash(site, mask, query, key, scores, result)
    return _batch_clash(site, (("query", query), ("key", key), ("value", value)), result)


def _batch_clash(site: Site, rows: tuple[tuple[str, Value], ...], result: Given) -> Diagnosis | None:
    """Batch or head counts of query, key and value that differ."""
    first_name, first = rows[0]
    for name, other in rows[1:]:
        for axis in range(3, min(len(first.shape), len(other.shape)) + 1):
            one, two = int(first.shape[-axis]), int(other.shape[-axis])
            is_grouped = axis == 3 and bool(site.argument("enable_gqa", default=False))
            if one != two and (one % two if is_grouped else 1 not in (one, two)):
                what = "number of heads" if axis == 3 and len(first.shape) == 4 else "batch size"
                sentence = (
                    f"{site.subject}: the {what} of the {first_name} {site.sourced(first)} is {one}, that of the "
                    f"{name} {site.sourced(other)} is {two}{', which does not divide it' if is_grouped else ''}"
                )
                sentence += origins(site, ((first, len(first.shape) - axis), (other, len(other.shape) - axis)))
                return Diagnosis(
                    "attention", sentence, {first_name: tuple(first.shape), name: tuple(other.shape)}, (), (result,)
                )
    return None


def _broadcasts(shape: Any, target: Any) -> bool:
    pairs = zip(reversed(tuple(shape)), reversed(tuple(target)), strict=False)
    return len(shape) <= len(target) and all(size in (1, wanted) for size, wanted in pairs)


def _mask_clash(site: Site, mask: Value, query: Value, key: Value, scores: Any, result: Given) -> Diagnosis:
    queries, keys = int(scores[-2]), int(scores[-1])
    sentence = (
        f"{site.subject}: the mask {site.sourced(mask)} must broadcast to the scores {shape_text(scores)}, {queries} "
        f"queries by {keys} keys"
    )
    axes = [(mask, len(mask.shape) - 1), (key, len(key.shape) - 2)]
    if len(mask.shape) >= 2 and mask.shape[-2] not in (1, queries):
        axes += [(mask, len(mask.shape) - 2), (query, len(query.shape) - 2)]
    sentence += origins(site, axes)
    remedies = []
    if len(mask.shape) == 2 and tuple(mask.shape) == (query.shape[0], keys):
        wider = Stub.like(mask, (mask.shape[0], 1, 1, keys))
        remedies.append(Remedy("`[:, None, None, :]` on the mask", {site.key_of(mask): wider}))
    facts = {"mask": tuple(mask.shape), "scores": tuple(scores), "queries": queries, "keys": keys}
    return Diagnosis("mask", sentence, facts, tuple(remedies), (result,))


def multi_head(site: Site) -> Diagnosis | None:
    """`nn.MultiheadAttention`: embedding size, masks."""
    if site.name != "multi_head_attention_forward":
        return None
    query, key = site.tensor("query", at=0), site.tensor("key", at=1)
    size = site.argument("embed_dim_to_check", at=3)
    if query is None or key is None or len(query.shape) not in (2, 3):
        return None
    # torch hands (length, batch, size) to this function whatever `batch_first` says.
    result = Given((Stub.like(query, (*query.shape[:-1], size)), None))
    if query.shape[-1] != size:
        attribute = site.attribute("embed_dim")
        sentence = (
            f"{site.subject} expects last dimension {size}{attribute} of its query, got {query.shape[-1]} "
            f"{came_from(site, query, len(query.shape) - 1)}"
        )
        facts = {"expected": size, "got": int(query.shape[-1]), "input": tuple(query.shape)}
        return Diagnosis("attention", sentence, facts, (), (result,))
    if len(query.shape) == len(key.shape) == 3 and query.shape[1] != key.shape[1]:
        return _other_batch(site, query, key, result)
    targets, sources, batch = (
        int(query.shape[0]),
        int(key.shape[0]),
        int(query.shape[1]) if len(query.shape) == 3 else 1,
    )
    heads = int(site.argument("num_heads", at=4, default=1))
    return _multi_head_masks(site, key, result, (targets, sources, batch, heads)) or _key_size(site, key, size, result)


def _other_batch(site: Site, query: Value, key: Value, result: Given) -> Diagnosis:
    sentence = (
        f"{site.subject}: the batch size of the query {site.sourced(query)} is {query.shape[1]}, that of the key "
        f"{site.sourced(key)} is {key.shape[1]}"
    )
    facts = {"query": int(query.shape[1]), "key": int(key.shape[1])}
    return Diagnosis("attention", sentence + origins(site, ((query, 1), (key, 1))), facts, (), (result,))


def _key_size(site: Site, key: Value, size: Any, result: Given) -> Diagnosis | None:
    value = site.tensor("value", at=2)
    for name, row in (("key", key), ("value", value)):
        if row is not None and row.shape[-1] != size and not site.argument("use_separate_proj_weight", default=False):
            sentence = (
                f"{site.subject} expects last dimension {size}{site.attribute('embed_dim')} of its {name}, got "
                f"{row.shape[-1]} {came_from(site, row, len(row.shape) - 1)}"
            )
            return Diagnosis("attention", sentence, {"expected": size, "got": int(row.shape[-1])}, (), (result,))
    if value is not None and key.shape[0] != value.shape[0]:
        sentence = (
            f"{site.subject}: the key {site.sourced(key)} has length {key.shape[0]}, the value {site.sourced(value)} "
            f"has {value.shape[0]}"
        )
        return Diagnosis("attention", sentence, {"key": tuple(key.shape), "value": tuple(value.shape)}, (), (result,))
    return None


def _multi_head_masks(site: Site, key: Value, result: Given, sizes: tuple[int, int, int, int]) -> Diagnosis | None:
    targets, sources, batch, heads = sizes
    padding = site.tensor("key_padding_mask")
    if padding is not None and tuple(padding.shape) not in ((batch, sources), (sources,)):
        sentence = (
            f"{site.subject}: `key_padding_mask` must be {shape_text((batch, sources))}, batch {batch} by {sources} "
            f"keys, got {site.sourced(padding)}"
        )
        axes = [(padding, len(padding.shape) - 1), (key, 0)]
        facts = {"expected": (batch, sources), "got": tuple(padding.shape)}
        return Diagnosis(
            "mask", sentence + origins(site, axes), facts, _turned_mask(site, padding, (batch, sources)), (result,)
        )
    mask = site.tensor("attn_mask")
    wanted = ((targets, sources), (batch * heads, targets, sources))
    if mask is not None and tuple(mask.shape) not in wanted:
        expected = wanted[1] if len(mask.shape) == 3 else wanted[0]
        meaning = f"{targets} queries by {sources} keys" + (
            f" for batch {batch} × {heads} heads" if len(mask.shape) == 3 else ""
        )
        sentence = f"{site.subject}: `attn_mask` must be {shape_text(expected)}, {meaning}, got {site.sourced(mask)}"
        axes = [(mask, len(mask.shape) - 1), (key, 0)] if mask.shape else []
        facts = {"expected": expected, "got": tuple(mask.shape)}
        return Diagnosis("mask", sentence + origins(site, axes), facts, (), (result,))
    return None


def _turned_mask(site: Site, mask: Value, wanted: tuple[int, int]) -> tuple[Remedy, ...]:
    if tuple(mask.shape) != wanted[::-1]:
        return ()
    return (Remedy("`.t()` on the mask", {site.key_of(mask): Stub.like(mask, wanted)}),)


def embedding(site: Site) -> Diagnosis | None:
    """Indices outside the table of an embedding."""
    indices, weight = site.tensor("input", at=0), site.tensor("weight", at=1)
    if site.name not in ("embedding", "embedding_bag") or indices is None or weight is None:
        return None
    if indices.dtype.is_floating_point or indices.dtype.is_complex:
        return None
    lowest, highest = value_range(site, indices)
    rows = int(weight.shape[0])
    if lowest is None or highest is None or (lowest >= 0 and highest < rows):
        return None
    bad = highest if highest >= rows else lowest
    attribute = site.attribute("num_embeddings") or f" (its table is {site.described(weight)})"
    sentence = (
        f"{site.subject} has {rows} rows{attribute}, and was asked for row {bad}; indices must be 0 … {rows - 1}, "
        f"those from {site.described(indices)} are {lowest} … {highest}"
    )
    remedies = []
    if lowest >= 0 and site.own_module is not None:
        size = f"{highest + 1}, {weight.shape[1]}"
        text = f"`{class_text(site.own_module)}({size})`"
        remedies.append(Remedy(text, attempt=lambda: _look_up(site, indices, highest + 1)))
    facts = {"rows": rows, "lowest": lowest, "highest": highest, "indices": tuple(indices.shape)}
    shape = (*indices.shape, weight.shape[1]) if site.name == "embedding" else (indices.shape[0], weight.shape[1])
    return Diagnosis("embedding", sentence, facts, tuple(remedies), (Given(Stub.like(weight, shape)),))


def _look_up(site: Site, indices: Value, rows: int) -> None:
    """Look the indices up in a table of so many rows; raises where one lies outside."""
    live = site.live(indices)
    assert live is not None, "indices whose range is known have values"
    nn.functional.embedding(live.long(), torch.zeros(rows, 1, device=live.device))


def value_range(site: Site, value: Value) -> tuple[int | None, int | None]:
    """Lowest and highest value of a tensor of whole numbers; None where there are no values."""
    tensor = site.live(value)
    if tensor is None or tensor.numel() == 0:
        return None, None
    try:
        low, high = tensor.detach().min().item(), tensor.detach().max().item()
    except RuntimeError:  # after an error on an accelerator nothing can be read from it any more
        return None, None
    return int(low), int(high)


_LOSSES = {"cross_entropy", "nll_loss", "binary_cross_entropy", "multi_margin_loss"}


def loss(site: Site) -> Diagnosis | None:
    """Losses: classes out of range, batch sizes, dtype of the target."""
    data, target = site.tensor("input", "self", at=0), site.tensor("target", at=1)
    if site.name not in _LOSSES or data is None or target is None or not data.shape:
        return None
    scalar = Given(Stub.like(data, ()))
    classes = int(data.shape[1] if len(data.shape) > 1 else data.shape[0])
    if site.name != "binary_cross_entropy" and not target.dtype.is_floating_point:
        lowest, highest = value_range(site, target)
        ignored = site.argument("ignore_index", default=-100)
        if highest is not None and lowest is not None and (highest >= classes or (lowest < 0 and lowest != ignored)):
            bad = highest if highest >= classes else lowest
            sentence = (
                f"{site.subject} has scores for {classes} classes from {site.described(data)}, but the target "
                f"{site.sourced(target)} names class {bad}; classes are 0 … {classes - 1}"
            )
            facts: dict[str, Any] = {"classes": classes, "class": bad}
            return Diagnosis(
                "target", sentence + origins(site, ((data, min(1, len(data.shape) - 1)),)), facts, (), (scalar,)
            )
    weight = site.tensor("weight")
    if weight is not None and site.name != "binary_cross_entropy" and tuple(weight.shape) != (classes,):
        sentence = (
            f"{site.subject} has scores for {classes} classes from {site.described(data)}, but weights for "
            f"{weight.shape[0] if weight.shape else 1}: {site.described(weight)}"
        )
        facts = {"classes": classes, "weights": tuple(weight.shape)}
        axes = ((data, min(1, len(data.shape) - 1)),)
        return Diagnosis("target", sentence + origins(site, axes), facts, (), (scalar,))
    if target.shape and data.shape[0] != target.shape[0]:
        sentence = (
            f"{site.subject} needs as many targets as rows: the scores {site.sourced(data)} have {data.shape[0]}, the "
            f"target {site.sourced(target)} has {target.shape[0]}"
        )
        facts = {"input": tuple(data.shape), "target": tuple(target.shape)}
        return Diagnosis("target", sentence + origins(site, ((data, 0), (target, 0))), facts, (), (scalar,))
    if site.name == "binary_cross_entropy" and tuple(data.shape) != tuple(target.shape):
        sentence = f"{site.subject} needs equal shapes, got {site.sourced(data)} and the target {site.sourced(target)}"
        facts = {"input": tuple(data.shape), "target": tuple(target.shape)}
        return Diagnosis("target", sentence, facts, (), (scalar,))
    return None


# Layers that check their input in Python, so that no operation fails


def recurrent(site: Site) -> Diagnosis | None:
    """`nn.LSTM`, `nn.GRU` and `nn.RNN`, and their cells: input size, hidden state."""
    module, call = site.module, site.call
    if not isinstance(module, (nn.RNNBase, nn.RNNCellBase)) or call is None or not call.reads:
        return None
    data = call.reads[0]
    if data.shape is None or not data.shape:
        return None
    name = site.call_name(call)
    if data.shape[-1] != module.input_size:
        sentence = (
            f"{name} expects last dimension {module.input_size} (its `input_size`), got {data.shape[-1]} "
            f"{came_from(site, data, len(data.shape) - 1)}"
        )
        text = f"`{class_text(module)}({data.shape[-1]}, {module.hidden_size})`"
        facts = {"expected": module.input_size, "got": int(data.shape[-1]), "input": tuple(data.shape)}
        remedy = Remedy(text, attempt=lambda: _run_recurrent(module, data))
        return Diagnosis("recurrent", sentence, facts, (remedy,), _recurrent_result(module, data))
    ranks = (1, 2) if isinstance(module, nn.RNNCellBase) else (2, 3)
    if len(data.shape) not in ranks:
        sentence = (
            f"{site.called(call)} expects {ranks[1]} dimensions, or {ranks[0]} without batch, got {len(data.shape)} "
            f"from {site.described(data)}"
        )
        return Diagnosis("recurrent", sentence, {"dimensions": len(data.shape), "input": tuple(data.shape)})
    found = re.search(r"Expected hidden(?:\[(\d)\])? size \(([\d, ]+)\), got \[([\d, ]+)\]", site.message)
    if found is None:
        return None
    number = int(found[1] or 0)
    state = call.reads[1 + number] if len(call.reads) > 1 + number else None
    origin = "" if state is None else f" from {site.maker(state)}"
    sentence = (
        f"{name} expects a hidden state of ({found[2]}), layers × directions, batch, `hidden_size`, got ({found[3]})"
        f"{origin}; its input is {site.described(data)}"
    )
    return Diagnosis(
        "recurrent", sentence, {"expected": found[2], "got": found[3]}, (), _recurrent_result(module, data)
    )


def _run_recurrent(module: Any, data: Value) -> None:
    """Run a recurrent layer made for this input, without values; raises where it does not take it."""
    options: dict[str, Any] = {"bias": module.bias, "device": "meta", "dtype": data.dtype}
    if isinstance(module, nn.RNNBase):
        options |= {"num_layers": module.num_layers, "batch_first": module.batch_first}
        options |= {"bidirectional": module.bidirectional}
    type(module)(data.shape[-1], module.hidden_size, **options)(blank(data, "meta"))


def _recurrent_result(module: Any, data: Value) -> tuple[Given, ...]:
    if isinstance(module, nn.RNNCellBase):
        state = Stub.like(data, (*data.shape[:-1], module.hidden_size))
        return (Given((state, state) if isinstance(module, nn.LSTMCell) else state),)
    ways = 2 if module.bidirectional else 1
    width = getattr(module, "proj_size", 0) or module.hidden_size
    out = Stub.like(data, (*data.shape[:-1], ways * width))
    batch = () if len(data.shape) == 2 else (data.shape[0 if module.batch_first else 1],)
    state = Stub.like(data, (ways * module.num_layers, *batch, width))
    cell = Stub.like(data, (ways * module.num_layers, *batch, module.hidden_size))
    return (Given((out, (state, cell)) if isinstance(module, nn.LSTM) else (out, state)),)


def transformer(site: Site) -> Diagnosis | None:
    """`nn.Transformer`, which compares source and target itself."""
    module, call = site.module, site.call
    if not isinstance(module, nn.Transformer) or call is None or site.op is not None or len(call.reads) < 2:
        return None
    source, target = call.reads[:2]
    if source.shape is None or target.shape is None:
        return None
    for name, value in (("source", source), ("target", target)):
        if value.shape[-1] != module.d_model:
            sentence = (
                f"{site.called(call)} expects last dimension {module.d_model} (its `d_model`) of its {name}, got "
                f"{value.shape[-1]} {came_from(site, value, len(value.shape) - 1)}"
            )
            result = Given(Stub.like(target, (*target.shape[:-1], module.d_model)))
            facts = {"expected": module.d_model, "got": int(value.shape[-1])}
            return Diagnosis("attention", sentence, facts, (), (result,))
    axis = 0 if module.batch_first else 1
    if len(source.shape) == len(target.shape) == 3 and source.shape[axis] != target.shape[axis]:
        sentence = (
            f"{site.called(call)}: the batch size of the source {site.sourced(source)} is {source.shape[axis]}, that "
            f"of the target {site.sourced(target)} is {target.shape[axis]}"
        )
        facts = {"source": int(source.shape[axis]), "target": int(target.shape[axis])}
        return Diagnosis("attention", sentence, facts, (), (Given(Stub.like(target)),))
    return None


def normalisation_input(site: Site) -> Diagnosis | None:
    """`nn.BatchNorm2d` and the like, which check the number of dimensions themselves."""
    module, call = site.module, site.call
    if not isinstance(module, nn.modules.batchnorm._NormBase) or call is None or not call.reads or site.op is not None:
        return None
    data = call.reads[0]
    found = re.search(r"expected (.+?) input \(got (\d)D input\)", site.message)
    name = site.call_name(call)
    if found is not None:
        sentence = (
            f"{site.called(call)} expects {found[1]} input, got {found[2]} dimensions from {site.described(data)}"
        )
        facts = {"expected": found[1], "got": int(found[2])}
        return Diagnosis("norm", sentence, facts, (), (Given(Stub.like(data)),))
    if data.shape is not None and len(data.shape) > 1 and "num_features" in site.message:
        axis = len(data.shape) - (2 if isinstance(module, nn.InstanceNorm1d) else 3)
        axis = max(0, axis)
        sentence = (
            f"{name} expects {module.num_features} channels (its `num_features`), got {data.shape[axis]} "
            f"{came_from(site, data, axis)}"
        )
        facts = {"expected": module.num_features, "got": int(data.shape[axis])}
        return Diagnosis("norm", sentence, facts, (), (Given(Stub.like(data)),))
    return None


def prelu(site: Site) -> Diagnosis | None:
    """`nn.PReLU` with another number of channels."""
    data, weight = site.tensor("input", "self", at=0), site.tensor("weight", at=1)
    if site.name != "prelu" or data is None or weight is None or not weight.shape or len(data.shape) < 2:
        return None
    if weight.shape[0] in (1, data.shape[1]):
        return None
    sentence = (
        f"{site.subject} has {weight.shape[0]} slopes{site.attribute('num_parameters')}, got {data.shape[1]} channels "
        f"{came_from(site, data, 1)}"
    )
    facts = {"expected": int(weight.shape[0]), "got": int(data.shape[1]), "dtype": dtype_text(data.dtype)}
    return Diagnosis("norm", sentence, facts, (), (Given(Stub.like(data)),))


RULES = (
    layer_norm, batch_norm, attention, multi_head, embedding, loss, recurrent, transformer, normalisation_input, prelu,
)  # fmt: skip
