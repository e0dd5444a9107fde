"""Explain: what is guaranteed and why, the tree, and what else was considered; as text, picture, page and JSON."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from crown.ir import serial
from crown.ir.plan import Plan, TreeStage, every_stage
from crown.plan.explain.cells import cost_lines
from crown.plan.explain.labels import with_columns
from crown.plan.explain.page import page_html
from crown.plan.explain.picture import plan_svg
from crown.plan.explain.report import ConjunctionReport, Distribution, Report
from crown.plan.explain.summary import sentence
from crown.plan.explain.words import (
    NodeFacts,
    added_text,
    class_text,
    distinct_constructs,
    guarantees,
    load_text,
    node_facts,
    stage_text,
    tree_text,
)

_WIDTH = 110
_LABEL = 17


@dataclass(frozen=True)
class Explanation:
    """A plan explained. `print` it, or ask for the picture (`svg`), the page (`html`) or the data (`json`)."""

    plan: Plan
    report: Report
    reading: Mapping[str, str] = field(default_factory=dict)  # what calls of a view in this process cost

    def __str__(self) -> str:
        first = textwrap.wrap(sentence(self.report), _WIDTH, break_long_words=False)
        blocks = ["\n".join(first), *self._cards(), _cells(self.plan, self.report.distribution)]
        if self.report.constructs or len(self.plan.stages) > 1:
            blocks.append(_constructs(self.report))
        for conjunction in self.report.conjunctions:
            blocks += [_tree(self.plan, self._stage(conjunction)), _alternatives(conjunction)]
        if self.report.constructs or len(self.plan.stages) > 1:
            blocks.append(_stages(self.plan))
        blocks.append(_reading(self.reading))
        return with_columns("\n\n".join(block for block in blocks if block), self.plan)

    def _cards(self) -> list[str]:
        """Return the card of each tree; trees with the same guarantees share one."""
        stages: dict[str, list[str]] = {}
        for conjunction in self.report.conjunctions:
            stages.setdefault(_card(conjunction), []).append(conjunction.stage)
        several = len(self.report.conjunctions) > 1
        titles = [f"GUARANTEE of {', '.join(trees)}" if several else "GUARANTEE" for trees in stages.values()]
        return [f"{title}\n{card}" for title, card in zip(titles, stages, strict=True)]

    def svg(self) -> str:
        """Return the trees as one picture, complete in itself; it follows the reader's light or dark setting."""
        return plan_svg(self.plan)

    def html(self, result: Iterable[Sequence[object]] | None = None) -> str:
        """One self-contained page: picture, card, SQL, alternatives; with `result` also these rows of the view."""
        return page_html(self.plan, self.report, result)

    def json(self) -> str:
        """Report and plan for machines."""
        data = {"report": dataclasses.asdict(self.report), "plan": json.loads(serial.to_json(self.plan))}
        return json.dumps(data, indent=2, ensure_ascii=False)

    def _repr_html_(self) -> str:
        """Shown by notebooks; without the page's styles, which would reach beyond it."""
        return f"{self.svg()}<pre>{escape(str(self))}</pre>"

    def _stage(self, conjunction: ConjunctionReport) -> TreeStage:
        stage = self.plan.by_id[conjunction.stage]
        assert isinstance(stage, TreeStage)
        return stage


def explain(plan: Plan, report: Report, reading: Mapping[str, str] | None = None) -> Explanation:
    """Explains what the planner chose."""
    return Explanation(plan, report, reading or {})


def _card(conjunction: ConjunctionReport) -> str:
    lines = _entry("class", [class_text(conjunction)])
    lines += _entry("height", [str(conjunction.height)])
    lines += _entry("space", [conjunction.space])
    lines += _entry("delay", [conjunction.delay])
    lines += _entry(
        "update", [f"{update:<6} {profiles}: {why}" for update, profiles, why in guarantees(conjunction)], hanging=7
    )
    lines += _entry("also maintained", [added_text(a.variable, a.determined_by) for a in conjunction.added])
    lines += _entry(
        "bags",
        [f"{bag.stage}: {', '.join(bag.atoms)} over {', '.join(bag.variables)}" for bag in conjunction.bags],
    )
    lines += _entry("why not better", conjunction.why_not_better)
    lines += _entry("to make it better", conjunction.improvements)
    return "\n".join(lines)


def _cells(plan: Plan, distribution: Distribution) -> str:
    lines = ["CELLS"]
    if distribution.cells > 1:
        shares = " x ".join(f"{d}: {s}" for d, s in zip(distribution.dimensions, distribution.shares, strict=True))
        lines += _entry("cells", [f"{distribution.cells} = {shares}" if shares else str(distribution.cells)])
        lines += _entry(
            "rows go to",
            [
                f"{load_text(a, distribution)}: {_copies(a.copies)}, a cell holds {a.fraction:.0%}"
                for a in distribution.loads
            ],
        )
    disjoint = "disjoint" if distribution.disjoint else "not disjoint"
    lines += _entry("outputs", [f"{disjoint}: {distribution.why}"])
    lines += _entry("merged by", [", ".join(distribution.merge)] if distribution.merge else [])
    for label, values in cost_lines(plan, distribution.cells).items():
        lines += _entry(label, values)
    return "\n".join(lines)


def _copies(count: int) -> str:
    return "one cell" if count == 1 else f"{count} cells"


def _constructs(report: Report) -> str:
    if not report.constructs:
        return ""
    lines = ["CONSTRUCTS"]
    constructs = distinct_constructs(report)
    names = [construct.name for construct in constructs]
    for construct in constructs:
        loses = f"; loses {construct.loses}" if construct.loses else ""
        lines += _entry(construct.name, [f"{construct.cost}{loses}"], width=max(_LABEL, *map(len, names)))
    return "\n".join(lines)


def _tree(plan: Plan, stage: TreeStage) -> str:
    """The tree with box characters; each edge has its key, each node the definition of its semi-join view."""
    facts = node_facts(plan, stage)
    left: list[tuple[str, NodeFacts]] = []

    def draw(position: int, prefix: str, branch: str, below: str) -> None:
        node = facts[position]
        left.append((f"{prefix}{branch}{_node(node)}", node))
        children = [c for c, other in enumerate(facts) if other.parent == position]
        for number, child in enumerate(children):
            last = number == len(children) - 1
            edge = {"join": "", "exists": " exists", "anti": " not exists", "optional": " optional"}[facts[child].edge]
            label = f"({', '.join(facts[child].key)}){edge}"
            line = "╌" if edge else "─"
            draw(child, prefix + below, f"{'└' if last else '├'}{line}{label}{line} ", "   " if last else "│  ")

    draw(0, "  ", "", "")
    width = min(max(len(text) for text, _ in left), 72)
    legend = "● has output, ○ does not; [..] generalised; edges show the key; after = the semi-join view of the node"
    lines = [f"TREE of {stage.id}", *textwrap.wrap(legend, _WIDTH, initial_indent="  ", subsequent_indent="  ")]
    for text, node in left:
        kept = f"  where {node.filter}" if node.filter else ""
        view = f"   = {node.views}" if node.views else ""
        lines.append(f"{text:<{width}}{view}{kept}".rstrip())
    return "\n".join(lines)


def _node(node: NodeFacts) -> str:
    mark = "●" if node.connex else "○"
    if node.kind == "generalised":
        return f"{mark} {node.name}"
    source = f" : {node.source}" if node.source and node.source != node.name else ""
    return f"{mark} {node.name}({', '.join(node.variables)}){source}"


def _alternatives(conjunction: ConjunctionReport) -> str:
    if len(conjunction.candidates) < 2:
        return ""
    how = "all of them" if conjunction.exhaustive else "a bounded search"
    lines = [f"ALTERNATIVES  ({conjunction.considered} trees compared, {how}; cost = depth times updates)"]
    lines.append("    height     cost  tree")
    for number, candidate in enumerate(conjunction.candidates):
        mark = "→" if number == 0 else " "
        lines.append(f"  {mark} {candidate.height:>6} {candidate.cost:>8.4g}  {tree_text(candidate.nodes)}")
    return "\n".join(lines)


def _stages(plan: Plan) -> str:
    if len(plan.stages) < 2:
        return ""
    stages = every_stage(plan)
    width = max(len(stage.id) for stage in stages)
    return "\n".join(["STAGES", *(f"  {stage.id:<{width}}  {stage_text(stage)}" for stage in stages)])


def _reading(reading: Mapping[str, str]) -> str:
    if not reading:
        return ""
    return "\n".join(["READING", *(line for call, cost in reading.items() for line in _entry(call, [cost]))])


def _entry(label: str, values: Sequence[str], *, hanging: int = 2, width: int = _LABEL) -> list[str]:
    """Label on the left, one wrapped paragraph per value on the right."""
    lines: list[str] = []
    for value in values:
        first = label if not lines else ""
        lines += textwrap.wrap(
            value,
            _WIDTH,
            initial_indent=f"  {first:<{width}}  ",
            subsequent_indent=" " * (width + 4 + hanging),
            break_long_words=False,
        )
    return lines
