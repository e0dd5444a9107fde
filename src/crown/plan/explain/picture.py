"""The trees of a plan as an SVG picture, laid out by hand so that it needs no other program.

The layout is a tidy tree: a subtree is as narrow as its contours allow, a parent is centred over its
children. It grows downwards; a tree too wide for that grows to the right instead, where many children take little room.
Text is monospaced, so that its width is known without a font.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

from crown.ir.plan import Plan, TreeStage, every_stage
from crown.plan.explain.labels import with_columns
from crown.plan.explain.words import Carried, NodeFacts, node_facts, stage_text

_CHARACTER = 7.3  # width of one character at 12 px
_LINE = 17
_PADDING = 12
_GAP = 22  # between neighbours
_WIDEST = 1100  # of a tree that grows downwards
_WRAP = 30  # characters per line in a node
_LEGEND = 900  # width of the legend
_NARROW = 400  # the same in a narrow picture
_FIGURES = 26  # characters that a live node needs for its figures
_RATE = 10  # characters that a live edge needs for its rate

STYLE = """
.crown-tree { --bg: #ffffff; --ink: #1b2430; --muted: #64707d; --line: #94a0ad; --node: #f3f5f7; --node-line: #aab4bf;
  --connex: #e2efff; --connex-line: #1c6dd0; --output: #0b4f9e; --general-line: #b08400; --bag-line: #7a49c6;
  --exists: #1f8a58; --anti: #c23b2c;
  font: 12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
@media (prefers-color-scheme: dark) { .crown-tree { --bg: #12171d; --ink: #e4e9ee; --muted: #93a0ad; --line: #6c7986;
  --node: #1d252d; --node-line: #55616d; --connex: #14304f; --connex-line: #5aa2f5; --output: #9ccbff;
  --general-line: #d8ac33; --bag-line: #a987e8; --exists: #5cc796; --anti: #f08778; } }
.crown-tree .ground { fill: var(--bg); }
.crown-tree text { fill: var(--ink); }
.crown-tree .name { font-weight: 700; }
.crown-tree .muted { fill: var(--muted); }
.crown-tree .output { fill: var(--output); font-weight: 700; }
.crown-tree .box { fill: var(--node); stroke: var(--node-line); stroke-width: 1.2; }
.crown-tree .connex { fill: var(--connex); stroke: var(--connex-line); stroke-width: 1.8; }
.crown-tree .bag { stroke: var(--bag-line); }
.crown-tree .generalised { stroke: var(--general-line); stroke-dasharray: 6 3; }
.crown-tree .inner { fill: none; stroke: var(--bag-line); stroke-width: 0.8; }
.crown-tree .edge { fill: none; stroke: var(--line); stroke-width: 1.6; }
.crown-tree .edge.optional { stroke-dasharray: 2 4; }
.crown-tree .edge.exists { stroke: var(--exists); stroke-dasharray: 6 4; }
.crown-tree .edge.anti { stroke: var(--anti); stroke-dasharray: 6 4; }
.crown-tree .plate { fill: var(--bg); stroke: var(--line); stroke-width: 0.8; }
.crown-tree .plate.exists { stroke: var(--exists); } .crown-tree .plate.anti { stroke: var(--anti); }
.crown-tree .key { fill: var(--ink); font-size: 11px; }
.crown-tree .rate { fill: var(--muted); font-size: 11px; } .crown-tree .figures { font-size: 11px; }
.crown-tree .trough { fill: var(--node-line); opacity: 0.35; } .crown-tree .work { fill: var(--connex-line); }
"""


@dataclass
class _Box:
    """A node with its text and, after layout, its centre. `mark` identifies it in a live picture."""

    facts: NodeFacts
    mark: str
    variable_lines: list[list[str]]
    filter: str
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    level: int = 0


def plan_svg(plan: Plan, *, live: bool = False, narrow: bool = False) -> str:
    """Return a self-contained picture of all trees of a plan, one below the other, with a legend.

    A `narrow` picture is no wider than its trees. A `live` one is narrow too, and has room for figures, which a script
    fills in: each node is a group with `data-node="$1/0"` (its stage and its place in the tree) with texts of class
    `figures`, each edge to a parent has `data-edge` with the child's mark and a text of class `rate`.
    """
    stages = [stage for stage in every_stage(plan) if isinstance(stage, TreeStage)]
    facts = [node_facts(plan, stage) for stage in stages]
    arranged = [_arrange(nodes, stage.id if live else "") for nodes, stage in zip(facts, stages, strict=True)]
    titles = [with_columns(f"{stage.id}: {stage_text(stage)}", plan) if len(stages) > 1 else "" for stage in stages]
    widest = max([0.0, *(_extent(boxes) for boxes, _ in arranged), *map(_text_width, titles)])
    room = max(widest, _NARROW) if live or narrow else _LEGEND
    legend, legend_width, legend_height = _legend([node for nodes in facts for node in nodes], room)
    inner = max(legend_width, widest)

    parts: list[str] = []
    top = float(_PADDING)
    for title, (boxes, downwards) in zip(titles, arranged, strict=True):
        if title:
            parts.append(f'<text class="name" x="{_PADDING}" y="{top + 14:.0f}">{escape(title)}</text>')
            top += 30
        left = _PADDING + (inner - _extent(boxes)) / 2
        for box in boxes:
            box.x, box.y = box.x + left, box.y + top
        parts += _draw(boxes, downwards)
        top = max(box.y + box.height / 2 for box in boxes) + 30
    parts.append(f'<g transform="translate({_PADDING} {top:.1f})">{legend}</g>')
    width, height = inner + 2 * _PADDING, top + legend_height + _PADDING
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="crown-tree" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="The tree of the plan">'
        f'<style>{STYLE}</style><rect class="ground" width="100%" height="100%" rx="10"/>{"".join(parts)}</svg>'
    )


def _extent(boxes: list[_Box]) -> float:
    """Return the width of a laid out tree, keys on edges included."""
    return max(box.x + max(box.width, _plate_width(box)) / 2 for box in boxes)


def _arrange(facts: list[NodeFacts], live: str) -> tuple[list[_Box], bool]:
    """Boxes with their places, from (0, 0) on, and whether the tree grows downwards; `live` is the stage of marks."""
    marks = [f"{live}/{place}" if live else "" for place in range(len(facts))]
    down, right = ([_box(node, mark) for node, mark in zip(facts, marks, strict=True)] for _ in range(2))
    _place(down, downwards=True)
    _place(right, downwards=False)
    if _extent(down) <= max(_WIDEST, _extent(right)):
        return down, True
    return right, False


def _place(boxes: list[_Box], *, downwards: bool) -> None:
    """Set all centres: across the direction of growth by contours, along it by level."""
    for box in boxes:
        if box.facts.parent is not None:
            box.level = boxes[box.facts.parent].level + 1
    centres = _centres(boxes, downwards=downwards)
    depths = _depths(boxes, downwards=downwards)
    for box, centre in zip(boxes, centres, strict=True):
        if downwards:
            box.x, box.y = centre, depths[box.level] + box.height / 2
        else:
            box.x, box.y = depths[box.level] + box.width / 2, centre


_Contour: TypeAlias = list[tuple[float, float]]  # the outermost edges on each level, from a node's own centre


def _centres(boxes: list[_Box], *, downwards: bool) -> list[float]:
    """Return the centre of each box across the direction of growth; the first edge is at 0."""
    children: list[list[int]] = [[] for _ in boxes]
    for number, box in enumerate(boxes):
        if box.facts.parent is not None:
            children[box.facts.parent].append(number)

    def across(box: _Box) -> float:
        # The key of the edge is drawn next to the child, so its plate needs room when children are
        # side by side.
        return max(box.width, _plate_width(box)) if downwards else box.height

    offset = [0.0] * len(boxes)  # from the parent's centre
    contours: list[_Contour] = [[] for _ in boxes]
    for number in reversed(range(len(boxes))):
        gap = _GAP if downwards else _GAP * 0.6
        centres, merged = _side_by_side([contours[child] for child in children[number]], gap)
        middle = (centres[0] + centres[-1]) / 2 if centres else 0.0
        for child, centre in zip(children[number], centres, strict=True):
            offset[child] = centre - middle
        half = across(boxes[number]) / 2
        contours[number] = [(-half, half), *((left - middle, right - middle) for left, right in merged)]

    found = [0.0] * len(boxes)
    for number, box in enumerate(boxes):
        parent = box.facts.parent
        found[number] = found[parent] + offset[number] if parent is not None else -min(left for left, _ in contours[0])
    return found


def _side_by_side(subtrees: list[_Contour], gap: float) -> tuple[list[float], _Contour]:
    """Where the centres of subtrees go so that no two are closer than `gap`, and the contour of all."""
    centres: list[float] = []
    merged: _Contour = []
    for contour in subtrees:
        common = list(zip(merged, contour, strict=False))
        centre = max((right + gap - left for (_, right), (left, _) in common), default=0.0)
        moved = [(left + centre, right + centre) for left, right in contour]
        joint = [(a[0], b[1]) for a, b in zip(merged, moved, strict=False)]
        longer = merged if len(merged) > len(moved) else moved
        merged = joint + longer[len(joint) :]
        centres.append(centre)
    return centres, merged


def _depths(boxes: list[_Box], *, downwards: bool) -> list[float]:
    """Return where each level begins along the direction of growth."""
    depths: list[float] = []
    position = 0.0
    for level in range(max(box.level for box in boxes) + 1):
        own = [box for box in boxes if box.level == level]
        if level:
            down = 88 if own[0].mark else 70
            position += down if downwards else max(_plate_width(box) for box in own) + 64
        depths.append(position)
        position += max(box.height if downwards else box.width for box in own)
    return depths


def _box(node: NodeFacts, mark: str) -> _Box:
    shown = node.variables if node.kind != "generalised" or node.name != f"[{', '.join(node.variables)}]" else ()
    lines = _wrap(shown)
    kept = "" if not node.filter else "where " + node.filter
    if len(kept) > _WRAP + 10:
        kept = kept[: _WRAP + 9] + "…"
    title = len(node.name) + (2 + len(_source(node)) if _source(node) else 0)
    widths = [title * 1.02, *(len(", ".join(line)) * 1.02 for line in lines), len(kept), _FIGURES if mark else 0]
    rows = 1 + len(lines) + (1 if kept else 0) + (1.5 if mark else 0)
    width = max(widths) * _CHARACTER + 2 * _PADDING + (6 if node.kind == "bag" else 0)
    return _Box(node, mark, lines, kept, max(56.0, width), rows * _LINE + 14)


def _source(node: NodeFacts) -> str:
    return "" if node.source == node.name else node.source


def _wrap(variables: Iterable[str]) -> list[list[str]]:
    lines: list[list[str]] = []
    for variable in variables:
        if lines and len(", ".join([*lines[-1], variable])) <= _WRAP:
            lines[-1].append(variable)
        else:
            lines.append([variable])
    return lines


def _draw(boxes: list[_Box], downwards: bool) -> list[str]:
    edges: list[str] = []
    plates: list[str] = []
    for box in boxes:
        if box.facts.parent is None:
            continue
        parent = boxes[box.facts.parent]
        # A curve ends its bend before the plate with the key begins, so that no plate sits on a
        # slope.
        if downwards:
            start, end = (parent.x, parent.y + parent.height / 2), (box.x, box.y - box.height / 2)
            turn = end[1] - (46 if box.mark else 30)
            bend = (start[1] + turn) / 2
            curve = f"C{start[0]:.1f} {bend:.1f} {end[0]:.1f} {bend:.1f} {end[0]:.1f} {turn:.1f} L"
            plate = (box.x, end[1] - (28 if box.mark else 20))
        else:
            start, end = (parent.x + parent.width / 2, parent.y), (box.x - box.width / 2, box.y)
            turn = end[0] - _plate_width(box) - 22
            bend = (start[0] + turn) / 2
            curve = f"C{bend:.1f} {start[1]:.1f} {bend:.1f} {end[1]:.1f} {turn:.1f} {end[1]:.1f} L"
            plate = (end[0] - 12 - _plate_width(box) / 2, box.y)
        kind = box.facts.edge
        edges.append(
            f'<path class="edge {kind}"{_marked("edge", box)} '
            f'd="M{start[0]:.1f} {start[1]:.1f} {curve} {end[0]:.1f} {end[1]:.1f}"/>'
        )
        plates.append(_plate(box, *plate))
    return [*edges, *plates, *(_node(box) for box in boxes)]


def _plate_text(node: NodeFacts) -> str:
    word = {"join": "", "exists": "exists ", "anti": "not exists ", "optional": "optional "}[node.edge]
    return (word + ", ".join(node.key)).strip() or "cross"


def _plate_width(box: _Box) -> float:
    if box.facts.parent is None:
        return 0.0
    return max(len(_plate_text(box.facts)), _RATE if box.mark else 0) * _CHARACTER * 0.93 + 14


def _marked(what: str, box: _Box) -> str:
    return f' data-{what}="{escape(box.mark)}"' if box.mark else ""


def _plate(box: _Box, x: float, y: float) -> str:
    width, half = _plate_width(box), 17 if box.mark else 9
    place = f'x="{x - width / 2:.1f}" y="{y - half:.1f}" width="{width:.1f}" height="{2 * half}"'
    text = escape(_plate_text(box.facts))
    above = 5 if box.mark else 0
    drawn = (
        f'<rect class="plate {box.facts.edge}" {place} rx="9"/>'
        f'<text class="key" x="{x:.1f}" y="{y + 4 - above:.1f}" text-anchor="middle">{text}</text>'
    )
    if box.mark:
        drawn += f'<text class="rate"{_marked("rate", box)} x="{x:.1f}" y="{y + 12:.1f}" text-anchor="middle"></text>'
    return drawn


def _node(box: _Box) -> str:
    node = box.facts
    left, top = box.x - box.width / 2, box.y - box.height / 2
    tip = f"{node.name}({', '.join(node.variables)})"
    tip += (f" = {node.views}" if node.views else "") + (f" where {node.filter}" if node.filter else "")
    shape = _shape(node, left, top, box.width, box.height)
    parts = [f"<g{_marked('node', box)}><title>{escape(tip)}</title>", shape]
    baseline = top + _LINE + 2
    title = f'<tspan class="name">{escape(node.name)}</tspan>'
    if _source(node):
        title += f'<tspan class="muted" dx="9">{escape(_source(node))}</tspan>'
    parts.append(_line(box.x, baseline, title))
    for variables in box.variable_lines:
        baseline += _LINE
        words = [f'<tspan class="output">{escape(v)}</tspan>' if v in node.outputs else escape(v) for v in variables]
        parts.append(_line(box.x, baseline, ", ".join(words)))
    if box.filter:
        baseline += _LINE
        parts.append(_line(box.x, baseline, f'<tspan class="muted">{escape(box.filter)}</tspan>'))
    if box.mark:
        parts.append(_live(box, left, baseline + _LINE))
    return "".join([*parts, "</g>"])


def _live(box: _Box, left: float, baseline: float) -> str:
    """The room for a live node's figures, and the bar of its share of the work, of which a script sets the width."""
    inside = box.width - 2 * _PADDING
    bar = f'x="{left + _PADDING:.1f}" y="{baseline + 7:.1f}" height="4" rx="2"'
    return (
        f'<text class="figures muted" x="{box.x:.1f}" y="{baseline + 1:.1f}" text-anchor="middle"></text>'
        f'<rect class="trough" {bar} width="{inside:.1f}"/>'
        f'<rect class="work" {bar} width="0" data-full="{inside:.1f}"/>'
    )


def _shape(node: NodeFacts, left: float, top: float, width: float, height: float) -> str:
    kinds = ["box"] + (["connex"] if node.connex else []) + ([node.kind] if node.kind != "relation" else [])
    radius = height / 2 if node.kind == "generalised" else 6
    place = f'x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:.1f}"'
    shape = f'<rect class="{" ".join(kinds)}" {place}/>'
    if node.kind == "bag":
        shape += (
            f'<rect class="inner" x="{left + 3:.1f}" y="{top + 3:.1f}" width="{width - 6:.1f}" '
            f'height="{height - 6:.1f}" rx="4"/>'
        )
    return shape


def _line(x: float, y: float, content: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{content}</text>'


def _legend(shown: list[NodeFacts], room: float) -> tuple[str, float, float]:
    """Only what occurs in the picture; returns the drawing, its width and its height."""
    kinds = {node.kind for node in shown}
    edges = {node.edge for node in shown if node.parent is not None}
    items: list[tuple[str, str]] = []

    def swatch(kind: str, connex: bool) -> str:
        node = NodeFacts("", kind, "", (), frozenset(), (), "join", connex, None, "", "", "sums")  # type: ignore[arg-type]
        return _shape(node, 0, 0, 30, 18)

    if any(node.connex for node in shown):
        items.append((swatch("relation", True), "carries output (connex)"))
    if hidden := {node.carries for node in shown if node.kind == "relation" and not node.connex}:
        items.append((swatch("relation", False), _hidden_text(hidden)))
    if "generalised" in kinds:
        items.append((swatch("generalised", False), "generalised: keys its children share"))
    if "bag" in kinds:
        items.append((swatch("bag", False), "computed by an earlier stage"))
    if "join" in edges:
        items.append(('<path class="edge join" d="M0 9 L30 9"/>', "join; the key is on the edge"))
    if "optional" in edges:
        items.append(('<path class="edge optional" d="M0 9 L30 9"/>', "a match, or NULLs"))
    if "exists" in edges:
        items.append(('<path class="edge exists" d="M0 9 L30 9"/>', "a match must exist"))
    if "anti" in edges:
        items.append(('<path class="edge anti" d="M0 9 L30 9"/>', "no match may exist"))
    if any(node.outputs for node in shown):
        items.append(('<text class="output" x="15" y="13" text-anchor="middle">abc</text>', "output variable"))
    parts, x, y, widest = [], 0.0, 0.0, 0.0
    for drawing, words in items:
        width = 38 + _text_width(words) + 22
        if x > 0 and x + width > room:
            x, y = 0.0, y + 26
        label = f'<text class="muted" x="38" y="13">{escape(words)}</text>'
        parts.append(f'<g transform="translate({x:.1f} {y:.1f})">{drawing}{label}</g>')
        x += width
        widest = max(widest, x)
    return "".join(parts), widest, y + 26


def _hidden_text(carried: set[Carried]) -> str:
    """The purpose of nodes without output variables."""
    counted = {"sums": "counts and sums", "copies": "counts"}
    found = [words for key, words in counted.items() if key in carried]
    if not found:
        return "only decides existence"
    return f"carries {found[0]}{', or decides existence' if 'existence' in carried else ''}"


def _text_width(text: str) -> float:
    return len(text) * _CHARACTER
