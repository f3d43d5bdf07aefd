"""Rules for products: linear layers, matrix products, einsum."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from torchatlas.crash.diagnosis import Changes, Diagnosis, Remedy
from torchatlas.crash.origin import came_from, size_origin
from torchatlas.crash.site import Site, Stub, class_text, shape_text
from torchatlas.record import Value

_MATMUL = {"matmul", "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "dot", "chain_matmul", "inner", "vdot"}


def linear(site: Site) -> Diagnosis | None:
    """`F.linear` whose input has another last dimension than the weight."""
    data, weight = site.tensor("input", at=0), site.tensor("weight", at=1)
    if site.name != "linear" or data is None or weight is None or not data.shape:
        return None
    expected, got = int(weight.shape[-1]), int(data.shape[-1])
    if expected == got:
        return None
    key = site.key_of(data)
    attribute = site.attribute("in_features") or f" (its weight is {site.described(weight)})"
    sentence = (
        f"{site.subject} expects last dimension {expected}{attribute}, got {got} "
        f"{came_from(site, data, len(data.shape) - 1)}"
    )
    folded = _flattenings(data, expected)
    turned = _transpositions(data, expected)
    remedies = [Remedy(f"`{text}` on its input", {key: stub}) for text, stub in (*folded, *turned)]
    if site.own_module is not None and len(weight.shape) == 2:
        wider = Stub.like(weight, (weight.shape[0], got))
        remedies.append(
            Remedy(f"`{class_text(site.own_module)}({got}, {weight.shape[0]})`", {site.key_of(weight): wider})
        )
    plain: Changes = {key: Stub.like(data, (*data.shape[:-1], expected))}
    assumptions = (*({key: stub} for _, stub in folded), plain, *({key: stub} for _, stub in turned))
    facts = {"expected": expected, "got": got, "input": tuple(data.shape), "weight": tuple(weight.shape)}
    return Diagnosis("linear", sentence, facts, tuple(remedies), assumptions)


def _flattenings(data: Value, size: int) -> list[tuple[str, Stub]]:
    """Ways to flatten trailing dimensions into one of a size."""
    shape = tuple(data.shape)
    starts = [axis for axis in range(1, len(shape) - 1) if math.prod(shape[axis:]) == size]
    return [(f".flatten({axis})", Stub.like(data, (*shape[:axis], size))) for axis in starts[:1]]


def _transpositions(data: Value, size: int) -> list[tuple[str, Stub]]:
    """Ways to bring a dimension of a size to the end."""
    last = len(data.shape) - 1
    found = []
    for axis in range(last - 1, -1, -1):
        if data.shape[axis] == size and last >= 1:
            shape = list(data.shape)
            if len(shape) == 4 and axis == 1:
                found.append((".permute(0, 2, 3, 1)", Stub.like(data, [shape[0], shape[2], shape[3], shape[1]])))
                continue
            shape[axis], shape[last] = shape[last], shape[axis]
            found.append((f".transpose({axis}, {last})", Stub.like(data, shape)))
    return found[:1]


def matmul(site: Site) -> Diagnosis | None:
    """Matrix products whose inner or batch sizes differ."""
    values = [value for value in (site.op.reads if site.op else ()) if value.shape is not None]
    if site.name not in _MATMUL or len(values) < 2:
        return None
    left, right = values[-2:] if site.name.startswith(("addmm", "baddbmm", "addbmm")) else values[:2]
    if getattr(site.op.func if site.op else None, "__name__", "") == "__rmatmul__":
        left, right = right, left
    if not left.shape or not right.shape:
        return None
    row = len(right.shape) - 2 if len(right.shape) >= 2 else 0
    inner_left, inner_right = int(left.shape[-1]), int(right.shape[row])
    if inner_left != inner_right:
        return _inner(site, left, right, row)
    return _batch(site, left, right) or _added(site, values[0], left, right)


def _inner(site: Site, left: Value, right: Value, row: int) -> Diagnosis:
    one, other = int(left.shape[-1]), int(right.shape[row])
    second = "second to last dimension" if len(right.shape) >= 2 else "only dimension"
    sentence = (
        f"{site.subject} multiplies {shape_text(left.shape)} from {site.maker(left)} by {shape_text(right.shape)} from "
        f"{site.maker(right)}: the last dimension of the left is {one}, the {second} of the right is {other}, "
        "and they must be equal"
    )
    sentence += _origins(site, ((left, len(left.shape) - 1), (right, row)))
    left_key, right_key = site.key_of(left), site.key_of(right)
    remedies = []
    if len(right.shape) >= 2 and right.shape[-1] == one:
        remedies.append(Remedy("`.transpose(-2, -1)` on the right", {right_key: _turned(right)}))
    if len(left.shape) >= 2 and left.shape[-2] == other:
        remedies.append(Remedy("`.transpose(-2, -1)` on the left", {left_key: _turned(left)}))
    assumptions: list[Changes] = [remedy.changes for remedy in remedies]
    assumptions.append({left_key: Stub.like(left, (*left.shape[:-1], other))})
    facts = {"left": tuple(left.shape), "right": tuple(right.shape), "inner": (one, other)}
    return Diagnosis("matmul", sentence, facts, tuple(remedies), tuple(assumptions))


def _batch(site: Site, left: Value, right: Value) -> Diagnosis | None:
    for axis in range(3, min(len(left.shape), len(right.shape)) + 1):
        one, other = int(left.shape[-axis]), int(right.shape[-axis])
        if one == other or (site.name == "matmul" and 1 in (one, other)):
            continue
        sentence = (
            f"{site.subject} multiplies {shape_text(left.shape)} from {site.maker(left)} by {shape_text(right.shape)} "
            f"from {site.maker(right)}: the batch dimensions {one} and {other} differ"
        )
        sentence += _origins(site, ((left, len(left.shape) - axis), (right, len(right.shape) - axis)))
        shape = [*right.shape]
        shape[-axis] = one
        facts = {"left": tuple(left.shape), "right": tuple(right.shape), "batch": (one, other)}
        return Diagnosis("matmul", sentence, facts, (), ({site.key_of(right): Stub.like(right, shape)},))
    return None


def _added(site: Site, added: Value, left: Value, right: Value) -> Diagnosis | None:
    """`addmm` and the like, where what is added does not have the shape of the product."""
    if added is left or len(left.shape) < 2 or len(right.shape) < 2:
        return None
    product = (*left.shape[:-1], right.shape[-1])
    pairs = zip(reversed(tuple(added.shape)), reversed(product), strict=False)
    if all(size in (1, wanted) for size, wanted in pairs) and len(added.shape) <= len(product):
        return None
    sentence = (
        f"{site.subject} adds {shape_text(added.shape)} from {site.maker(added)} to a product of shape "
        f"{shape_text(product)}, to which it must broadcast"
    )
    sentence += _origins(site, ((added, len(added.shape) - 1), (right, len(right.shape) - 1))) if added.shape else ""
    facts = {"added": tuple(added.shape), "product": tuple(map(int, product))}
    return Diagnosis("matmul", sentence, facts, (), ({site.key_of(added): Stub.like(added, product)},))


def _turned(value: Value) -> Stub:
    return Stub.like(value, (*value.shape[:-2], value.shape[-1], value.shape[-2]))


def _origins(site: Site, axes: Iterable[tuple[Value, int]]) -> str:
    """`; 3 comes from …, 4 comes from …`, without what the shapes have told already."""
    found = [size_origin(site, value, axis) for value, axis in axes]
    told = list(dict.fromkeys(clause for clause in found if clause))
    return f"; {'; '.join(told)}" if told else ""


def einsum(site: Site) -> Diagnosis | None:
    """`torch.einsum` where one letter has two sizes, or an operand has more or fewer dimensions than letters."""
    if site.name != "einsum" or site.op is None or not isinstance(site.op.args[0], str):
        return None
    equation = site.op.args[0]
    values = list(site.op.reads)
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    if len(terms) != len(values) or any(value.shape is None for value in values):
        return None
    sizes: dict[str, tuple[int, Value, int]] = {}
    for number, (letters, value) in enumerate(zip(terms, values, strict=True)):
        places = _letter_places(letters, len(value.shape))
        if places is None:
            sentence = (
                f'{site.subject} "{equation}" names {len(letters)} dimensions ({letters}) for operand {number}, '
                f"got {len(value.shape)}: {site.described(value)}"
            )
            return Diagnosis("einsum", sentence, {"equation": equation, "operand": number})
        for letter, axis in places:
            size = int(value.shape[axis])
            known = sizes.get(letter)
            if known is None or known[0] == 1:
                sizes[letter] = (size, value, axis)
            elif size not in (1, known[0]):
                return _letter_clash(site, equation, letter, (value, axis), known, sizes, terms, values)
    return None


def _letter_places(letters: str, rank: int) -> list[tuple[str, int]] | None:
    """Pairs of letter and axis of one operand; None if their number does not fit."""
    before, dots, after = letters.partition("...")
    if len(before) + len(after) > rank or (not dots and len(before) != rank):
        return None
    return [*((c, i) for i, c in enumerate(before)), *((c, rank - len(after) + i) for i, c in enumerate(after))]


def _letter_clash(
    site: Site,
    equation: str,
    letter: str,
    here: tuple[Value, int],
    known: tuple[int, Value, int],
    sizes: dict[str, tuple[int, Value, int]],
    terms: Sequence[str],
    values: Sequence[Value],
) -> Diagnosis:
    size, first, axis = known
    value, own = here
    sentence = (
        f'{site.subject} "{equation}": `{letter}` is {size} in {site.described(first)} and {int(value.shape[own])} in '
        f"{site.described(value)}" + _origins(site, ((first, axis), (value, own)))
    )
    everything: dict[int | str, Stub] = {}
    for position, (letters, operand) in enumerate(zip(terms, values, strict=True)):
        shape = list(operand.shape)
        for name, place in _letter_places(letters, len(shape)) or ():
            shape[place] = sizes.get(name, (shape[place],))[0]
        everything[position + 1] = Stub.like(operand, shape)
    facts = {"equation": equation, "letter": letter, "sizes": (size, int(value.shape[own]))}
    is_flat = site.op is not None and len(site.op.args) == len(values) + 1
    return Diagnosis("einsum", sentence, facts, (), (everything,) if is_flat else ())


def bilinear(site: Site) -> Diagnosis | None:
    """`F.bilinear` whose inputs do not fit the weight."""
    weight = site.tensor("weight", at=2)
    if site.name != "bilinear" or weight is None:
        return None
    for number, axis in ((1, 1), (2, 2)):
        data = site.tensor(f"input{number}", at=number - 1)
        if data is not None and data.shape[-1] != weight.shape[axis]:
            attribute = site.attribute(f"in{number}_features")
            sentence = (
                f"{site.subject} expects last dimension {weight.shape[axis]}{attribute} of its input {number}, got "
                f"{data.shape[-1]} {came_from(site, data, len(data.shape) - 1)}"
            )
            fitting = Stub.like(data, (*data.shape[:-1], weight.shape[axis]))
            facts = {"expected": int(weight.shape[axis]), "got": int(data.shape[-1])}
            return Diagnosis("linear", sentence, facts, (), ({site.key_of(data): fitting},))
    return None


RULES = (linear, bilinear, matmul, einsum)
