"""Errors of plain Python, and code that torch runs as a whole: Functions, scripts, hooks."""

import torch
from torch import nn

from crashes import crash


class Asserted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.inner = Checked(16)

    def forward(self, x):
        return self.inner(self.conv(x))


class Checked(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, x):
        assert x.shape[1] == self.width, "wrong width"  # fails: assertion_on_channels
        return x


@crash(
    "assertion",
    None,
    "Asserted inner",
    "`inner` asserts `x.shape[1] == self.width`",
    "wrong width",
    "`x` is (1, 8, 4, 4) from `conv`",
    "`self.width` is 16",
    error=AssertionError,
)
def assertion_on_channels():
    return Asserted(), torch.randn(1, 3, 6, 6)


class Unpacked(nn.Module):
    def forward(self, x):
        batch, channels, height, width = x.shape  # fails: image_without_batch
        return x.view(batch, channels, height * width)


@crash("unpack", None, "Unpacked", "into 4 names", "`x` is (3, 8, 8), the input `x`", error=ValueError)
def image_without_batch():
    return Unpacked(), torch.randn(3, 8, 8)


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([DecoderLayer()])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)  # fails: layer_called_without_its_mask
        return x


class DecoderLayer(nn.Module):
    def forward(self, x, mask):
        return x * mask


@crash(
    "arguments",
    None,
    "Decoder layers.0",
    "`layers.0` (DecoderLayer) was called with the input `x` (2, 3)",
    "`forward(x, mask)` needs `mask` too",
    error=TypeError,
)
def layer_called_without_its_mask():
    return Decoder(), torch.randn(2, 3)


@crash(
    "arguments", None, "DecoderLayer", "`forward(x, mask)` needs `mask` too", "the input `x` (2, 3)", error=TypeError
)
def model_called_without_its_mask():
    return DecoderLayer(), torch.randn(2, 3)


@crash("arguments", None, "Linear", "was given 3", "`forward(input)`", error=TypeError)
def model_called_with_too_much():
    return nn.Linear(3, 2), (torch.randn(2, 3), torch.randn(2, 3))


class Keyword(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(3)

    def forward(self, x):
        return self.norm(x, mask=None)  # fails: unknown_keyword


@crash("arguments", None, "Keyword norm", "has no argument `mask`", "`forward(input)`", error=TypeError)
def unknown_keyword():
    return Keyword(), torch.randn(2, 3)


class TupleInto(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.rnn(x))  # fails: tuple_into_a_layer


@crash(
    "not a tensor",
    None,
    "TupleInto head",
    "got a tuple as `input`",
    "`rnn` (GRU) returns a tuple of 2 tensors",
    error=TypeError,
)
def tuple_into_a_layer():
    return TupleInto(), torch.randn(2, 1, 3)


class NoneInto(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def helper(self, x):
        x.relu()

    def forward(self, x):
        return self.fc(self.helper(x))  # fails: none_into_a_layer


@crash("not a tensor", None, "NoneInto fc", "`fc` got None as `input`", error=TypeError)
def none_into_a_layer():
    return NoneInto(), torch.randn(2, 3)


class Missing(nn.Module):
    def forward(self, x):
        return self.projection(x)  # fails: attribute_that_does_not_exist


@crash("", None, "Missing", suggests=None, error=AttributeError)
def attribute_that_does_not_exist():
    return Missing(), torch.randn(2)


class Chosen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleDict({"a": nn.Linear(2, 2)})

    def forward(self, x):
        return self.heads["b"](x)  # fails: key_that_does_not_exist


@crash("", None, "Chosen", suggests=None, error=KeyError)
def key_that_does_not_exist():
    return Chosen(), torch.randn(2)


class Stopped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        x = self.fc(x)
        raise NotImplementedError("later")  # fails: raised_by_the_model


@crash("", None, "Stopped", suggests=None, error=NotImplementedError)
def raised_by_the_model():
    return Stopped(), torch.randn(2)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        return x @ weight  # fails: function_with_a_clash_inside

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Custom(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 2))

    def forward(self, x):
        return Scale.apply(x, self.weight)


@crash(
    "inside",
    "Scale",
    "Custom",
    "`Scale` failed in its own code at `return x @ weight`",
    "(2, 3) can't be multiplied by (5, 2)",
)
def function_with_a_clash_inside():
    return Custom(), torch.randn(2, 3)


class Scripted(nn.Module):
    def forward(self, x):
        return x @ torch.ones(7, 7)  # fails: scripted_module


class WithScript(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scripted = torch.jit.script(Scripted())

    def forward(self, x):
        return self.scripted(x)


@crash(
    "inside",
    "scripted.Scripted",
    "WithScript scripted",
    "(2, 3) can't be multiplied by (7, 7)",
    "`return x @ torch.ones(7, 7)`",
)
def scripted_module():
    return WithScript(), torch.randn(2, 3)


def add_too_much(module, args, output):
    return output + torch.ones(3)  # fails: hook_with_a_clash


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.fc.register_forward_hook(add_too_much)

    def forward(self, x):
        return self.fc(x)


@crash(
    "broadcast", "fc.add", "Hooked fc", "`fc.add` combines (2, 2) from `fc` with (3,) from", "dimension 1 is 2 and 3"
)
def hook_with_a_clash():
    return Hooked(), torch.randn(2, 4)


class Interrupted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.ModuleList([nn.Linear(2, 2), Stop()])

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return x


class Stop(nn.Module):
    def forward(self, x):
        raise KeyboardInterrupt  # fails: interrupted_by_the_user


@crash(
    "interrupt",
    None,
    "Interrupted steps.1",
    "Interrupted in `steps.1`",
    "after 1 operation;",
    "`steps.0`",
    error=KeyboardInterrupt,
)
def interrupted_by_the_user():
    return Interrupted(), torch.randn(2)


class WithoutBias(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2, bias=False)

    def forward(self, x):
        return x @ self.fc.weight.T + self.fc.bias  # fails: sum_with_a_missing_bias


@crash("not a tensor", None, "WithoutBias", "`self.fc.bias` is None in `WithoutBias`", error=TypeError)
def sum_with_a_missing_bias():
    return WithoutBias(), torch.randn(2, 3)


class WholeOutput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(3, 4)

    def forward(self, x):
        out = self.rnn(x)
        return out.mean(0)  # fails: mean_of_a_tuple


@crash(
    "not a tensor",
    None,
    "WholeOutput",
    "`out` is the tuple of 3 tensors that `rnn` (LSTM) returned",
    error=AttributeError,
)
def mean_of_a_tuple():
    return WholeOutput(), torch.randn(2, 1, 3)


class Sized(nn.Module):
    def forward(self, x):
        return x.reshape(x.shape[0], x.shape[3])  # fails: size_of_a_missing_dimension


@crash("dimension", None, "Sized", "`x.shape[3]`", "`x` has 3 dimensions: (2, 4, 3), the input `x`", error=IndexError)
def size_of_a_missing_dimension():
    return Sized(), torch.randn(2, 4, 3)
