"""A progress bar for what lasts: nothing is imported or shown in the first second."""

from __future__ import annotations

import time
import warnings
from types import TracebackType
from typing import Any

PATIENCE_S = 1.0


class Progress:
    """Counts steps, and shows a bar of tqdm, where that is installed, once a second has gone by.

    Args:
        label: what is counted.
        total: steps in all; None where that is not known.

    Example:
        >>> with Progress("operations", total=2) as progress:
        ...     progress.step()
        ...     progress.step()
    """

    def __init__(self, label: str, total: int | None = None) -> None:
        self.label = label
        self.total = total
        self.count = 0
        self._start = time.monotonic()
        self._bar: Any = None
        self._is_missing = False

    def step(self) -> None:
        """Count one more step."""
        self.count += 1
        if self._bar is not None:
            self._bar.update(1)
        elif not self._is_missing and time.monotonic() - self._start > PATIENCE_S:
            self._show()

    def _show(self) -> None:
        try:
            with warnings.catch_warnings():
                # It warns where it can't draw its bar as a widget, and draws it as text.
                warnings.simplefilter("ignore")
                from tqdm.auto import tqdm
        except ImportError:
            self._is_missing = True
            return
        self._bar = tqdm(desc=self.label, total=self.total, initial=self.count, leave=False)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
