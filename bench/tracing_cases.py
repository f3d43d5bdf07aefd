"""The models that `tracing.py` traces: built from configurations with random weights, nothing is downloaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Built = tuple[nn.Module, tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """One model with its inputs.

    Attributes:
        name: what `--models` calls it.
        build: gives the model in eval mode and the positional arguments of its forward.
        needs: package without which the case is left out.
        has_memory: its peak memory is worth measuring: the model and its forward take tens of MB or more.
        is_meta: it runs on the meta device: no arithmetic, no memory, and torchatlas alone.
        raises: part of the message with which its forward raises, and so a tool, too; None where it runs through.
    """

    name: str
    build: Callable[[], Built]
    needs: str = "torch"
    has_memory: bool = False
    is_meta: bool = False
    raises: str | None = None

    @property
    def is_available(self) -> bool:
        return importlib.util.find_spec(self.needs) is not None


class Loop(nn.Module):
    """Six small operations, many times over; may end in a product whose shapes clash."""

    def __init__(self, rounds: int, *, is_failing: bool = False) -> None:
        super().__init__()
        self.rounds = rounds
        self.is_failing = is_failing
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.rounds):
            y = torch.tanh(x * self.scale)
            x = (x + y).view(2, 8).clamp(-1.0, 1.0) - 0.1
        return x @ x if self.is_failing else x


def _ids(vocabulary: int = 1000, length: int = 128) -> torch.Tensor:
    return torch.randint(0, vocabulary, (1, length))


def _one_linear() -> Built:
    return nn.Linear(4, 4), (torch.rand(2, 4),)


def _mlp() -> Built:
    return nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(16, 16), nn.ReLU())]), (torch.rand(2, 16),)


def _lstm() -> Built:
    return nn.LSTM(16, 32, num_layers=2, batch_first=True), (torch.rand(2, 20, 16),)


def _encoder() -> Built:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), (torch.rand(2, 10, 32),)


def _loop() -> Built:
    return Loop(150), (torch.rand(2, 8),)


def _failing_loop() -> Built:
    return Loop(150, is_failing=True), (torch.rand(2, 8),)


def _gpt2() -> Built:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(use_cache=False)), (_ids(),)


def _gpt2_tiny() -> Built:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(use_cache=False, n_embd=32, n_layer=4, n_head=4, vocab_size=128)
    return GPT2LMHeadModel(config), (_ids(128, 16),)


def _bert() -> Built:
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig()), (_ids(),)


def _bert_tiny() -> Built:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=32, num_hidden_layers=4, num_attention_heads=4, intermediate_size=64, vocab_size=128
    )
    return BertModel(config), (_ids(128, 16),)


def _resnet50() -> Built:
    from transformers import ResNetConfig, ResNetForImageClassification

    return ResNetForImageClassification(ResNetConfig()), (torch.rand(1, 3, 224, 224),)


def _vit() -> Built:
    from transformers import ViTConfig, ViTModel

    return ViTModel(ViTConfig()), (torch.rand(1, 3, 224, 224),)


def _llama_meta() -> Built:
    from transformers import LlamaConfig, LlamaForCausalLM

    with torch.device("meta"):  # with its cache: without it transformers reads values of the mask, which has none
        return LlamaForCausalLM(LlamaConfig()), (torch.zeros(1, 128, dtype=torch.long),)


def _torchvision(name: str, size: int) -> Callable[[], Built]:
    def build() -> Built:
        import torchvision

        return torchvision.models.get_model(name, weights=None), (torch.rand(1, 3, size, size),)

    return build


def _timm(name: str, size: int) -> Callable[[], Built]:
    def build() -> Built:
        import timm

        return timm.create_model(name, pretrained=False), (torch.rand(1, 3, size, size),)

    return build


CASES = (
    Case("one-linear", _one_linear),
    Case("mlp", _mlp),
    Case("lstm", _lstm),
    Case("encoder", _encoder),
    Case("loop", _loop),
    Case("failing-loop", _failing_loop, raises="shapes cannot be multiplied"),
    Case("gpt2-tiny", _gpt2_tiny, "transformers"),
    Case("bert-tiny", _bert_tiny, "transformers"),
    Case("mobilenet-32px", _torchvision("mobilenet_v3_small", 32), "torchvision"),
    Case("efficientnet-64px", _timm("efficientnet_b0", 64), "timm"),
    Case("resnet50", _resnet50, "transformers", has_memory=True),
    Case("bert", _bert, "transformers", has_memory=True),
    Case("vit", _vit, "transformers", has_memory=True),
    Case("gpt2", _gpt2, "transformers", has_memory=True),
    Case("llama-7b-meta", _llama_meta, "transformers", is_meta=True),
)
