"""The report in one plain sentence, and in a few totals."""

from __future__ import annotations

from crown.ir.plan import BagStage, Plan, TreeStage, every_stage
from crown.plan.explain.report import ConjunctionReport, Report
from crown.wording import counted

RECURSION = "WITH RECURSIVE"


def sentence(report: Report) -> str:
    """Return the cost of the plan's worst tree, in words that need no theory."""
    if not report.conjunctions:
        return "The result is computed from its tables as they change."
    return f"A change {_update(report)}; {_memory(report)}; {_reading(report)}."


def _update(report: Report) -> str:
    if any(construct.name == RECURSION for construct in report.constructs):
        return "runs in rounds until no new rows appear, and takes time proportional to all rows that it derives"
    if _loses(report, "quadratic in the worst case"):
        return "may take time proportional to the tables, because it may be compared with all of their rows"
    costs = {_declared(conjunction) for conjunction in report.conjunctions}
    if costs == {"O(1)"}:
        text = "takes constant time"
    elif costs <= {"O(1)", "O(λ)"}:
        text = f"takes time proportional to λ (which is 1 {_when_constant(report)})"
    else:
        text = f"takes {max(costs, key=len)} steps"
    return text + (", plus one step for each result row that it changes" if _loses(report, "updates") else "")


def _when_constant(report: Report) -> str:
    in_order = all(
        guarantee.update == "O(1)"
        for conjunction in report.conjunctions
        for guarantee in conjunction.guarantees
        if guarantee.profile == "fifo"
    )
    return "if rows are only inserted" + (" or leave in the order in which they arrived" if in_order else "")


def _memory(report: Report) -> str:
    if _loses(report, "quadratic space"):
        return "memory may grow with the square of the tables"
    largest = max((conjunction.space for conjunction in report.conjunctions), key=len)
    if largest != "O(N)":
        return f"memory may grow to {largest}"
    return "memory grows with the tables" + (
        " and with the stored part of the result" if _loses(report, "space") else ""
    )


def _reading(report: Report) -> str:
    # A projection repeats rows ("per distinct row"), but skips none.
    skips = any("delay" in loss and "per distinct row" not in loss for loss in _losses(report))
    if not skips and all(conjunction.delay.startswith("O(1)") for conjunction in report.conjunctions):
        return "the result is read row by row, without searching"
    return "reading the result may visit rows that are not in it"


def _loses(report: Report, word: str) -> bool:
    return any(word in loss for loss in _losses(report))


def _losses(report: Report) -> list[str]:
    return [construct.loses for construct in report.constructs if construct.loses]


def totals(plan: Plan, report: Report) -> list[tuple[str, str, str]]:
    """Return label, figure and remark of the totals over all trees."""
    stages = every_stage(plan)
    trees = sum(isinstance(stage, TreeStage) for stage in stages)
    bags = sum(isinstance(stage, BagStage) for stage in stages)
    others = len(stages) - trees - bags
    also = [counted(number, noun) for number, noun in ((bags, "bag"), (others, "further stage")) if number]
    more = "; constructs store more" if _loses(report, "space") else ""
    spaces = sorted({conjunction.space for conjunction in report.conjunctions}, key=len)
    return [
        ("trees", str(trees), ", ".join(also) or "and nothing else"),
        ("tables", str(len(plan.tables)), "that the query reads"),
        ("state", spaces[-1] if spaces else "none", f"of all trees together, N rows in all tables{more}"),
    ]


def _declared(conjunction: ConjunctionReport) -> str:
    """The cost with the profiles that the tables declare; else that of arbitrary updates."""
    by_profile = {guarantee.profile: guarantee.update for guarantee in conjunction.guarantees}
    return by_profile.get("declared", by_profile.get("arbitrary", "O(1)"))
