"""An extension of griffe: examples in docstrings are shown as code, and doctest's own comments are left out."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?m)^(?:>>> .*\n?(?:(?!\s*$).+\n?)*)+")


class FenceDoctests(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fence(obj.docstring.value)


def fence(text: str) -> str:
    """Put a fence around each run of lines that starts with a prompt.

    >>> print(fence("Add.\\n\\n>>> 1 + 1\\n2\\n\\nDone."))
    Add.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    Done.
    """
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
