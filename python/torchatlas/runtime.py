"""The model that carries the view's code: one per kernel, never displayed, shared by all views."""

from __future__ import annotations

import hashlib

from torchatlas import bundle
from torchatlas.widget import Runtime

_shared: Runtime | None = None


def shared() -> Runtime:
    """The kernel's runtime model; made at the first call, and anew where it was closed.

    It must exist in the front end before a view that refers to it, so call this before making one
    (jupyter-widgets/ipywidgets#4026).

    Raises:
        FileNotFoundError: the bundle was not built.
    """
    global _shared
    if _shared is None or _shared.comm is None:
        script, wasm = bundle.packed_script(), bundle.packed_wasm()
        _shared = Runtime(_script=script, _wasm=wasm, digest=hashlib.sha256(script + wasm).hexdigest()[:16])
    return _shared
