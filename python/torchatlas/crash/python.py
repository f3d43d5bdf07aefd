"""Rules for errors of plain Python in a forward: wrong arguments, assertions, shapes that do not unpack."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from torchatlas.builder import values_in
from torchatlas.crash.diagnosis import Diagnosis
from torchatlas.crash.site import Frame, Site, forward_code, is_torch_module, shape_text
from torchatlas.record import Call, Value
from torchatlas.structure import walk

_ARGUMENTS_MESSAGE = re.compile(
    r"(?P<who>[\w.<>]+)\(\) (?:missing \d+ required (?:positional|keyword-only) arguments?: (?P<missing>.+)"
    r"|takes (?P<takes>.+?) but (?P<given>\d+) (?:positional arguments? )?(?:\(.*?\) )?(?:was|were) given"
    r"|got an unexpected keyword argument '(?P<unexpected>\w+)'"
    r"|got multiple values for argument '(?P<twice>\w+)')"
)
_NOT_TENSOR = re.compile(r"(\w+)\(\): argument '(\w+)'.*? must be Tensor, not (\w+)")
_LINES_MAX = 40


def arguments(site: Site) -> Diagnosis | None:
    """A forward that was called with too few, too many or unknown arguments."""
    found = _ARGUMENTS_MESSAGE.search(site.message)
    call = site.call
    if not isinstance(site.error, TypeError) or found is None or call is None or site.op is not None:
        return None
    if _is_inside(site, call):
        return None
    signature = _signature(call, site)
    given = ", ".join(map(site.described, call.reads)) or "no tensors"
    if found["missing"]:
        missing = re.sub(r"'(\w+)'", r"`\1`", found["missing"])
        problem = f"needs {missing} too"
    elif found["takes"]:
        problem = f"takes {found['takes']} counting `self`, and was given {found['given']}"
    elif found["unexpected"]:
        problem = f"has no argument `{found['unexpected']}`"
    else:
        problem = f"was given `{found['twice']}` twice"
    sentence = f"{site.called(call)} was called with {given}, but its `forward{signature}` {problem}"
    facts = {"call": site.name_of_call.get(call.index, call.type), "signature": signature, "tensors": len(call.reads)}
    return Diagnosis("arguments", sentence, facts)


def _is_inside(site: Site, call: Call) -> bool:
    """Whether the exception came from inside the forward that was called, rather than from the call itself."""
    if not isinstance(call.module, nn.Module):
        return bool(site.frames)
    if "forward" not in site.message.partition("()")[0]:
        return True
    code = forward_code(call.module)
    entered = sum(frame[0] is code for frame in site.frames)
    opened = 0
    opening: Call | None = call
    while opening is not None:  # callers of the same class have run the same code
        opened += opening.module is not None and forward_code(opening.module) is code
        opening = opening.parent
    return code is not None and entered >= opened


def _signature(call: Call, site: Site) -> str:
    function = type(call.module).forward if isinstance(call.module, nn.Module) else None
    if function is None:
        return ""
    try:
        parameters = list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):  # made in C: there is no signature to show
        return ""
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return str(inspect.Signature(plain))


def not_a_tensor(site: Site) -> Diagnosis | None:
    """A tuple, None or list where an operation needs a tensor."""
    found = _NOT_TENSOR.search(site.message)
    call = site.call
    if not isinstance(site.error, TypeError) or found is None or call is None:
        return None
    operation, argument, kind = found.groups()
    is_layer = is_torch_module(call.module)
    who = site.call_name(call) if is_layer else f"`{operation}`"
    sentence = f"{who} got a {kind} as `{argument}`, where a tensor is needed"
    source = _returned_by(site, call) if kind in ("tuple", "list", "dict") else None
    if source is not None:
        sentence += f"; {site.called(source)} returns a {kind} of {len(_tensors(source))} tensors"
    elif kind != "NoneType" and not is_layer and site.frames:
        told = _tuple_told(site, site.frames[-1])
        sentence += f"; {told}" if told else ""
    elif kind == "NoneType":
        sentence = sentence.replace("a NoneType", "None")
    return Diagnosis("not a tensor", sentence, {"argument": argument, "got": kind, "operation": operation})


def _tensors(call: Call) -> list[Value]:
    return list(values_in(call.out))


def _returned_by(site: Site, call: Call) -> Call | None:
    """The module call whose whole result is what a call was given."""
    wanted = [id(value) for value in call.reads]
    if not wanted:
        return None
    for other in reversed(site.record.calls[: call.index]):
        if other.status == "ok" and [id(value) for value in _tensors(other)] == wanted:
            return other
    return None


def assertion(site: Site) -> Diagnosis | None:
    """A failed `assert`: what it says, and the shapes of the tensors it names."""
    if not isinstance(site.error, AssertionError) or site.op is not None or not site.frames:
        return None
    frame = site.frames[-1]
    test = _asserted(_statement(frame))
    if test is None:
        return None
    condition = ast.unparse(test)
    said = f' "{site.message}"' if site.message else ""
    where = site.subject if site.call is not None else "the forward"
    told = _names_told(site, frame, test)
    sentence = f"{where} asserts `{condition}`{said}, which does not hold" + (f": {told}" if told else "")
    return Diagnosis("assertion", sentence, {"condition": condition, "said": site.message})


def _asserted(statement: ast.stmt | None) -> ast.expr | None:
    """The condition of an `assert`, or of a call of `torch._assert`."""
    if isinstance(statement, ast.Assert):
        return statement.test
    called = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(called, ast.Call) and called.args and ast.unparse(called.func).rpartition(".")[2] == "_assert":
        return called.args[0]
    return None


def missing_dimension(site: Site) -> Diagnosis | None:
    """`x.shape[4]` or `x.size(4)` of a tensor with fewer dimensions."""
    if not isinstance(site.error, IndexError) or site.op is not None or not site.frames:
        return None
    frame = site.frames[-1]
    statement = _statement(frame)
    for node in ast.walk(statement) if statement is not None else ():
        inner = node.value if isinstance(node, ast.Subscript) else node.func if isinstance(node, ast.Call) else None
        if not isinstance(inner, ast.Attribute) or inner.attr not in ("shape", "size"):
            continue
        tensor = _looked_up(inner.value, frame[2])
        number = _number(_asked(node), frame[2])
        if isinstance(tensor, torch.Tensor) and number is not None and not -tensor.dim() <= number < tensor.dim():
            sentence = (
                f"{site.subject} asks for `{ast.unparse(node)}`, but `{ast.unparse(inner.value)}` has "
                f"{tensor.dim()} dimensions: {_tensor_text(site, tensor)}"
            )
            return Diagnosis("dimension", sentence, {"dimension": number, "dimensions": tensor.dim()})
    return None


def _asked(node: ast.AST) -> ast.AST | None:
    """What stands between the brackets of a subscript or a call with one argument."""
    if isinstance(node, ast.Call):
        return node.args[0] if len(node.args) == 1 else None
    return node.slice if isinstance(node, ast.Subscript) else None


def _number(node: ast.AST | None, local: Mapping[str, Any]) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand, local)
        return None if inner is None else -inner
    found = node.value if isinstance(node, ast.Constant) else _looked_up(node, local) if node is not None else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def tuple_as_tensor(site: Site) -> Diagnosis | None:
    """A tuple that a module returned, used as if it were a tensor."""
    found = re.search(r"'(tuple|list|dict)' object has no attribute '(\w+)'", site.message) or re.search(
        r"(?:unsupported operand type\(s\) for .+'|can only concatenate )(tuple|list|dict)()", site.message
    )
    if found is None or site.op is not None or not site.frames:
        return None
    told = _tuple_told(site, site.frames[-1])
    if not told:
        return None
    use = f"used with `.{found[2]}`" if found[2] else "used in a sum or product"
    return Diagnosis("not a tensor", f"{told}, and is {use} as if it were a tensor", {"got": found[1]})


def _tuple_told(site: Site, frame: Frame) -> str:
    """The first name on the failing line that is a tuple of tensors, and the module that returned it."""
    statement = _statement(frame)
    for node in ast.walk(statement) if statement is not None else ():
        value = _looked_up(node, frame[2])
        if not isinstance(value, (tuple, list, dict)):
            continue
        tensors = [tensor for _, tensor in walk(value)]
        source = _maker_of(site, tensors)
        if source is not None:
            kind = type(value).__name__
            return f"`{ast.unparse(node)}` is the {kind} of {len(tensors)} tensors that {site.called(source)} returned"
    return ""


def _maker_of(site: Site, tensors: list[torch.Tensor]) -> Call | None:
    """The module call that returned just these tensors."""
    for call in reversed(site.record.calls):
        held = [value.ref() if value.ref is not None else None for value in _tensors(call)]
        if tensors and len(held) == len(tensors) and all(a is b for a, b in zip(held, tensors, strict=True)):
            return call
    return None


def none_used(site: Site) -> Diagnosis | None:
    """None where a tensor or a module is needed."""
    if "NoneType" not in site.message or not isinstance(site.error, (TypeError, AttributeError)) or not site.frames:
        return None
    if site.op is not None:
        return None
    statement = _statement(site.frames[-1])
    names = (
        [node for node in ast.walk(statement) if _is_none(node, site.frames[-1][2])] if statement is not None else []
    )
    if not names:
        return None
    told = " and ".join(dict.fromkeys(f"`{ast.unparse(node)}`" for node in names))
    sentence = f"{told} is None in {site.subject}, where it is used at `{ast.unparse(statement)}`" if statement else ""
    return Diagnosis("not a tensor", sentence, {"names": tuple(ast.unparse(node) for node in names)})


def _is_none(node: ast.AST, local: Mapping[str, Any]) -> bool:
    """Whether a name, or an attribute kept in its owner's own storage, is None."""
    if isinstance(node, ast.Name):
        return node.id in local and local[node.id] is None
    if not isinstance(node, ast.Attribute):
        return False
    held = getattr(_looked_up(node.value, local), "__dict__", {})
    stores = (held, held.get("_parameters"), held.get("_buffers"), held.get("_modules"))
    return any(isinstance(store, dict) and node.attr in store and store[node.attr] is None for store in stores)


def unpacking(site: Site) -> Diagnosis | None:
    """`b, c, h, w = x.shape` with another number of dimensions."""
    found = re.search(
        r"(?:not enough values to unpack \(expected (\d+)(?:, got (\d+))?|too many values to unpack \(expected (\d+))",
        site.message,
    )
    if not isinstance(site.error, ValueError) or found is None or site.op is not None or not site.frames:
        return None
    frame = site.frames[-1]
    statement = _statement(frame)
    if not isinstance(statement, ast.Assign):
        return None
    expected = found[1] or found[3]
    told = _names_told(site, frame, statement.value)
    if not told:
        return None
    where = site.subject if site.call is not None else "the forward"
    gave = f"it gives {found[2]}: " if found[2] else "it gives more: " if found[3] else ""
    sentence = f"{where} unpacks `{ast.unparse(statement.value)}` into {expected} names, but {gave}{told}"
    return Diagnosis("unpack", sentence, {"expected": int(expected)})


def _statement(frame: Frame) -> ast.stmt | None:
    """The statement that begins on the frame's line, or encloses it."""
    code, line, _ = frame
    lines = linecache.getlines(code.co_filename)
    for start in range(line, max(0, line - _LINES_MAX), -1):
        for end in range(line, min(len(lines), line + _LINES_MAX) + 1):
            text = "".join(lines[start - 1 : end])
            indent = len(text) - len(text.lstrip())
            block = "\n".join(row[indent:] for row in text.splitlines())
            try:
                body = ast.parse(block).body
            except SyntaxError:
                continue
            if len(body) == 1:
                return _innermost(body[0])
    return None


def _innermost(statement: ast.stmt) -> ast.stmt:
    """The statement itself; of a compound one written on one line what it holds."""
    inner = getattr(statement, "body", None)
    return _innermost(inner[0]) if isinstance(inner, list) and len(inner) == 1 else statement


def _names_told(site: Site, frame: Frame, expression: ast.AST) -> str:
    """Shapes of the tensors, and values of the numbers, that an expression names."""
    told: dict[str, str] = {}
    for node in ast.walk(expression):
        text = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        value = _looked_up(node, frame[2])
        if isinstance(value, torch.Tensor):
            told.setdefault(text, f"`{text}` is {_tensor_text(site, value)}")
        elif isinstance(value, (int, float, str)) and not isinstance(value, bool) and text:
            told.setdefault(text, f"`{text}` is {value!r}")
    return ", ".join(list(told.values())[:5])


def _looked_up(node: ast.AST, local: Mapping[str, Any]) -> Any:
    """The value of a name, or of an attribute kept in its owner's own storage; no code of the user runs."""
    if isinstance(node, ast.Name):
        return local.get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    owner = _looked_up(node.value, local)
    if isinstance(owner, torch.Tensor):
        return owner.shape if node.attr == "shape" else None
    held = getattr(owner, "__dict__", None)
    if not isinstance(held, dict):
        return None
    for store in (held, held.get("_parameters"), held.get("_buffers"), held.get("_modules")):
        if isinstance(store, dict) and node.attr in store:
            return store[node.attr]
    return None


def _tensor_text(site: Site, tensor: torch.Tensor) -> str:
    for op in reversed(site.record.ops):
        for value in _values_of(op):
            if value.ref is not None and value.ref() is tensor:
                return f"{shape_text(tensor.shape)} from {site.maker(value)}"
    for name, value in site.record.inputs:
        if value.ref is not None and value.ref() is tensor:
            return f"{shape_text(tensor.shape)}, the input `{name}`"
    return shape_text(tensor.shape)


def _values_of(op: Any) -> list[Value]:
    return [*values_in(op.out), *op.reads]


_INSIDE_MESSAGES = (
    (
        re.compile(r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)"),
        "({0}, {1}) can't be multiplied by ({2}, {3}), since {1} is not {2}",
    ),
    (
        re.compile(r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)"),
        "dimension {2} is {0} and {1}",
    ),
    (
        re.compile(r"shape '\[([-\d, ]+)\]' is invalid for input of size (\d+)"),
        "({0}) is no shape for {1} elements",
    ),
    (
        re.compile(r"first two dimensions of batch2 tensor to be: \[([\d, ]+)\] but got: \[([\d, ]+)\]"),
        "the first two dimensions of the right must be ({0}), but are ({1})",
    ),
)  # fmt: skip


def inside(site: Site) -> Diagnosis | None:
    """A clash of sizes inside an autograd Function or scripted code, which are recorded as one operation."""
    if site.op is None or site.op.level != "opaque":
        return None
    for pattern, text in _INSIDE_MESSAGES:
        found = pattern.search(site.message)
        if found is None:
            continue
        code, told = _inner_code(site)
        given = ", ".join(site.described(value) for value in site.reads()[:4])
        at = f" at `{code}`" if code else ""
        sentence = f"{site.subject} failed in its own code{at}: {text.format(*found.groups())}"
        sentence += f"; {told}" if told else ""
        sentence += f"; it was given {given}" if given and not told else ""
        return Diagnosis("inside", sentence, {"code": code, "numbers": found.groups()})
    return None


def _inner_code(site: Site) -> tuple[str, str]:
    """The line inside an opaque operation that failed, and the shapes of the tensors it names."""
    scripted = re.findall(r"^(.*)\n\s*~+ <--- HERE", site.message, re.MULTILINE)
    if scripted:
        return re.sub(r"\s+#.*$", "", scripted[-1].strip()), ""
    statement = _statement(site.frames[-1]) if site.frames else None
    if statement is None:
        return "", ""
    return ast.unparse(statement), _names_told(site, site.frames[-1], statement)


RULES = (arguments, not_a_tensor, tuple_as_tensor, none_used, assertion, unpacking, missing_dimension, inside)
