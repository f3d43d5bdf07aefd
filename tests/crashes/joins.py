"""Broadcasting, joining, reshaping, splitting, indexing."""

import torch
from torch import nn

from crashes import crash


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3)

    def forward(self, x):
        return x + self.conv(x)  # fails: residual_without_padding


@crash(
    "broadcast",
    "blocks.1.add",
    "Stack blocks blocks.1",
    "`blocks.1.add` combines (1, 8, 8, 8) from `blocks.0` (Identity) with (1, 8, 6, 6) from `blocks.1.conv`",
    "dimension 2 is 8 and 6 and dimension 3 is 8 and 6",
    suggests=None,
)
def residual_without_padding():
    return Stack(nn.Sequential(nn.Identity(), Residual())), torch.randn(1, 8, 8, 8)


class Stack(nn.Module):
    def __init__(self, blocks: nn.Module) -> None:
        super().__init__()
        self.blocks = blocks

    def forward(self, x):
        return self.blocks(x)


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(6, 6)

    def forward(self, x):
        weights = torch.sigmoid(self.gate(x.mean((2, 3))))
        return x * weights  # fails: gate_without_spatial_dimensions


@crash(
    "broadcast",
    "mul",
    "Gate",
    "`mul` combines (2, 6, 5, 5) from the input `x` with (2, 6) from `sigmoid`",
    "dimension 3 is 5 and 6",
    "6 comes from `gate` (its `out_features`)",
    suggests="`[:, :, None, None]` on `sigmoid` would pass; tried",
)
def gate_without_spatial_dimensions():
    return Gate(), torch.randn(2, 6, 5, 5)


class Position(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.position = nn.Parameter(torch.zeros(1, 16, 8))

    def forward(self, tokens):
        return tokens + self.position  # fails: sequence_longer_than_positions


@crash(
    "broadcast",
    "add",
    "Position",
    "(2, 20, 8) from the input `tokens` with (1, 16, 8) from the parameter `position`",
    "dimension 1 is 20 and 16",
    suggests=None,
)
def sequence_longer_than_positions():
    return Position(), torch.randn(2, 20, 8)


class Masked(nn.Module):
    def forward(self, scores, mask):
        return scores.masked_fill(mask, float("-inf"))  # fails: mask_of_another_length


@crash(
    "mask", "masked_fill", "Masked", "masks (2, 4, 4) from the input `scores` with (2, 1, 5)", "dimension 2 is 4 and 5"
)
def mask_of_another_length():
    return Masked(), (torch.randn(2, 4, 4), torch.zeros(2, 1, 5, dtype=torch.bool))


class InPlace(nn.Module):
    def forward(self, x, y):
        total = torch.zeros_like(x)
        total += y  # fails: in_place_sum_of_other_size
        return total


@crash("broadcast", "add_", "InPlace", "`add_` combines (3, 4) from `zeros_like` with (3, 5)", "dimension 1 is 4 and 5")
def in_place_sum_of_other_size():
    return InPlace(), (torch.randn(3, 4), torch.randn(3, 5))


class Skip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.MaxPool2d(2)
        self.up = nn.Upsample(scale_factor=2)

    def forward(self, x):
        small = self.up(self.down(x))
        return torch.cat([x, small], dim=1)  # fails: skip_connection_of_odd_size


@crash(
    "cat",
    "cat",
    "Skip",
    "`cat` needs equal sizes except in dimension 1, got (1, 2, 7, 7) from the input `x` and (1, 2, 6, 6) from `up`",
    "dimension 2 is 7 and 6",
    suggests=None,
)
def skip_connection_of_odd_size():
    return Skip(), torch.randn(1, 2, 7, 7)


class ClassToken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 8))

    def forward(self, x):
        return torch.cat([self.token, x], dim=1)  # fails: class_token_without_batch


@crash(
    "cat",
    "cat",
    "ClassToken",
    "the parameter `token` (1, 8) has 2",
    "the input `x` (1, 5, 8) has 3",
    suggests="`.unsqueeze(0)`",
)
def class_token_without_batch():
    return ClassToken(), torch.randn(1, 5, 8)


class Stacked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.branches = nn.ModuleDict({"short": nn.Linear(4, 3), "long": nn.Linear(4, 5)})

    def forward(self, x):
        found = [branch(x) for branch in self.branches.values()]
        return torch.stack(found)  # fails: branches_of_different_width


@crash(
    "cat",
    "stack",
    "Stacked",
    "`stack` needs equal shapes",
    "3 comes from `branches.short`",
    "5 comes from `branches.long`",
)
def branches_of_different_width():
    return Stacked(), torch.randn(2, 4)


class Flattened(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 5)

    def forward(self, x):
        x = self.conv(x)
        return x.view(-1, 16 * 5 * 5)  # fails: view_with_the_wrong_number


@crash(
    "reshape",
    "view",
    "Flattened",
    "`view` can't give (-1, 400): `conv` (2, 16, 6, 6) has 2·16·6·6 = 1152 elements, which is no multiple of 400",
    suggests="`.flatten(1)`",
)
def view_with_the_wrong_number():
    return Flattened(), torch.randn(2, 3, 10, 10)


class Heads(nn.Module):
    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, x):
        batch, time, width = x.shape
        return x.reshape(batch, time, self.heads, width // self.heads)  # fails: heads_that_do_not_divide


@crash("reshape", "reshape", "Heads", "can't give (2, 4, 3, 3)", "2·4·10 = 80 elements, and 2·4·3·3 = 72 are needed")
def heads_that_do_not_divide():
    return Heads(3), torch.randn(2, 4, 10)


class Transposed(nn.Module):
    def forward(self, x):
        turned = x.transpose(1, 2)
        return turned.view(x.shape[0], -1)  # fails: view_of_transposed


@crash(
    "view",
    "view",
    "Transposed",
    "is not contiguous",
    "`transpose` has turned its dimensions",
    suggests="`.reshape(…)` instead of `.view(…)` would pass; tried",
)
def view_of_transposed():
    return Transposed(), torch.randn(2, 3, 4)


class Expanded(nn.Module):
    def forward(self, x):
        return x.expand(8, -1)  # fails: expand_of_two_rows


@crash("broadcast", "expand", "Expanded", "(2, 3) to (8, -1)", "dimension 0 must be 1 or 8, got 2 from the input `x`")
def expand_of_two_rows():
    return Expanded(), torch.randn(2, 3)


class Split(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 20)

    def forward(self, x):
        query, key, value = self.qkv(x).split([8, 8, 8], dim=-1)  # fails: split_of_too_little
        return query @ key.mT @ value


@crash("split", "split", "Split", "needs 24 in dimension 2, got 20 from `qkv` (2, 3, 20) (its `out_features`)")
def split_of_too_little():
    return Split(), torch.randn(2, 3, 8)


class LastRow(nn.Module):
    def forward(self, x):
        return x[:, 4]  # fails: row_beyond_the_end


@crash(
    "index",
    "getitem",
    "LastRow",
    "index 4 is out of bounds for dimension 1 of the input `x` (2, 4, 3), which has size 4",
    error=IndexError,
)
def row_beyond_the_end():
    return LastRow(), torch.randn(2, 4, 3)


class TooDeep(nn.Module):
    def forward(self, x):
        return x.relu()[0, 0, 0]  # fails: more_indices_than_dimensions


@crash("index", "getitem", "TooDeep", "uses 3 indices on `relu` (2, 3), which has 2 dimensions", error=IndexError)
def more_indices_than_dimensions():
    return TooDeep(), torch.randn(2, 3)


class Gathered(nn.Module):
    def forward(self, x, rows):
        return x.gather(1, rows)  # fails: gather_beyond_the_end


@crash("index", "gather", "Gathered", "index 3 by the input `rows` (2, 1) for dimension 1", "size 3")
def gather_beyond_the_end():
    return Gathered(), (torch.randn(2, 3), torch.tensor([[0], [3]]))


class Permuted(nn.Module):
    def forward(self, x):
        return x.permute(0, 3, 1, 2)  # fails: permute_without_batch


@crash("dimension", "permute", "Permuted", "orders 4 dimensions (0, 3, 1, 2), but the input `x` (8, 8, 3) has 3")
def permute_without_batch():
    return Permuted(), torch.randn(8, 8, 3)


class Softmax(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.softmax = nn.Softmax(dim=2)

    def forward(self, x):
        return self.softmax(x)  # fails: softmax_over_a_missing_dimension


@crash(
    "dimension",
    "softmax.softmax",
    "Softmax softmax",
    "asks for dimension 2 of the input `x` (2, 5)",
    error=IndexError,
)
def softmax_over_a_missing_dimension():
    return Softmax(), torch.randn(2, 5)


class Written(nn.Module):
    def forward(self, x):
        cache = x.new_zeros(2, 6)
        cache[:, :3] = x  # fails: written_into_too_few_columns
        return cache


@crash(
    "broadcast", "setitem", "Written", "writes the input `x` (2, 4) into a part of shape (2, 3) of `new_zeros` (2, 6)"
)
def written_into_too_few_columns():
    return Written(), torch.randn(2, 4)
