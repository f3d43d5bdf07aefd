"""Linear layers and matrix products."""

import torch
import torch.nn.functional as F
from torch import nn

from crashes import crash


class Pool(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.halve = nn.MaxPool2d(2)
        self.flatten = nn.Flatten()

    def forward(self, x):
        return self.flatten(self.halve(x))


class Head(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, 10)

    def forward(self, x):
        return self.linear(x)  # fails: flattened_images_into_a_head


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, stride=4, padding=1)
        self.conv3 = nn.Conv2d(16, 64, 3, stride=4, padding=1)
        self.pool = Pool()
        self.head = Head(256)

    def forward(self, x):
        x = torch.relu(self.conv3(torch.relu(self.conv1(x))))
        return self.head(self.pool(x))


class Wrapped(nn.Module):
    def __init__(self, **parts: nn.Module) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.encoder(x)


@crash(
    "linear",
    "encoder.head.linear.linear",
    "Wrapped encoder encoder.head encoder.head.linear",
    "`encoder.head.linear` expects last dimension 256 (its `in_features`)",
    "got 192 from `encoder.pool.flatten` (1, 192)",
    "(1, 64, 3, 1) flattened",
    "64 channels come from `encoder.conv3` (its `out_channels`)",
    "3×1 from the input's 96×32",
    suggests="`nn.Linear(192, 10)` would pass; tried",
)
def flattened_images_into_a_head():
    return Wrapped(encoder=Encoder()), torch.randn(1, 3, 96, 32)


@crash(
    "linear",
    "2.linear",
    "Sequential 2",
    "`2` (Linear) expects last dimension 16 (its `in_features`), got 8 from `1` (ReLU) (4, 8)",
    "8 comes from `0` (Linear) (its `out_features`)",
    suggests="`nn.Linear(8, 2)` would pass; tried",
)
def sequential_of_linears():
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(16, 2)), torch.randn(4, 3)


class FunctionalLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 7))

    def forward(self, x):
        return F.linear(x, self.weight)  # fails: functional_linear


@crash(
    "linear",
    "linear",
    "FunctionalLinear",
    "`linear` expects last dimension 7",
    "the parameter `weight` (5, 7)",
    "got 6 from the input `x` (2, 6)",
    suggests=None,
)
def functional_linear():
    return FunctionalLinear(), torch.randn(2, 6)


class UnflattenedImage(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(784, 10)

    def forward(self, image):
        return self.fc(image)  # fails: image_that_was_not_flattened


@crash(
    "linear",
    "fc.linear",
    "UnflattenedImage fc",
    "`fc` expects last dimension 784",
    "got 28 from the input `image` (2, 1, 28, 28)",
    suggests="`.flatten(1)` on its input would pass; tried",
)
def image_that_was_not_flattened():
    return UnflattenedImage(), torch.randn(2, 1, 28, 28)


class ChannelsFirstLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 12, 3, padding=1)
        self.project = nn.Linear(12, 5)

    def forward(self, x):
        return self.project(self.conv(x))  # fails: channels_before_a_linear


@crash(
    "linear",
    "project.linear",
    "ChannelsFirstLinear project",
    "`project` expects last dimension 12",
    "got 20 from `conv` (2, 12, 20)",
    "dimension 2 of the input `x` (2, 4, 20)",
    suggests="`.transpose(1, 2)` on its input would pass; tried",
)
def channels_before_a_linear():
    return ChannelsFirstLinear(), torch.randn(2, 4, 20)


class Concatenated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Linear(4, 6)
        self.right = nn.Linear(4, 10)
        self.join = nn.Linear(12, 3)

    def forward(self, x):
        both = torch.cat([self.left(x), self.right(x)], dim=-1)
        return self.join(both)  # fails: parts_put_together_for_a_linear


@crash(
    "linear",
    "join.linear",
    "Concatenated join",
    "`join` expects last dimension 12",
    "got 16 from `cat` (2, 16)",
    "16 = 6+10",
    "6 comes from `left` (its `out_features`)",
    "10 comes from `right` (its `out_features`)",
    suggests="`nn.Linear(16, 3)`",
)
def parts_put_together_for_a_linear():
    return Concatenated(), torch.randn(2, 4)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(8, 6)
        self.key = nn.Linear(8, 6)

    def forward(self, x):
        query, key = self.query(x), self.key(x)
        return query @ key  # fails: key_that_was_not_transposed


@crash(
    "matmul",
    "matmul",
    "Attention",
    "`matmul` multiplies (2, 5, 6) from `query` by (2, 5, 6) from `key`",
    "the last dimension of the left is 6",
    "second to last dimension of the right is 5",
    suggests="`.transpose(-2, -1)` on the right would pass; tried",
)
def key_that_was_not_transposed():
    return Attention(), torch.randn(2, 5, 8)


class Batched(nn.Module):
    def forward(self, x, y):
        return torch.bmm(x.relu(), y)  # fails: batches_of_different_size


@crash("matmul", "bmm", "Batched", "the batch dimensions 3 and 2 differ", "(3, 4, 5) from `relu`", suggests=None)
def batches_of_different_size():
    return Batched(), (torch.randn(3, 4, 5), torch.randn(2, 5, 6))


class Projected(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(9, 4))

    def forward(self, x):
        return torch.tanh(x) @ self.table  # fails: product_with_a_parameter


@crash(
    "matmul",
    "matmul",
    "Projected",
    "`matmul` multiplies (2, 8) from `tanh` by (9, 4) from the parameter `table`",
    "8 comes from dimension 1 of the input `x` (2, 8)",
    suggests=None,
)
def product_with_a_parameter():
    return Projected(), torch.randn(2, 8)


class Einsum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Linear(16, 12)

    def forward(self, query, key):
        return torch.einsum("bqd,bkd->bqk", query, self.down(key))  # fails: einsum_letter_with_two_sizes


@crash(
    "einsum",
    "einsum",
    "Einsum",
    '`einsum` "bqd,bkd->bqk": `d` is 16 in the input `query` (2, 3, 16) and 12 in `down` (2, 5, 12)',
    "12 comes from `down` (its `out_features`)",
    suggests=None,
)
def einsum_letter_with_two_sizes():
    return Einsum(), (torch.randn(2, 3, 16), torch.randn(2, 5, 16))


class EinsumRank(nn.Module):
    def forward(self, x):
        heads = x.unsqueeze(1)
        return torch.einsum("bij,bj->bi", heads, x)  # fails: einsum_with_too_few_letters


@crash("einsum", "einsum", "EinsumRank", "(bij) for operand 0, got 4: `unsqueeze` (2, 1, 3, 4)", suggests=None)
def einsum_with_too_few_letters():
    return EinsumRank(), torch.randn(2, 3, 4)


class Bilinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Bilinear(4, 6, 2)

    def forward(self, x):
        return self.mix(x, x)  # fails: bilinear_with_one_input_for_both


@crash("linear", "mix.bilinear", "Bilinear mix", "`mix` expects last dimension 6 (its `in2_features`)", "got 4")
def bilinear_with_one_input_for_both():
    return Bilinear(), torch.randn(3, 4)


class MatrixVector(nn.Module):
    def forward(self, matrix, vector):
        return matrix.mv(vector)  # fails: matrix_times_vector


@crash("matmul", "mv", "MatrixVector", "(3, 4) from the input `matrix`", "(5,) from the input `vector`", "is 4", "is 5")
def matrix_times_vector():
    return MatrixVector(), (torch.randn(3, 4), torch.randn(5))


class ScaledLinear(nn.Linear):
    def forward(self, x):
        return F.linear(x * 0.5, self.weight)  # fails: linear_of_an_own_class


@crash(
    "linear",
    "1.linear",
    "Sequential 1",
    "`1` (ScaledLinear) expects last dimension 6 (its `in_features`), got 5 from `0` (Linear) (2, 5)",
    suggests="`ScaledLinear(5, 3)` would pass; tried",
)
def linear_of_an_own_class():
    return nn.Sequential(nn.Linear(4, 5), ScaledLinear(6, 3)), torch.randn(2, 4)
