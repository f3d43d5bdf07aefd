"""Dtypes, devices, autograd, memory."""

import torch
import torch.nn.functional as F
from torch import nn

from crashes import crash


class HalfInput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.Identity()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        x = self.norm(x.half())
        return self.fc(x)  # fails: half_into_float


@crash(
    "dtype",
    "fc.linear",
    "HalfInput fc",
    "`fc` got float16 from `norm` (2, 4) and float32 from the parameter `fc.weight` (3, 4)",
    "float16 comes from `half`",
    suggests="`.to(torch.float32)` on `norm` would pass; tried",
)
def half_into_float():
    return HalfInput(), torch.randn(2, 4)


class DoubleConv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)

    def forward(self, image):
        return self.conv(image)  # fails: double_into_float


@crash(
    "dtype",
    "conv.conv2d",
    "DoubleConv conv",
    "float64 from the input `image`",
    "float32",
    suggests="`.to(torch.float32)`",
)
def double_into_float():
    return DoubleConv(), torch.randn(1, 1, 5, 5, dtype=torch.float64)


class IntInput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 2))

    def forward(self, counts):
        return self.layers(counts)  # fails: whole_numbers_into_linear


@crash("dtype", "layers.0.linear", "IntInput layers layers.0", "int64 from the input `counts` (2, 3)", "float32")
def whole_numbers_into_linear():
    return IntInput(), torch.ones(2, 3, dtype=torch.int64)


class FloatTokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)

    def forward(self, tokens):
        return self.embed(tokens / 2)  # fails: float_into_embedding


@crash(
    "dtype",
    "embed.embedding",
    "FloatTokens embed",
    "needs whole numbers (int64, Long)",
    "float32 from `div` (1, 2)",
    suggests="`.long()` on `div` would pass; tried",
)
def float_into_embedding():
    return FloatTokens(), torch.tensor([[2, 4]])


class FloatTarget(nn.Module):
    def forward(self, logits, labels):
        return F.cross_entropy(logits, labels)  # fails: float_labels


@crash(
    "dtype",
    "cross_entropy",
    "FloatTarget",
    "whole numbers (int64, Long) as class numbers",
    "float32 from the input `labels`",
    suggests="`.long()` on the input `labels`",
)
def float_labels():
    return FloatTarget(), (torch.randn(2, 3), torch.tensor([0.0, 1.0]))


class FloatIndex(nn.Module):
    def forward(self, x):
        middle = torch.tensor(x.shape[1] / 2)
        return x.index_select(1, middle)  # fails: float_as_index


@crash("dtype", "index_select", "FloatIndex", "whole numbers (int64, Long) as indices", "float32 from `tensor` ()")
def float_as_index():
    return FloatIndex(), torch.randn(2, 4)


class BoolDifference(nn.Module):
    def forward(self, x):
        inside = x > 0
        return 1 - inside  # fails: difference_of_a_mask


@crash("dtype", "sub", "BoolDifference", "does not work on bool", "`gt` (2, 3)")
def difference_of_a_mask():
    return BoolDifference(), torch.randn(2, 3)


class IntSum(nn.Module):
    def forward(self, counts, weights):
        total = counts.clone()
        return total.add_(weights)  # fails: floats_added_to_whole_numbers


@crash("dtype", "add_", "IntSum", "float32 from the input `weights` (3,)", "into int64 `clone` (3,)")
def floats_added_to_whole_numbers():
    return IntSum(), (torch.ones(3, dtype=torch.int64), torch.randn(3))


class OtherDevice(nn.Module):
    def forward(self, x):
        noise = torch.zeros(x.shape, device="meta")
        return x + noise  # fails: tensor_made_on_another_device


@crash(
    "device",
    "add",
    "OtherDevice",
    "on one device",
    "the input `x` (2, 3) on cpu",
    "`zeros` (2, 3) on meta",
    suggests="`.to('cpu')`",
)
def tensor_made_on_another_device():
    return OtherDevice(), torch.randn(2, 3)


class OtherLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2, device="meta")

    def forward(self, x):
        return self.second(self.first(x))  # fails: layer_left_on_another_device


@crash(
    "device",
    "second.linear",
    "OtherLayer second",
    "`first` (2, 4) on cpu",
    "the parameter `second.weight` (2, 4)",
    "on meta",
)
def layer_left_on_another_device():
    return OtherLayer(), torch.randn(2, 3)


class GradInside(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 1)

    def forward(self, x):
        energy = self.fc(x).detach().sum()
        return torch.autograd.grad(energy, x)[0]  # fails: gradient_of_a_detached_energy


@crash("grad", "grad", "GradInside", "`detach`", "cut it off", "requires grad")
def gradient_of_a_detached_energy():
    return GradInside(), torch.randn(2, 3)


class Frozen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 1)

    def forward(self, x):
        with torch.no_grad():
            score = self.fc(x)
        score.sum().backward()  # fails: backward_under_no_grad
        return score


@crash("grad", "backward", "Frozen", "`fc`", "ran with grad disabled (`torch.no_grad()`)")
def backward_under_no_grad():
    return Frozen(), torch.randn(2, 3)


class WrittenParameter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        self.scale.mul_(0.9)  # fails: parameter_changed_in_place
        return x * self.scale


@crash(
    "leaf",
    "mul_",
    "WrittenParameter",
    "writes in place into the parameter `scale` (3,), a leaf",
    "requires grad",
    suggests="no_grad",
)
def parameter_changed_in_place():
    return WrittenParameter(), torch.randn(2, 3)


class WrittenView(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.ones(4, 3))

    def forward(self, x):
        self.table[0] = 0.0  # fails: row_of_a_parameter_set
        return x @ self.table.T


@crash("leaf", "setitem", "WrittenView", "the parameter `table` (4, 3)", "in place")
def row_of_a_parameter_set():
    return WrittenView(), torch.randn(2, 3)


class Overwritten(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        y = (self.scale * x).exp()
        y.mul_(2)
        y.sum().backward()  # fails: result_overwritten_before_backward
        return y


@crash("overwritten", "backward", "Overwritten", "`mul_`", "overwrote the result of `exp` (3,)")
def result_overwritten_before_backward():
    return Overwritten(), torch.randn(3)


class Outer(nn.Module):
    def forward(self, x):
        wide = x.expand(1 << 40, 4)
        return wide.clone()  # fails: out_of_memory


@crash("memory", "clone", "Outer", "ran out of memory", "16 TiB", "(1099511627776, 4) float32")
def out_of_memory():
    return Outer(), torch.randn(1, 4)


class Branch(nn.Module):
    def forward(self, x):
        if x > 0:  # fails: branch_on_many_values
            return x
        return -x


@crash("truth", "bool", "Branch", "`gt` (2,)", "2 values")
def branch_on_many_values():
    return Branch(), torch.randn(2)


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x):
        energy = (self.scale * x).exp().sum()
        energy.backward()
        energy.backward()  # fails: backward_run_twice
        return energy


@crash("grad", "backward_1", "Twice", "`backward` (line ", "has freed", "`retain_graph=True`")
def backward_run_twice():
    return Twice(), torch.randn(2)


class Masks(nn.Module):
    def forward(self, x, keep):
        return x & keep  # fails: floats_in_a_mask


@crash(
    "dtype",
    "bitwise_and",
    "Masks",
    "does not work on float32, got the input `x` (3,)",
    suggests=None,
    error=NotImplementedError,
)
def floats_in_a_mask():
    return Masks(), (torch.randn(3), torch.ones(3, dtype=torch.bool))
