"""Look past a failure: go on with a result of the shape that the failing operation would have given.

The forward is run again for each failure that ended it, with the failures known so far passed over. So errors that the
model catches by itself stay caught, and every run starts from the same state. The results are zeros rather than fake
tensors, because only real kernels check dtypes and indices and only real tensors can be read by Python; where a
result is too large to exist, it is fake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

import torch

from torchatlas.crash.diagnosis import Changes, Diagnosis, Given
from torchatlas.crash.explanation import Naming, diagnose, site_of
from torchatlas.crash.site import Site, Stub, dtype_text, shape_text
from torchatlas.crash.trial import Refused, result_of
from torchatlas.record import NOTHING, Call, Failed, Op, Record, Value
from torchatlas.structure import walk

Key = tuple[str, int]
"""What failed: `op` or `call`, and its index."""

_REAL_BYTES_MAX = 1 << 32


class Past:
    """What one run goes on with at the failures it is to pass over.

    Args:
        plan: what to pass over, with the number of the assumption to take.
        is_internal: whether code is torch's or ours.

    Attributes:
        choices: number of assumptions with different results that each failure passed over has.
        problem: an exception of our own that kept a failure from being passed over.
    """

    def __init__(self, plan: Mapping[Key, int], is_internal: Callable[[CodeType], bool]) -> None:
        self.plan = plan
        self.choices: dict[Key, int] = {}
        self.problem: Exception | None = None
        self._is_internal = is_internal

    def op_result(self, record: Record, op: Op) -> Any:
        """What to take for the result of an operation that raised; `NOTHING` to let it raise."""
        return self._result(record, ("op", op.index), Failed(op.error, op, op.call))

    def call_result(self, record: Record, call: Call) -> Any:
        """What to take for the result of a module call that raised in plain Python; `NOTHING` to let it raise."""
        return self._result(record, ("call", call.index), Failed(call.error, None, call))

    def note(self, result: Any) -> str:
        """What the node says whose result was assumed."""
        shapes = [f"{shape_text(tensor.shape)} {dtype_text(tensor.dtype)}" for _, tensor in walk(result)]
        return f"assumed {', '.join(shapes)}" if shapes else "assumed to have run"

    def _result(self, record: Record, key: Key, failed: Failed) -> Any:
        if key not in self.plan:
            return NOTHING
        try:
            site = site_of(record, failed, Naming(), self._is_internal)
            return self._assumed(site, key)
        except Exception as problem:  # noqa: BLE001 # our own mistake must not replace the user's error
            self.problem = problem
            return NOTHING

    def _assumed(self, site: Site, key: Key) -> Any:
        results = _distinct(site, diagnose(site))
        self.choices[key] = len(results)
        if not results:
            return NOTHING
        return _made(results[min(self.plan[key], len(results) - 1)], site)


def key_of(failed: Failed) -> Key | None:
    """What stands for a failure in a plan; None where it can't be passed over."""
    if failed.op is not None:
        return "op", failed.op.index
    return ("call", failed.call.index) if failed.call is not None and failed.call.parent is not None else None


def _distinct(site: Site, diagnosis: Diagnosis | None) -> list[Any]:
    """Possible results as packed values, likeliest first, without repetition."""
    wanted = () if diagnosis is None else diagnosis.assumptions
    found: list[Any] = []
    for assumption in (*wanted, *(({},) if site.op is not None else ())):
        packed = _packed(site, assumption)
        if packed is not NOTHING and packed not in found and (not found or assumption != {}):
            found.append(packed)
    return found


def _packed(site: Site, assumption: Changes | Given) -> Any:
    if isinstance(assumption, Given):
        return assumption.packed
    op = site.op
    if op is not None and op.name.endswith("_") and op.args and isinstance(op.args[0], Value):
        return op.args[0]
    try:
        return _described(result_of(site, assumption), site)
    except Refused:
        return NOTHING


def _described(result: Any, site: Site) -> Any:
    if isinstance(result, torch.Tensor):
        return Stub(tuple(result.shape), result.dtype, _home(site))
    if isinstance(result, (list, tuple)):
        return type(result)(_described(part, site) for part in result) if type(result) in (list, tuple) else NOTHING
    return result


def _home(site: Site) -> Any:
    """The device that a result belongs on: that of the parameters, else of the first argument."""
    values = site.op.reads if site.op is not None else site.call.reads if site.call is not None else ()
    owned = [value for value in values if value.kind in ("parameter", "buffer")]
    return next((value.device for value in owned or values), torch.device("cpu"))


def _made(packed: Any, site: Site) -> Any:
    """A result as the model is to get it."""
    if isinstance(packed, Value):
        return packed.tensor if packed.tensor is not None else packed.ref()
    if isinstance(packed, (list, tuple)):
        return type(packed)(_made(part, site) for part in packed)
    return _tensor(packed, site) if isinstance(packed, Stub) else packed


def _tensor(stub: Stub, site: Site) -> torch.Tensor:
    size = stub.dtype.itemsize
    for length in stub.shape:
        size *= length
    home = _home(site)
    with torch.enable_grad():
        made = _fake(stub, home) if size > _REAL_BYTES_MAX else torch.zeros(stub.shape, dtype=stub.dtype, device=home)
        is_followed = site.op is not None and site.op.context.grad and any(v.requires_grad for v in site.op.reads)
        if is_followed and (stub.dtype.is_floating_point or stub.dtype.is_complex):
            return made.requires_grad_().clone()  # no leaf, so that the model may write into it
    return made


def _fake(stub: Stub, home: Any) -> torch.Tensor:
    from torch._subclasses.fake_tensor import FakeTensorMode  # slow to import, and seldom needed

    with FakeTensorMode(allow_non_fake_inputs=True):
        return torch.zeros(stub.shape, dtype=stub.dtype, device=home)
