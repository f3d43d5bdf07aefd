"""Settings of the thread that change what an operation does: read, kept with each operation, and set again.

Among them are the global flags that say which kernels scaled dot product attention may choose from: they change the
last bits of its result.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from torchatlas.record import Context

_grad_enabled = torch.is_grad_enabled
_inference_enabled = torch.is_inference_mode_enabled
_any_autocast = torch._C._is_any_autocast_enabled
_default_dtype = torch.get_default_dtype
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


def current_context(last: Context | None) -> Context:
    """The settings as they are now; `last` itself where nothing changed since, which is quick to tell."""
    if (
        last is not None
        and last.grad is _grad_enabled()
        and last.inference is _inference_enabled()
        and last.dtype is _default_dtype()
        and not _any_autocast()
        and not last.autocast
    ):
        return last
    autocast = _autocast_state() if _any_autocast() else ()
    return Context(_grad_enabled(), _inference_enabled(), autocast, _default_dtype())


@contextlib.contextmanager
def under(context: Context) -> Iterator[None]:
    """Run under the settings that an operation ran under."""
    with contextlib.ExitStack() as stack:
        if context.inference != torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(context.inference))
        stack.enter_context(torch.set_grad_enabled(context.grad))
        enabled = {device: (dtype, cache) for device, dtype, cache in context.autocast}
        devices = ["cpu", *(["cuda"] if torch.cuda.is_initialized() else [])]
        for device in devices:
            if device in enabled:
                dtype, cache = enabled[device]
                stack.enter_context(torch.autocast(device, dtype=dtype, cache_enabled=cache))
            elif torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        before = torch.get_default_dtype()
        if before is not context.dtype:
            torch.set_default_dtype(context.dtype)
            stack.callback(torch.set_default_dtype, before)
        if context.attention:
            stack.callback(set_attention_flags, set_attention_flags(context.attention))
        yield


def thread_settings() -> tuple[Any, ...]:
    """Thread-local settings that a forward, or an interruption of a `with` block in it, may leave changed."""
    autocast = tuple((d, torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in _autocast_devices())
    return torch.is_grad_enabled(), torch.get_default_dtype(), autocast


def set_thread_settings(settings: tuple[Any, ...]) -> None:
    """Put back what `thread_settings` gave."""
    grad, dtype, autocast = settings
    torch._C._set_grad_enabled(grad)
    if torch.get_default_dtype() is not dtype:
        torch.set_default_dtype(dtype)
    for device, enabled, autocast_dtype in autocast:
        if torch.is_autocast_enabled(device) != enabled or torch.get_autocast_dtype(device) != autocast_dtype:
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, autocast_dtype)


def _autocast_devices() -> tuple[str, ...]:
    return ("cpu", "cuda") if torch.cuda.is_initialized() else ("cpu",)


def _autocast_state() -> tuple[tuple[str, Any, bool], ...]:
    enabled = [device for device in _autocast_devices() if torch.is_autocast_enabled(device)]
    return tuple((d, torch.get_autocast_dtype(d), torch.is_autocast_cache_enabled()) for d in enabled)
