"""Rules for what tensors are, other than their shapes: dtype, device, values used as indices, autograd, memory."""

from __future__ import annotations

import math
import re
from typing import Any

import torch

from torchatlas.crash.diagnosis import Diagnosis, Given, Remedy
from torchatlas.crash.layers import value_range
from torchatlas.crash.site import Site, Stub, code_place, dtype_text, inner_values, shape_text
from torchatlas.crash.trial import Refused, blank, call, result_of
from torchatlas.record import Op, Value

_DTYPE_MESSAGE = re.compile(
    r"dtype|scalar type|data ?type|same type|should be the same|result type|\bHalf\b|\bLong\b|LongTensor|\bFloat\b"
    r"|\bDouble\b|\bBFloat16\b|must be long, int|bool tensors?|not implemented for"
)
_DEVICE_MESSAGE = re.compile(r"device|\bcuda\b|\bmeta\b", re.IGNORECASE)
_MEMORY_MESSAGE = re.compile(r"out of memory|can't allocate memory|not enough memory|failed to allocate", re.IGNORECASE)
_SPOKEN = {
    "Half": torch.float16, "BFloat16": torch.bfloat16, "Float": torch.float32, "Double": torch.float64,
    "Bool": torch.bool, "Byte": torch.uint8, "Char": torch.int8, "Short": torch.int16, "Int": torch.int32,
    "Long": torch.int64,
}  # fmt: skip
"""Names that kernels give dtypes in their messages."""
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def device(site: Site) -> Diagnosis | None:
    """Tensors on different devices."""
    values = site.reads()
    places = {str(value.device) for value in values if value.shape != torch.Size(()) or value.kind != "op"}
    if len(places) < 2 or not _DEVICE_MESSAGE.search(site.message):
        return None
    groups = {place: [value for value in values if str(value.device) == place] for place in sorted(places)}
    told = " and ".join(
        f"{', '.join(site.described(value) for value in rows[:3])} on {place}" for place, rows in groups.items()
    )
    home = _home_device(values)
    sentence = f"{site.subject} needs its tensors on one device, got {told}"
    strange = next((value for value in values if str(value.device) != home), values[0])
    moved: dict[int | str, Stub] = {
        position: Stub(tuple(value.shape), value.dtype, home)
        for position, value in enumerate(site.op.args if site.op else ())
        if isinstance(value, Value) and value.shape is not None
    }
    text = f"`.to('{home}')` on {site.maker(strange)}"
    facts = {
        "devices": tuple(groups),
        "tensors": {place: tuple(map(site.maker, rows)) for place, rows in groups.items()},
    }
    remedies = (Remedy(text, moved),) if home != "meta" else ()
    return Diagnosis("device", sentence, facts, remedies, (moved,))


def _home_device(values: list[Value]) -> str:
    """Where the others should go: to the parameters; else to where most tensors are."""
    owned = [value for value in values if value.kind in ("parameter", "buffer")]
    places = [str(value.device) for value in owned or values]
    return max(dict.fromkeys(places), key=places.count)


def dtype(site: Site) -> Diagnosis | None:
    """Dtypes that an operation does not take together, or at all."""
    if not _DTYPE_MESSAGE.search(site.message) or site.op is None:
        return None
    values = site.reads()
    index = _index_dtype(site, values)
    if index is not None:
        return index
    if "not implemented for" in site.message:
        return _one_dtype(site, values)
    kinds = list(dict.fromkeys(value.dtype for value in values))
    if "can't be cast" in site.message and site.op.name.endswith("_"):
        return _lossy_write(site, values)
    if len(kinds) < 2:
        return _one_dtype(site, values)
    owned = [value for value in values if value.kind in ("parameter", "buffer")]
    wanted = _wanted_dtype(owned or values)
    strange = next((value for value in values if value.dtype != wanted), values[0])
    others = next((value for value in owned or values if value.dtype == wanted), values[0])
    sentence = (
        f"{site.subject} got {dtype_text(strange.dtype)} from {site.described(strange)} and {dtype_text(wanted)} from "
        f"{site.described(others)}; the dtypes must be the same{_cast_from(site, strange)}"
    )
    cast = {
        site.key_of(value): Stub.like(value, dtype=wanted)
        for value in site.arguments.values()
        if isinstance(value, Value) and value.shape is not None and _is_castable(value, wanted)
    }
    remedy = Remedy(f"`.to(torch.{dtype_text(wanted)})` on {site.maker(strange)}", cast, is_real=True)
    remedies = () if strange.dtype.is_complex else (remedy,)  # the imaginary part would be lost
    facts = {"dtypes": tuple(map(dtype_text, kinds)), "expected": dtype_text(wanted), "got": dtype_text(strange.dtype)}
    return Diagnosis("dtype", sentence, facts, remedies, (cast,))


def _is_castable(value: Value, wanted: torch.dtype) -> bool:
    return value.dtype != wanted and value.dtype != torch.bool


def _wanted_dtype(values: list[Value]) -> torch.dtype:
    floats = [value.dtype for value in values if value.dtype in _FLOATS]
    return max(dict.fromkeys(floats), key=floats.count) if floats else values[0].dtype


def _cast_from(site: Site, value: Value) -> str:
    """Where a dtype was made, when the operation that cast to it is further up."""
    current = value
    for _ in range(200):
        op = current.op
        if op is None or not op.reads:
            break
        before = next((row for row in op.reads if row.shape is not None), None)
        if before is None or before.dtype != value.dtype:
            if op is value.op:
                return ""
            return f"; {dtype_text(value.dtype)} comes from {site.who(op)}{code_place(op)}"
        current = before
    return "" if current is value else f"; {dtype_text(value.dtype)} comes from {site.maker(current)}"


def _index_dtype(site: Site, values: list[Value]) -> Diagnosis | None:
    """Indices and targets that must be whole numbers."""
    assert site.op is not None, "no operation failed"
    roles = {
        "embedding": ("input",), "embedding_bag": ("input",), "gather": ("index",), "scatter": ("index",),
        "scatter_add": ("index",), "index_select": ("index",), "cross_entropy": ("target",), "nll_loss": ("target",),
        "one_hot": ("self", "tensor", "input"), "index_add": ("index",), "take_along_dim": ("indices",),
    }  # fmt: skip
    found = site.tensor(*roles[site.name]) if site.name in roles else None
    if site.name in ("getitem", "setitem") and len(site.op.args) > 1:
        found = next((v for v in inner_values(site.op.args[1]) if v.dtype.is_floating_point), None)
    if found is None or not (found.dtype.is_floating_point or found.dtype.is_complex):
        return None
    what = "class numbers" if site.name in ("cross_entropy", "nll_loss") else "indices"
    sentence = (
        f"{site.subject} needs whole numbers (int64, Long) as {what}, got {dtype_text(found.dtype)} from "
        f"{site.described(found)}{_cast_from(site, found)}"
    )
    whole = Stub.like(found, dtype=torch.int64)
    remedies: tuple[Remedy, ...] = ()
    assumptions: tuple[Any, ...] = ()
    if any(found is arg for arg in (*site.op.args, *site.op.kwargs.values())):
        changes = {site.key_of(found): whole}
        assumptions = (changes,)
        remedies = (Remedy(f"`.long()` on {site.maker(found)}", changes, is_real=True),)
    facts = {"expected": "int64", "got": dtype_text(found.dtype)}
    return Diagnosis("dtype", sentence, facts, remedies, assumptions)


def _lossy_write(site: Site, values: list[Value]) -> Diagnosis | None:
    assert site.op is not None, "no operation failed"
    target = site.op.args[0] if site.op.args else None
    if not isinstance(target, Value) or len(values) < 1:
        return None
    other = next((value for value in values if value.dtype != target.dtype), None)
    by = "" if other is None else f" the result with {dtype_text(other.dtype)} from {site.described(other)}"
    sentence = (
        f"{site.subject} can't write{by} in place into {dtype_text(target.dtype)} {site.described(target)}: it would "
        "lose digits"
    )
    facts = {"target": dtype_text(target.dtype), "other": None if other is None else dtype_text(other.dtype)}
    return Diagnosis("dtype", sentence, facts, (), (Given(target),))


def _one_dtype(site: Site, values: list[Value]) -> Diagnosis | None:
    """An operation that does not exist for the one dtype it was given."""
    if not values:
        return None
    named = re.search(r"not implemented for '(\w+)'", site.message)
    wrong = _SPOKEN.get(named[1]) if named is not None else None
    values = [value for value in values if value.dtype == wrong] or values
    kind = values[0].dtype
    is_named = "not implemented for" in site.message or "bool tensor" in site.message or "floating" in site.message
    if not is_named:
        return None
    sentence = f"{site.subject} does not work on {dtype_text(kind)}, got {site.described(values[0])}"
    sentence += _cast_from(site, values[0])
    cast = {
        site.key_of(value): Stub.like(value, dtype=torch.float32)
        for value in site.arguments.values()
        if isinstance(value, Value) and value.shape is not None
    }
    is_float = kind in _FLOATS and kind is not torch.float16
    remedies = (Remedy(f"`.float()` on {site.maker(values[0])}", cast, is_real=True),) if cast and not is_float else ()
    return Diagnosis("dtype", sentence, {"got": dtype_text(kind)}, remedies, (cast,) if cast else ())


def index(site: Site) -> Diagnosis | None:
    """Numbers and tensors used as indices beyond the end; more indices than dimensions."""
    op = site.op
    if op is None or not op.args or not isinstance(op.args[0], Value) or op.args[0].shape is None:
        return None
    data: Value = op.args[0]
    if site.name in ("getitem", "setitem") and len(op.args) > 1:
        return _subscript(site, data, op.args[1])
    given = site.tensor("index", "indices")
    dim = site.argument("dim", at=1)
    if site.name == "one_hot":
        low, high = value_range(site, data)
        classes = site.argument("num_classes", at=1)
        if high is None or not isinstance(classes, int) or low is None or (low >= 0 and high < classes):
            return None
        sentence = f"{site.subject} has {classes} classes, but {site.described(data)} holds {high if low >= 0 else low}"
        return Diagnosis(
            "index",
            sentence,
            {"classes": classes, "index": high},
            (),
            (Given(Stub((*data.shape, classes), torch.int64)),),
        )
    if given is None or not isinstance(dim, int) or not -len(data.shape) <= dim < len(data.shape):
        return None
    low, high = value_range(site, given) if not given.dtype.is_floating_point else (None, None)
    size = int(data.shape[dim])
    if low is None or high is None or (low >= 0 and high < size):
        return None
    bad = high if high >= size else low
    sentence = (
        f"{site.subject} was given index {bad} by {site.described(given)} for dimension {dim} of "
        f"{site.described(data)}, which has size {size}"
    )
    facts = {"index": bad, "dimension": dim, "size": size}
    shapes = {
        "index_select": (*data.shape[: dim % len(data.shape)], *given.shape, *data.shape[dim % len(data.shape) + 1 :])
    }
    shape = shapes.get(site.name, data.shape if site.name in ("scatter", "index_add", "scatter_add") else given.shape)
    return Diagnosis("index", sentence, facts, (), (Given(Stub.like(data, shape)),))


def _subscript(site: Site, data: Value, index_given: Any) -> Diagnosis | None:
    parts = list(index_given) if isinstance(index_given, tuple) else [index_given]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    is_masked = any(isinstance(part, Value) and part.dtype in (torch.bool, torch.uint8) for part in parts)
    rank = len(data.shape)
    if used > rank and not is_masked:
        sentence = f"{site.subject} uses {used} indices on {site.described(data)}, which has {rank} dimensions"
        return Diagnosis("index", sentence, {"indices": used, "dimensions": rank})
    axis = 0
    for number, part in enumerate(parts):
        if part is Ellipsis:
            axis = rank - sum(rest is not None for rest in parts[number + 1 :])
            continue
        if part is None:
            continue
        if isinstance(part, Value) and part.dtype == torch.bool and part.shape is not None:
            clash = _mask_index(site, data, part, axis)
            if clash is not None:
                return clash
            axis += len(part.shape)
            continue
        bad = _beyond(site, part, int(data.shape[axis]) if axis < rank else 0)
        if bad is not None:
            by = "" if isinstance(part, int) else f", from {site.described(part)},"
            sentence = (
                f"{site.subject}: index {bad}{by} is out of bounds for dimension {axis} of "
                f"{site.described(data)}, which has size {data.shape[axis]}"
            )
            facts = {"index": bad, "dimension": axis, "size": int(data.shape[axis])}
            return Diagnosis("index", sentence, facts, (), _indexed(data, parts, axis))
        axis += 1
    return None


def _mask_index(site: Site, data: Value, mask: Value, axis: int) -> Diagnosis | None:
    wanted = tuple(data.shape[axis : axis + len(mask.shape)])
    if tuple(mask.shape) == wanted:
        return None
    sentence = (
        f"{site.subject}: the boolean mask {site.described(mask)} must have the shape {shape_text(wanted)} of what it "
        f"chooses from, {site.described(data)}"
    )
    return Diagnosis("mask", sentence, {"mask": tuple(mask.shape), "expected": wanted})


def _beyond(site: Site, part: Any, size: int) -> int | None:
    if isinstance(part, int) and not isinstance(part, bool):
        return None if -size <= part < size else part
    if isinstance(part, Value) and not part.dtype.is_floating_point and part.dtype != torch.bool:
        low, high = value_range(site, part)
        if low is not None and high is not None and (high >= size or low < -size):
            return high if high >= size else low
    return None


def _indexed(data: Value, parts: list[Any], axis: int) -> tuple[Given, ...]:
    """What a plain index would have given."""
    if any(part is None or part is Ellipsis or isinstance(part, Value) for part in parts):
        return ()
    shape = [int(size) for size in data.shape]
    kept = []
    for place, size in enumerate(shape):
        part = parts[place] if place < len(parts) else slice(None)
        if isinstance(part, slice):
            kept.append(len(range(*part.indices(size))))
    return (Given(Stub.like(data, kept)),)


def leaf_in_place(site: Site) -> Diagnosis | None:
    """Writing in place into a leaf that requires grad, or into a view of one."""
    if site.op is None or "leaf Variable that requires grad" not in site.message:
        return None
    target = next((value for value in site.op.reads), None)
    if target is None:
        return None
    base = target
    while base.op is not None and base.op.reads:
        base = base.op.reads[0]
    view = "," if base is target else f", a view of {site.maker(base)},"
    sentence = (
        f"{site.subject} writes in place into {site.described(target)}{view} a leaf that requires grad, and autograd "
        "would lose its value"
    )
    if _keeps_place(site.op):
        out_of_place = "`inplace=False`"
    elif site.op.name.endswith("_"):
        out_of_place = f"`{site.op.name.rstrip('_')}` out of place"
    else:
        out_of_place = "writing to a `.clone()`"
    remedies = (Remedy(f"{out_of_place}, or writing under `torch.no_grad()`,", attempt=lambda: _out_of_place(site.op)),)
    facts = {"target": base.name or "", "shape": tuple(target.shape or ())}
    return Diagnosis("leaf", sentence, facts, remedies, (Given(target if site.op.name != "setitem" else None),))


def _out_of_place(op: Any) -> None:
    """Run an in-place operation on a copy; raises where there is no such operation."""
    if _keeps_place(op):
        kwargs = {name: False if name == "inplace" else arg for name, arg in op.kwargs.items()}
        call(op.func, tuple(False if arg is True else arg for arg in op.args), kwargs)
    elif op.name == "setitem":
        call(lambda target, *rest: target.clone().__setitem__(*rest), op.args, {})
    else:
        call(getattr(torch.Tensor, op.name.rstrip("_")), op.args, op.kwargs)


def _keeps_place(op: Any) -> bool:
    """Whether an operation works in place because an argument says so."""
    return op.kwargs.get("inplace") is True or (len(op.args) > 1 and op.args[-1] is True)


def used_up(site: Site) -> Diagnosis | None:
    """A second backward pass through what the first has freed; a gradient for what was not used; views of one call."""
    op = site.op
    if op is None or not op.reads:
        return None
    if "through the graph a second time" in site.message:
        names = ("backward", "grad")
        before = next(
            (row for row in reversed(site.record.ops[: op.index]) if row.name in names and row is not op), None
        )
        if before is None:
            return None
        sentence = (
            f"{site.subject} runs backward through what {site.who(before)}{code_place(before)} has freed; that one "
            "needs `retain_graph=True`"
        )
        return Diagnosis("grad", sentence, {"first": site.who(before)}, (), (Given(None),))
    if "not have been used in the graph" in site.message and len(op.reads) > 1:
        sentence = (
            f"{site.subject} asks for a gradient with respect to {site.described(op.reads[-1])}, on which "
            f"{site.described(op.reads[0])} does not depend"
        )
        return Diagnosis("grad", sentence, {"of": site.maker(op.reads[0]), "to": site.maker(op.reads[-1])})
    if "is a view and is being modified inplace" in site.message:
        sentence = (
            f"{site.subject} writes in place into {site.described(op.reads[0])}, one of several views that one "
            "operation returned, and autograd can't follow that"
        )
        remedy = Remedy("writing out of place", attempt=lambda: _out_of_place(op))
        return Diagnosis("leaf", sentence, {"target": site.maker(op.reads[0])}, (remedy,), (Given(op.reads[0]),))
    return None


def no_grad(site: Site) -> Diagnosis | None:
    """A backward pass from something that autograd does not follow."""
    if site.op is None or "does not require grad" not in site.message or not site.op.reads:
        return None
    start = site.op.reads[0]
    if start.requires_grad:
        start = next((value for value in site.op.reads if not value.requires_grad), start)
    reason = _why_no_grad(site, start)
    sentence = f"{site.subject} needs a tensor that requires grad, got {site.described(start)}: {reason}"
    return Diagnosis("grad", sentence, {"tensor": site.maker(start), "reason": reason}, (), (Given(None),))


def _why_no_grad(site: Site, value: Value) -> str:
    """Where autograd's thread is cut, or that nothing ever required grad."""
    seen: set[int] = set()
    pending = [value]
    while pending:
        current = pending.pop()
        op = current.op
        if op is None or op.index in seen:
            continue
        seen.add(op.index)
        if any(row.requires_grad for row in op.reads):
            if op.name in ("detach", "data", "numpy", "tolist"):
                return f"{site.who(op)}{code_place(op)} cut it off from what requires grad"
            if not op.context.grad:
                return f"{site.who(op)}{code_place(op)} ran with grad disabled (`torch.no_grad()`)"
            return f"{site.who(op)}{code_place(op)} gives a result that autograd does not follow"
        pending.extend(row for row in op.reads if not row.requires_grad)
    return "nothing that it was computed from requires grad"


def overwritten(site: Site) -> Diagnosis | None:
    """A value that the backward pass needs and that was overwritten since."""
    found = re.search(
        r"modified by an inplace operation: \[\S+ \[([\d, ]*)\]\], which is output (\d) of (\w+)", site.message
    )
    if found is None:
        return None
    kind = re.sub(r"Backward\d*$", "", found[3]).lower()
    shape = tuple(int(size) for size in found[1].split(",") if size.strip())
    for writes in site.record.writes.values():
        for write in writes:
            maker = write.value.op
            chain = [value.op for value in write.op.reads if value.op is not None] + (
                [maker] if maker is not None else []
            )
            source = next((op for op in chain if op.name.rstrip("_").replace("_", "") == kind), None)
            if source is not None and write.op is not source:
                sentence = (
                    f"{site.who(write.op)}{code_place(write.op)} overwrote the result of {site.who(source)} "
                    f"{shape_text(shape)}, which the backward pass of {site.who(source)} still needs"
                )
                facts = {"writer": site.who(write.op), "of": site.who(source), "shape": shape}
                return Diagnosis("overwritten", sentence, facts, (), (Given(None),))
    return None


def host(site: Site) -> Diagnosis | None:
    """Reading a tensor out to Python where that is not possible."""
    if site.op is None or not site.op.reads:
        return None
    value = site.op.reads[0]
    if site.op.name == "numpy" and "requires grad" in site.message:
        sentence = f"`numpy` can't read {site.described(value)}, since it requires grad"
        remedy = Remedy("`.detach().numpy()`", attempt=lambda: blank(value, "cpu").detach().numpy())
        return Diagnosis("grad", sentence, {"tensor": site.maker(value)}, (remedy,))
    if site.op.name == "bool" and "ambiguous" in site.message:
        sentence = (
            f"Python asks whether {site.described(value)} is true, but it has {math.prod(value.shape)} values; "
            "`.any()` or `.all()` makes one of them"
        )
        return Diagnosis("truth", sentence, {"elements": math.prod(value.shape)})
    if site.op.name in ("item", "int", "float") and value.shape is not None and math.prod(value.shape) != 1:
        sentence = f"`{site.op.name}` needs a tensor with one element, got {site.described(value)}"
        return Diagnosis("truth", sentence, {"elements": math.prod(value.shape)})
    return None


def memory(site: Site) -> Diagnosis | None:
    """Out of memory: what was to be allocated, and for what."""
    is_memory = isinstance(site.error, (torch.OutOfMemoryError, MemoryError))
    if not is_memory and not _MEMORY_MESSAGE.search(site.message):
        return None
    if site.op is None:
        return None
    wanted = re.search(r"allocate (\d+) bytes|allocate ([\d.]+ [KMGT]iB)", site.message)
    size = "" if wanted is None else bytes_text(int(wanted[1])) if wanted[1] else wanted[2]
    result = _result_text(site)
    arguments = ", ".join(site.described(value) for value in site.reads()[:3])
    parts = [f"{site.subject} ran out of memory"]
    if size:
        parts.append(f" when it asked for {size}")
    if result:
        parts.append(f": its result would be {result}")
    if arguments:
        parts.append(f", computed from {arguments}")
    facts = {"wanted": size, "result": result}
    return Diagnosis("memory", "".join(parts), facts, (), ({},))


def _result_text(site: Site) -> str:
    try:
        out = result_of(site, {})
    except Refused:
        return ""
    if not isinstance(out, torch.Tensor):
        return ""
    needed = bytes_text(out.numel() * out.element_size())
    return f"{shape_text(out.shape)} {dtype_text(out.dtype)}, {needed}"


def bytes_text(count: int) -> str:
    """A number of bytes as people write it: `37.3 GiB`."""
    number = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if number < 1024 or unit == "PiB":
            return (
                f"{number:.0f} {unit}"
                if unit == "bytes"
                else f"{number:.3g} {unit}"
                if number < 999.5
                else f"{number:.0f} {unit}"
            )
        number /= 1024
    raise AssertionError("the last unit takes any number")


def last_finished(site: Site) -> Op | None:
    """The last operation that ran through."""
    return next((op for op in reversed(site.record.ops) if op.status == "ok"), None)


def interrupted(site: Site) -> Diagnosis | None:
    """Ctrl-C, or the kernel's stop button."""
    if not isinstance(site.error, KeyboardInterrupt):
        return None
    last = last_finished(site)
    count = sum(op.status == "ok" for op in site.record.ops)
    where = (
        f"Interrupted in {site.subject}"
        if site.op is not None or site.call is not None
        else "Interrupted before the forward began"
    )
    operations = f"{count} operation{'s' * (count != 1)}"
    after = "" if last is None else f", after {operations}; the last to finish was {site.who(last)}"
    return Diagnosis("interrupt", f"{where}{after}", {"finished": count})


BEFORE_SHAPES = (interrupted, memory, device, leaf_in_place, used_up, no_grad, overwritten, host)
AFTER_SHAPES = (index, dtype)
