"""Models as people write them: ResNet, U-Net, ViT, GPT, encoder and decoder."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from crashes import crash


class BasicBlock(nn.Module):
    def __init__(self, inplanes: int, planes: int, stride: int = 1, shortcut: bool = True) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        needs = shortcut and (stride != 1 or inplanes != planes)
        self.downsample = nn.Conv2d(inplanes, planes, 1, stride, bias=False) if needs else None

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = torch.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity  # fails: resnet_without_a_shortcut
        return torch.relu(out)


class ResNet(nn.Module):
    def __init__(self, shortcut: bool = True, classes_from: int = 32) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True))
        self.layer1 = nn.Sequential(BasicBlock(16, 16), BasicBlock(16, 16))
        self.layer2 = nn.Sequential(BasicBlock(16, 32, 2, shortcut), BasicBlock(32, 32))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(classes_from, 10)

    def forward(self, x):
        x = self.layer2(self.layer1(self.stem(x)))
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(x)  # fails: resnet_with_a_wide_head


@crash(
    "broadcast",
    "layer2.0.add_",
    "ResNet layer2 layer2.0",
    "(1, 32, 8, 8) from `layer2.0.bn2`",
    "with (1, 16, 16, 16) from",
    "dimension 1 is 32 and 16",
    "32 channels come from `layer2.0.conv2` (its `out_channels`)",
)
def resnet_without_a_shortcut():
    return ResNet(shortcut=False).eval(), torch.randn(1, 3, 32, 32)


@crash(
    "linear",
    "fc.linear",
    "ResNet fc",
    "`fc` expects last dimension 512",
    "got 32 from `flatten` (1, 32) = (1, 32, 1, 1) flattened",
    "32 channels come from `layer2.1.conv2` (its `out_channels`)",
    suggests="`nn.Linear(32, 10)` would pass; tried",
)
def resnet_with_a_wide_head():
    return ResNet(classes_from=512).eval(), torch.randn(1, 3, 32, 32)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoders = nn.ModuleList([nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)])
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.merge = nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, x):
        first = torch.relu(self.encoders[0](x))
        second = torch.relu(self.encoders[1](self.pool(first)))
        joined = torch.cat((self.up(second), first), 1)  # fails: unet_of_odd_images
        return self.merge(joined)


@crash(
    "cat",
    "cat",
    "UNet",
    "(1, 4, 14, 14) from `up` and (1, 4, 15, 15) from `relu`",
    "dimension 2 is 14 and 15",
    "15 comes from dimension 2 of the input `x` (1, 1, 15, 15)",
)
def unet_of_odd_images():
    return UNet(), torch.randn(1, 1, 15, 15)


class PatchEmbed(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, dim, 4, 4)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class VitBlock(nn.Module):
    def __init__(self, dim: int, heads: int, hidden: int | None = None) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(hidden or 4 * dim, dim))

    def forward(self, x):
        batch, count, dim = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, count, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = qkv.unbind(0)
        mixed = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(batch, count, dim)
        x = x + self.proj(mixed)
        return x + self.mlp(self.norm2(x))  # fails: vit_with_a_narrow_mlp


class Vit(nn.Module):
    def __init__(self, patches: int = 16, hidden: int | None = None) -> None:
        super().__init__()
        self.patch_embed = PatchEmbed(24)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, 24))
        self.pos_embed = nn.Parameter(torch.zeros(1, patches + 1, 24))
        self.blocks = nn.Sequential(VitBlock(24, 4), VitBlock(24, 4, hidden))
        self.head = nn.Linear(24, 10)

    def forward(self, x):
        x = self.patch_embed(x)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1)
        x = x + self.pos_embed  # fails: vit_of_a_larger_image
        return self.head(self.blocks(x)[:, 0])


@crash(
    "broadcast",
    "add",
    "Vit",
    "(2, 26, 24) from `cat` with (1, 17, 24) from the parameter `pos_embed`",
    "dimension 1 is 26 and 17",
    "26 = 1+25",
    "`patch_embed.flatten`",
    "5×5 from the input's 20×20",
)
def vit_of_a_larger_image():
    return Vit(), torch.randn(2, 3, 20, 20)


@crash(
    "linear",
    "blocks.1.mlp.2.linear",
    "Vit blocks blocks.1 blocks.1.mlp blocks.1.mlp.2",
    "`blocks.1.mlp.2` (Linear) expects last dimension 64",
    "got 96 from `blocks.1.mlp.1` (GELU) (1, 17, 96)",
    "96 comes from `blocks.1.mlp.0` (Linear) (its `out_features`)",
    suggests="`nn.Linear(96, 24)` would pass; tried",
)
def vit_with_a_narrow_mlp():
    return Vit(hidden=64), torch.randn(1, 3, 16, 16)


class CausalAttention(nn.Module):
    def __init__(self, width: int, heads: int, longest: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.register_buffer("bias", torch.ones(longest, longest, dtype=torch.bool).tril()[None, None])

    def forward(self, x, past=0):
        batch, time, width = x.shape
        query, key, value = self.c_attn(x).split(width, dim=2)
        shape = (batch, time, self.heads, width // self.heads)
        query, key, value = (part.view(shape).transpose(1, 2) for part in (query, key, value))
        scores = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(~self.bias[:, :, :time, : time + past], -1e9)  # fails: gpt_with_a_wrong_past
        return self.c_proj((torch.softmax(scores, -1) @ value).transpose(1, 2).reshape(batch, time, width))


class Gpt(nn.Module):
    def __init__(self, longest: int = 16, past: int = 0, tied: int = 12) -> None:
        super().__init__()
        self.wte = nn.Embedding(50, 12)
        self.wpe = nn.Embedding(longest, 12)
        self.h = nn.ModuleList([CausalAttention(12, 3, 32) for _ in range(2)])
        self.ln_f = nn.LayerNorm(tied)
        self.past = past

    def forward(self, input_ids):
        position = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.wte(input_ids) + self.wpe(position)  # fails: gpt_with_too_long_a_text
        for block in self.h:
            x = x + block(x, self.past)
        x = self.ln_f(x)  # fails: gpt_with_another_norm
        return x @ self.wte.weight.T


@crash(
    "embedding",
    "wpe.embedding",
    "Gpt wpe",
    "`wpe` has 16 rows",
    "row 19",
    "`arange` (20,) are 0 … 19",
    error=IndexError,
)
def gpt_with_too_long_a_text():
    return Gpt(), torch.randint(0, 50, (1, 20))


@crash(
    "mask",
    "h.0.masked_fill",
    "Gpt h.0",
    "(1, 3, 8, 8) from `h.0.div`",
    "(1, 1, 8, 12)",
    "dimension 3 is 8 and 12",
)
def gpt_with_a_wrong_past():
    return Gpt(past=4), torch.randint(0, 50, (1, 8))


@crash(
    "norm",
    "ln_f.layer_norm",
    "Gpt ln_f",
    "`ln_f` normalises the last dimension 16",
    "got 12",
    "`wte` (its `embedding_dim`)",
)
def gpt_with_another_norm():
    return Gpt(tied=16), torch.randint(0, 50, (1, 8))


class Seq2Seq(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 1, enable_nested_tensor=False
        )
        self.bridge = nn.Linear(16, 8)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 2, 32, batch_first=True), 1)

    def forward(self, source, target):
        memory = self.bridge(self.encoder(source))
        return self.decoder(target, memory)  # fails: decoder_with_a_narrow_memory


@crash(
    "attention",
    "decoder.layers.0.multihead_attn.multi_head_attention_forward",
    "Seq2Seq decoder decoder.layers.0 decoder.layers.0.multihead_attn",
    "`decoder.layers.0.multihead_attn` expects last dimension 16 (its `embed_dim`) of its key, got 8 from `bridge`",
    error=BaseException,
)
def decoder_with_a_narrow_memory():
    return Seq2Seq(), (torch.randn(1, 5, 16), torch.randn(1, 3, 16))


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.ModuleDict({"c3": nn.Conv2d(3, 8, 3, 2, 1), "c4": nn.Conv2d(8, 16, 3, 2, 1)})
        self.lateral = nn.ModuleDict({"c3": nn.Conv2d(8, 12, 1), "c4": nn.Conv2d(16, 12, 1)})

    def forward(self, images):
        features = {}
        for name, stage in self.backbone.items():
            images = features[name] = stage(images)
        top = F.interpolate(self.lateral["c4"](features["c4"]), scale_factor=2)
        return {"p3": self.lateral["c3"](features["c3"]) + top}  # fails: pyramid_of_odd_images


@crash(
    "broadcast",
    "add",
    "Detector",
    "(1, 12, 13, 13) from `lateral.c3` with (1, 12, 14, 14) from `interpolate`",
    "dimension 2 is 13 and 14",
    "the input's 25",
)
def pyramid_of_odd_images():
    return Detector(), torch.randn(1, 3, 25, 25)
