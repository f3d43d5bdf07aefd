"""Which kernels scaled dot product attention may choose from: global flags that change the last bits of its result."""

from __future__ import annotations

import torch

_KERNELS = tuple(
    name for name in ("flash", "mem_efficient", "math", "cudnn") if hasattr(torch._C, f"_get_{name}_sdp_enabled")
)
_SETTERS = {"mem_efficient": "_set_sdp_use_mem_efficient", "flash": "_set_sdp_use_flash", "math": "_set_sdp_use_math"}


def attention_flags() -> tuple[bool, ...]:
    """The flags as they are now."""
    return tuple(bool(getattr(torch._C, f"_get_{name}_sdp_enabled")()) for name in _KERNELS)


def set_attention_flags(flags: tuple[bool, ...]) -> tuple[bool, ...]:
    """Set the flags; returns what they were."""
    before = attention_flags()
    for name, flag in zip(_KERNELS, flags, strict=True):
        getattr(torch._C, _SETTERS.get(name, f"_set_sdp_use_{name}"))(flag)
    return before
