"""The kernel's engine, slow in every second host: a straggling executor."""

from __future__ import annotations

import os
import time
from typing import Any

from crown import _kernel


class Engine:
    def __init__(self, plan: str, *, deltas: bool = True, engine: Any = None) -> None:
        self._engine = engine or _kernel.Engine(plan, deltas=deltas)

    @staticmethod
    def load(plan: str, chunks: list[bytes], *, deltas: bool = True) -> Engine:
        return Engine(plan, engine=_kernel.Engine.load(plan, chunks, deltas=deltas))

    def stream(self, changes: Any, **options: Any) -> Any:
        if os.getpid() % 2:
            time.sleep(3)
        return self._engine.stream(changes, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)
