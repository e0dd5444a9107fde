"""Small charts for the demonstration's page, as SVG in the colours of the surrounding page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_WIDTH, _HEIGHT = 720.0, 190.0
_LEFT, _BOTTOM, _TOP = 64.0, 26.0, 12.0
STYLE = """
.scroll .chart { width: 100%; height: auto; min-width: 540px; max-width: 820px; margin: 0 auto; display: block; }
.chart { font: 12px system-ui, sans-serif; }
.chart text { fill: var(--muted); } .chart .bar { fill: var(--accent); } .chart .early { opacity: 0.35; }
.chart .rule { stroke: var(--rule); } .chart .limit { stroke: var(--fair); stroke-dasharray: 6 4; stroke-width: 1.6; }
.chart .limit-text { fill: var(--fair); font-weight: 600; } .chart .name { fill: var(--ink); }
.verdict { display: inline-block; border-radius: 99px; padding: 1px 11px; font-weight: 650; margin-right: 8px;
  background: var(--good-ground); color: var(--good); }
.verdict.different { background: var(--fair-ground); color: var(--fair); }
"""


def over_time(values: Sequence[float], *, unit: str, early: int = 0, limit: float | None = None, name: str = "") -> str:
    """Return a bar for each batch; the first `early` ones are pale, and a line shows the `limit`."""
    most = max([*values, limit or 0.0, 1e-9])
    inside, base = _WIDTH - _LEFT - 8, _HEIGHT - _BOTTOM
    step = inside / max(len(values), 1)
    parts = []
    for part in (0.0, 0.5, 1.0):
        y = base - part * (base - _TOP)
        parts.append(f'<line class="rule" x1="{_LEFT}" x2="{_WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{short(part * most)}</text>')
    for place, value in enumerate(values):
        height = value / most * (base - _TOP)
        kind = "bar early" if place < early else "bar"
        box = f'x="{_LEFT + place * step + step * 0.12:.1f}" y="{base - height:.1f}"'
        size = f'width="{step * 0.76:.1f}" height="{height:.1f}"'
        parts.append(f'<rect class="{kind}" {box} {size} rx="2"><title>batch {place}: {short(value)}</title></rect>')
    if limit is not None:
        y = base - limit / most * (base - _TOP)
        parts.append(f'<line class="limit" x1="{_LEFT}" x2="{_WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="limit-text" x="{_LEFT + 6}" y="{y + 16:.1f}">budget: {short(limit)}</text>')
    parts.append(f'<text x="{_LEFT}" y="{_HEIGHT - 6:.0f}">{escape(unit)}, batch by batch</text>')
    return _svg(name or unit, _HEIGHT, parts)


def ranking(rows: Sequence[tuple[str, float]], *, unit: str) -> str:
    """Return a bar to the right for each row, with its name and value."""
    most = max([value for _, value in rows] or [1.0])
    parts = []
    for place, (name, value) in enumerate(rows):
        y = 6 + place * 26
        width = value / most * 400
        text = name if len(name) <= 26 else name[:25] + "…"
        parts.append(f'<text class="name" x="190" y="{y + 14}" text-anchor="end">{escape(text)}</text>')
        parts.append(f'<rect class="bar" x="200" y="{y}" width="{width:.1f}" height="18" rx="3"/>')
        parts.append(f'<text x="{208 + width:.1f}" y="{y + 14}">{value:,.0f}</text>')
    return _svg(unit, 12 + 26 * len(rows), parts)


def short(value: float) -> str:
    """
    >>> [short(value) for value in (0, 1.25, 950, 12_345, 2_500_000)]
    ['0', '1.25', '950', '12k', '2.5M']
    """
    if value >= 1e6:
        return f"{value / 1e6:.3g}M"
    if value >= 1e4:
        return f"{value / 1e3:.0f}k"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _svg(label: str, height: float, parts: Sequence[str]) -> str:
    drawn = "".join(parts)
    return (
        f'<div class="scroll"><svg class="chart" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(label)}">{drawn}</svg></div>'
    )
