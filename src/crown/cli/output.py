"""How commands show text: plain when piped, with a little colour on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

_COLOURS = (
    (r"(?m)^[A-Z]{4,}.*$", "bold"),
    (r"O\(1\)", "green"),
    (r"O\((?!1\))[^)]*\)+", "yellow"),
    (r"●|→", "cyan"),
    (r"λ = [\d,.]+", "bold"),
)


def show(text: str) -> None:
    """Print text unchanged, without wrapping lines."""
    styled = Text(text)
    for pattern, style in _COLOURS:
        styled.highlight_regex(pattern, style)
    Console(highlight=False, soft_wrap=True).print(styled)
