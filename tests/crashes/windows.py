"""Convolutions and pooling."""

import torch
from torch import nn

from crashes import crash


class TwoConvs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3)
        self.conv2 = nn.Conv2d(64, 8, 3)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        return self.conv2(x)  # fails: channels_of_two_convolutions


@crash(
    "conv",
    "conv2.conv2d",
    "TwoConvs conv2",
    "`conv2` expects 64 input channels (its `in_channels`), got 32 from `relu` (1, 32, 14, 14)",
    "32 channels come from `conv1` (its `out_channels`)",
    suggests="`nn.Conv2d(32, 8, …)` would pass; tried",
)
def channels_of_two_convolutions():
    return TwoConvs(), torch.randn(1, 3, 16, 16)


class Stem(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 4, 3)

    def forward(self, image):
        return self.conv(image)  # fails: image_with_channels_last


@crash(
    "conv",
    "conv.conv2d",
    "Stem conv",
    "`conv` expects 3 input channels",
    "got 20 from the input `image` (2, 20, 24, 3)",
    suggests="`.permute(0, 3, 1, 2)` on its input would pass; tried",
)
def image_with_channels_last():
    return Stem(3), torch.randn(2, 20, 24, 3)


class Text(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.conv = nn.Conv1d(16, 8, 3)

    def forward(self, tokens):
        return self.conv(self.embed(tokens))  # fails: embedding_into_a_convolution


@crash(
    "conv",
    "conv.conv1d",
    "Text conv",
    "`conv` expects 16 input channels (its `in_channels`), got 9 from `embed` (2, 9, 16)",
    "dimension 1 of the input `tokens` (2, 9)",
    suggests="`.transpose(1, 2)` on its input would pass; tried",
)
def embedding_into_a_convolution():
    return Text(), torch.randint(0, 50, (2, 9))


class Gray(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)

    def forward(self, images):
        return self.conv(images)  # fails: images_without_channels


@crash(
    "conv",
    "conv.conv2d",
    "Gray conv",
    "`conv` expects 1 input channel (its `in_channels`)",
    "got 5 from the input `images` (5, 28, 28)",
    suggests="`.unsqueeze(1)` on its input would pass; tried",
)
def images_without_channels():
    return Gray(), torch.randn(5, 28, 28)


class Flat(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.conv(x.flatten(2).mean(-1))  # fails: vector_into_a_convolution


@crash(
    "conv",
    "conv.conv2d",
    "Flat conv",
    "`conv` expects 4 dimensions (batch, channels, height, width), or 3 without batch, got 2 from `mean` (2, 3)",
)
def vector_into_a_convolution():
    return Flat(), torch.randn(2, 3, 5, 5)


@crash(
    "too small",
    "4.conv2d",
    "Sequential 4",
    "`4` (Conv2d) needs an input of at least 5×5 (its kernel is 5×5), got 3×3 from `3` (MaxPool2d) (1, 8, 3, 3)",
    "of the input's 18×18",
    suggests=None,
)
def kernel_larger_than_what_is_left():
    layers = [nn.Conv2d(1, 4, 3), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.MaxPool2d(2), nn.Conv2d(8, 8, 5)]
    return nn.Sequential(*layers), torch.randn(1, 1, 18, 18)


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList([nn.MaxPool2d(4) for _ in range(3)])

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)  # fails: pooled_too_often
        return x


@crash(
    "too small",
    "stages.2.max_pool2d",
    "Pooled stages.2",
    "`stages.2` (MaxPool2d) needs an input of at least 4×4 (its window is 4×4), got 2×2 from `stages.1` (MaxPool2d)",
    "the input's 32×32",
    suggests=None,
)
def pooled_too_often():
    return Pooled(), torch.randn(1, 2, 32, 32)


class Up(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 16, 2, stride=2)
        self.up = nn.ConvTranspose2d(8, 3, 2, stride=2)

    def forward(self, x):
        return self.up(self.down(x))  # fails: transposed_convolution


@crash(
    "conv",
    "up.conv_transpose2d",
    "Up up",
    "`up` expects 8 input channels (its `in_channels`), got 16 from `down` (1, 16, 4, 4) (its `out_channels`)",
    suggests="`nn.ConvTranspose2d(16, 3, …)` would pass; tried",
)
def transposed_convolution():
    return Up(), torch.randn(1, 3, 8, 8)


class Grouped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.expand = nn.Conv2d(4, 12, 1)
        self.depthwise = nn.Conv2d(8, 8, 3, groups=8)

    def forward(self, x):
        return self.depthwise(self.expand(x))  # fails: depthwise_convolution


@crash("conv", "depthwise.conv2d", "Grouped depthwise", "`depthwise` expects 8 input channels", "got 12 from `expand`")
def depthwise_convolution():
    return Grouped(), torch.randn(1, 4, 6, 6)


class Averaged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.AvgPool1d(8)

    def forward(self, x):
        return self.pool(x)  # fails: short_sequence_into_a_pool


@crash(
    "too small", "pool.avg_pool1d", "Averaged pool", "at least 8 (its window is 8), got 5 from the input `x` (1, 2, 5)"
)
def short_sequence_into_a_pool():
    return Averaged(), torch.randn(1, 2, 5)


class Shuffled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 10, 1)
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, x):
        return self.shuffle(self.conv(x))  # fails: pixel_shuffle_of_ten_channels


@crash("conv", "shuffle.pixel_shuffle", "Shuffled shuffle", "a multiple of 4 channels", "got 10 from `conv`")
def pixel_shuffle_of_ten_channels():
    return Shuffled(), torch.randn(1, 3, 4, 4)
