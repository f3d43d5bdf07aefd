"""Normalisation, attention, embeddings, recurrent layers, losses."""

import torch
import torch.nn.functional as F
from torch import nn

from crashes import crash


class Normed(nn.Module):
    def __init__(self, norm: nn.Module, before: nn.Module) -> None:
        super().__init__()
        self.before = before
        self.norm = norm

    def forward(self, x):
        x = self.before(x)
        return self.norm(x)  # fails: layer_norm_of_other_size


@crash(
    "norm",
    "norm.layer_norm",
    "Normed norm",
    "`norm` normalises the last dimension 16 (its `normalized_shape`), got 12 from `before` (2, 3, 12)",
    suggests="`nn.LayerNorm(12)` would pass; tried",
)
def layer_norm_of_other_size():
    return Normed(nn.LayerNorm(16), nn.Linear(4, 12)), torch.randn(2, 3, 4)


class ConvNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(4), nn.ReLU())

    def forward(self, x):
        return self.body(x)  # fails: batch_norm_of_other_channels


@crash(
    "norm",
    "body.1.batch_norm",
    "ConvNorm body body.1",
    "`body.1` (BatchNorm2d) expects 4 channels (its `num_features`), got 8 from `body.0` (Conv2d) (2, 8, 4, 4)",
    suggests="`nn.BatchNorm2d(8)` would pass; tried",
)
def batch_norm_of_other_channels():
    return ConvNorm(), torch.randn(2, 3, 6, 6)


class VectorNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 6)
        self.bn = nn.BatchNorm2d(6)

    def forward(self, x):
        return self.bn(self.fc(x))  # fails: batch_norm_of_images_for_vectors


@crash(
    "norm",
    None,
    "VectorNorm bn",
    "`bn` (BatchNorm2d) expects 4D input, got 2 dimensions from `fc` (3, 6)",
    error=ValueError,
)
def batch_norm_of_images_for_vectors():
    return VectorNorm(), torch.randn(3, 4)


class OneRow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bn = nn.BatchNorm1d(5)

    def forward(self, x):
        return self.bn(x)  # fails: batch_norm_of_a_single_row


@crash("norm", "bn.batch_norm", "OneRow bn", "training mode", "the input `x` (1, 5)", "`.eval()`", error=ValueError)
def batch_norm_of_a_single_row():
    return OneRow().train(), torch.randn(1, 5)


class Groups(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, 16)

    def forward(self, x):
        return self.norm(x)  # fails: group_norm_of_other_channels


@crash("norm", "norm.group_norm", "Groups norm", "`norm` expects 16 channels (its `num_channels`), got 12")
def group_norm_of_other_channels():
    return Groups(), torch.randn(1, 12, 3)


class Scored(nn.Module):
    def forward(self, query, key, mask):
        return F.scaled_dot_product_attention(query, key, key, attn_mask=mask)  # fails: mask_for_other_keys


@crash(
    "mask",
    "scaled_dot_product_attention",
    "Scored",
    "the mask (5, 6) from the input `mask` must broadcast to the scores (2, 4, 5, 7), 5 queries by 7 keys",
    suggests=None,
)
def mask_for_other_keys():
    return Scored(), (torch.randn(2, 4, 5, 8), torch.randn(2, 4, 7, 8), torch.zeros(5, 6))


class Padding(nn.Module):
    def forward(self, x, attention_mask):
        sdpa = F.scaled_dot_product_attention
        return sdpa(x, x, x, attn_mask=attention_mask)  # fails: padding_mask_as_attention_mask


@crash(
    "mask",
    "scaled_dot_product_attention",
    "Padding",
    "the mask (3, 5) from the input `attention_mask`",
    "5 queries by 5 keys",
    suggests="`[:, None, None, :]` on the mask would pass; tried",
)
def padding_mask_as_attention_mask():
    return Padding(), (torch.randn(3, 2, 5, 8), torch.ones(3, 5, dtype=torch.bool))


class Cross(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, memory):
        return self.attention(x, memory, memory)[0]  # fails: memory_of_other_width


@crash(
    "attention",
    "attention.multi_head_attention_forward",
    "Cross attention",
    "`attention` expects last dimension 8 (its `embed_dim`) of its key, got 12 from the input `memory` (2, 5, 12)",
    error=BaseException,
)
def memory_of_other_width():
    return Cross(), (torch.randn(2, 3, 8), torch.randn(2, 5, 12))


class Causal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(6)
        return self.encoder(x, mask=mask)  # fails: causal_mask_of_fixed_length


@crash(
    "mask",
    "encoder.layers.0.self_attn.multi_head_attention_forward",
    "Causal encoder encoder.layers.0 encoder.layers.0.self_attn",
    "`attn_mask` must be (4, 4), 4 queries by 4 keys",
    "(6, 6)",
    "4 comes from dimension 1 of the input `x` (2, 4, 8)",
)
def causal_mask_of_fixed_length():
    return Causal(), torch.randn(2, 4, 8)


class PaddedEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, padding):
        return self.attention(x, x, x, key_padding_mask=padding)[0]  # fails: turned_padding_mask


@crash(
    "mask",
    "attention.multi_head_attention_forward",
    "PaddedEncoder attention",
    "`key_padding_mask` must be (2, 5), batch 2 by 5 keys, got (5, 2) from the input `padding`",
    error=AssertionError,
)
def turned_padding_mask():
    return PaddedEncoder(), (torch.randn(2, 5, 8), torch.zeros(5, 2, dtype=torch.bool))


class Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 8)

    def forward(self, tokens):
        return self.embed(tokens)  # fails: token_beyond_the_vocabulary


@crash(
    "embedding",
    "embed.embedding",
    "Tokens embed",
    "`embed` has 100 rows (its `num_embeddings`), and was asked for row 105",
    "those from the input `tokens` (1, 3) are 7 … 105",
    suggests="`nn.Embedding(106, 8)` would pass",
    error=IndexError,
)
def token_beyond_the_vocabulary():
    return Tokens(), torch.tensor([[7, 42, 105]])


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Embedding(8, 4)

    def forward(self, x):
        where = torch.arange(x.shape[1])
        return x + self.positions(where)  # fails: position_beyond_the_table


@crash(
    "embedding",
    "positions.embedding",
    "Positions positions",
    "8 rows",
    "row 9",
    "`arange` (10,) are 0 … 9",
    error=IndexError,
)
def position_beyond_the_table():
    return Positions(), torch.randn(1, 10, 4)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(5, 6)
        self.rnn = nn.LSTM(8, 4, batch_first=True)

    def forward(self, x):
        out, _ = self.rnn(self.embed(x))  # fails: lstm_of_other_input_size
        return out


@crash(
    "recurrent",
    None,
    "Recurrent rnn",
    "`rnn` expects last dimension 8 (its `input_size`), got 6 from `embed` (2, 3, 6) (its `out_features`)",
    suggests="`nn.LSTM(6, 4)`",
)
def lstm_of_other_input_size():
    return Recurrent(), torch.randn(2, 3, 5)


class Stateful(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, 6)

    def forward(self, x):
        state = torch.zeros(1, x.shape[0], 6)
        return self.rnn(x, state)[0]  # fails: hidden_state_of_other_batch


@crash("recurrent", None, "Stateful rnn", "hidden state of (1, 5, 6)", "got (1, 3, 6) from `zeros`", "(3, 5, 4)")
def hidden_state_of_other_batch():
    return Stateful(), torch.randn(3, 5, 4)


class Loss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 3)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x, labels):
        return self.loss(self.head(x), labels)  # fails: class_beyond_the_scores


@crash(
    "target",
    "loss.cross_entropy",
    "Loss loss",
    "scores for 3 classes from `head` (2, 3)",
    "(2,) from the input `labels` names class 3",
    "3 comes from `head` (its `out_features`)",
    error=IndexError,
)
def class_beyond_the_scores():
    return Loss(), (torch.randn(2, 4), torch.tensor([0, 3]))


class BatchLoss(nn.Module):
    def forward(self, logits, labels):
        return F.cross_entropy(logits.flatten(0, 1), labels)  # fails: labels_that_were_not_flattened


@crash(
    "target",
    "cross_entropy",
    "BatchLoss",
    "(6, 5) from `flatten` have 6",
    "(2,) from the input `labels` has 2",
    "6 = 2·3",
    error=ValueError,
)
def labels_that_were_not_flattened():
    return BatchLoss(), (torch.randn(2, 3, 5), torch.tensor([0, 1]))


class Translator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 12)
        self.transformer = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)

    def forward(self, source, target):
        return self.transformer(self.embed(source), self.embed(target))  # fails: transformer_of_other_width


@crash(
    "attention",
    None,
    "Translator transformer",
    "expects last dimension 16 (its `d_model`) of its source, got 12 from `embed` (1, 5, 12) (its `embedding_dim`)",
)
def transformer_of_other_width():
    return Translator(), (torch.randint(0, 20, (1, 5)), torch.randint(0, 20, (1, 3)))


class Memory(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2)

    def forward(self, x, memory):
        return self.attention(x, memory, memory)[0]  # fails: memory_of_other_batch


@crash(
    "attention",
    "attention.multi_head_attention_forward",
    "Memory attention",
    "the batch size of the query (3, 2, 8) from the input `x` is 2",
    "is 4",
)
def memory_of_other_batch():
    return Memory(), (torch.randn(3, 2, 8), torch.randn(5, 4, 8))
