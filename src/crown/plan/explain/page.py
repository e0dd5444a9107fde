"""Explain as one self-contained HTML page: no script, no font and no picture from elsewhere."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from crown.ir.plan import Plan, every_stage
from crown.plan.explain.cells import cost_lines
from crown.plan.explain.labels import with_columns
from crown.plan.explain.picture import plan_svg
from crown.plan.explain.report import ConjunctionReport, Distribution, Report
from crown.plan.explain.summary import sentence, totals
from crown.plan.explain.words import (
    added_text,
    class_text,
    distinct_constructs,
    guarantees,
    load_text,
    stage_text,
    tree_text,
)

RESULT_ROWS = 500
_KEYWORDS = (
    "select|distinct|from|where|group|by|having|order|limit|offset|join|inner|left|right|full|outer|cross|natural|on|using"
    "|as|and|or|not|in|exists|is|null|like|between|case|when|then|else|end|union|all|except|intersect|with|recursive|over|partition"
    "|count|sum|avg|min|max"
)

_STYLE = """
:root { color-scheme: light dark;
  --page: #eef1f4; --panel: #ffffff; --ink: #1b2430; --muted: #5d6975; --rule: #dde2e8;
  --accent: #1c6dd0; --good: #14794a; --good-ground: #e0f5ea; --fair: #8a5a00; --fair-ground: #fff1d0;
  --code: #f3f5f7; }
@media (prefers-color-scheme: dark) { :root { --page: #0b0f13; --panel: #12171d; --ink: #e4e9ee; --muted: #93a0ad;
  --rule: #29323b; --accent: #5aa2f5; --good: #7fdcae; --good-ground: #12392a; --fair: #f2c766; --fair-ground: #3d2f0c;
  --code: #1a2129; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 28px 20px 60px; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1240px; margin: 0 auto; display: grid; gap: 18px; }
h1 { font-size: 22px; line-height: 1.35; margin: 0; letter-spacing: -0.01em; max-width: 60em; }
header p { margin: 0 0 4px; } h2 { font-size: 13px; text-transform: uppercase;
  letter-spacing: 0.08em; color: var(--muted); margin: 0 0 12px; font-weight: 600; }
section { background: var(--panel); border: 1px solid var(--rule); border-radius: 12px;
  padding: 20px 22px; min-width: 0; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 14px; margin: 0 0 18px; }
.facts:last-child { margin-bottom: 0; }
.facts div { border-left: 3px solid var(--accent); padding-left: 12px; }
.facts dt { color: var(--muted); font-size: 13px; }
.facts dd { margin: 0; font-size: 19px; font-weight: 650; }
.facts small { display: block; font-size: 13px; font-weight: 400; color: var(--muted); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--muted); font-weight: 600; font-size: 13px; }
th, td { padding: 6px 14px 6px 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
tr:last-child td { border-bottom: 0; } td.number, th.number { text-align: right; width: 5em; }
tr.chosen td { font-weight: 650; }
code, pre, .mono { font-size: 13px;
  font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
pre { margin: 0; background: var(--code); border-radius: 8px; padding: 14px 16px; overflow-x: auto; line-height: 1.55; }
pre.wrapped { white-space: pre-wrap; overflow-wrap: anywhere; }
pre b { color: var(--accent); font-weight: 600; }
.cost { display: inline-block; border-radius: 99px; padding: 1px 11px; font-weight: 650; white-space: nowrap;
  background: var(--fair-ground); color: var(--fair); }
.cost.constant { background: var(--good-ground); color: var(--good); }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 22px; margin-top: 18px; }
h3 { font-size: 14px; margin: 0 0 6px; } ul { margin: 0; padding-left: 20px; } li { margin: 3px 0; }
.scroll { overflow-x: auto; }
.scroll svg { display: block; margin: 0 auto; max-width: 100%; height: auto; min-width: 360px; }
.muted { color: var(--muted); }
"""


def page_html(
    plan: Plan,
    report: Report,
    result: Iterable[Sequence[Any]] | None,
    *,
    headline: str | None = None,
    lead: Iterable[tuple[str, str]] = (),
    style: str = "",
) -> str:
    """Return the page; `result` are rows in the order of the plan's columns, of which the first ones are shown.

    `lead` are custom sections, as titles and HTML, that come first, with their own `headline` and `style`.
    """
    several = len(report.conjunctions) > 1
    head = f"<p class=muted>{_headline(report)}</p><h1>{escape(sentence(report))}</h1>"
    sections = [f"<header>{head if headline is None else f'<h1>{escape(headline)}</h1>'}</header>"]
    sections += [_section(title, content) for title, content in lead]
    sections.append(
        _section("Tree" + ("s" if several else ""), f'<div class="scroll">{plan_svg(plan, narrow=True)}</div>')
    )
    if several or len(plan.stages) > 1:
        sections.append(_section("Total", _facts(totals(plan, report))))
    sections += _shared("Guarantee", [(c.stage, _card(c)) for c in report.conjunctions])
    query = len(sections)  # whose place is here
    sections += _shared(
        "Alternatives", [(c.stage, _alternatives(c)) for c in report.conjunctions if len(c.candidates) > 1]
    )
    if report.constructs:
        rows = [[escape(c.name), escape(c.cost), escape(c.loses or "nothing")] for c in distinct_constructs(report)]
        sections.append(_section("Constructs", _table(["construct", "cost", "what it loses"], rows)))
    sections.append(_section("Cells", _cells(plan, report.distribution)))
    if len(plan.stages) > 1:
        rows = [[f"<code>{escape(s.id)}</code>", escape(stage_text(s))] for s in every_stage(plan)]
        sections.append(_section("Stages", _table(["stage", "what it does"], rows)))
    sections = [with_columns(section, plan) for section in sections]
    sections.insert(query, _section("Query", f'<pre class="wrapped">{_highlight(plan.sql)}</pre>'))
    if result is not None:
        sections.append(_section("Result", _result(plan, result)))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Crown: plan explained</title>'
        f"<style>{_STYLE}{style}</style></head><body><main>{''.join(sections)}</main></body></html>"
    )


def _headline(report: Report) -> str:
    classes = list(dict.fromkeys(c.query_class for c in report.conjunctions))
    height = max((c.height for c in report.conjunctions), default=0)
    return escape(f"{' and '.join(classes)}, height {height}".capitalize())


def _shared(words: str, parts: Sequence[tuple[str, str]]) -> list[str]:
    """Return a section for each part; trees with the same content share one."""
    trees: dict[str, list[str]] = {}
    for stage, content in parts:
        trees.setdefault(content, []).append(stage)
    several = len(parts) > 1
    return [
        _section(f"{words} of {', '.join(stages)}" if several else words, content) for content, stages in trees.items()
    ]


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


def _card(conjunction: ConjunctionReport) -> str:
    detail = class_text(conjunction).removeprefix(conjunction.query_class).lstrip(", ")
    facts = [
        ("class", conjunction.query_class, detail),
        ("height", str(conjunction.height), "relations on the longest path"),
        ("space", conjunction.space, "N rows in all tables"),
        ("delay", conjunction.delay, "between two results"),
    ]
    rows = [[escape(profiles), _cost(update), escape(why)] for update, profiles, why in guarantees(conjunction)]
    lists = [
        ("Why not better", conjunction.why_not_better),
        ("What would make it better", conjunction.improvements),
        ("Also maintained", [added_text(a.variable, a.determined_by) for a in conjunction.added]),
        (
            "Bags",
            [
                f"{b.stage}: {', '.join(b.atoms)} over {', '.join(b.variables)}, width {b.width}"
                for b in conjunction.bags
            ],
        ),
    ]
    columns = "".join(
        f"<div><h3>{title}</h3><ul>{''.join(f'<li>{escape(v)}</li>' for v in values)}</ul></div>"
        for title, values in lists
        if values
    )
    return f"{_facts(facts)}{_table(['updates', 'cost of one', 'because'], rows)}" + (
        f'<div class="columns">{columns}</div>' if columns else ""
    )


def _facts(facts: Sequence[tuple[str, str, str]]) -> str:
    cells = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for label, value, note in facts
    )
    return f'<dl class="facts">{cells}</dl>'


def _cost(cost: str) -> str:
    return f'<span class="cost{" constant" if cost == "O(1)" else ""}">{escape(cost)}</span>'


def _alternatives(conjunction: ConjunctionReport) -> str:
    how = "all of them" if conjunction.exhaustive else "a bounded search"
    rows = "".join(
        f'<tr{" class=chosen" if number == 0 else ""}><td class="number">{candidate.height}</td>'
        f'<td class="number">{candidate.cost:.4g}</td><td class="mono">{escape(tree_text(candidate.nodes))}</td></tr>'
        for number, candidate in enumerate(conjunction.candidates)
    )
    return (
        f'<p class="muted">{conjunction.considered} compared, {how}. The first is the plan\'s; cost is the sum '
        f'of depth times updates.</p><div class="scroll"><table><tr><th class="number">height</th>'
        f'<th class="number">cost</th><th>tree</th></tr>{rows}</table></div>'
    )


def _cells(plan: Plan, distribution: Distribution) -> str:
    verdict = "disjoint" if distribution.disjoint else "not disjoint"
    text = f"<p>The cells' outputs are <strong>{verdict}</strong>: {escape(distribution.why)}</p>"
    if distribution.merge:
        text += f"<p>They are merged by {escape(', '.join(distribution.merge))}.</p>"
    if distribution.cells == 1:
        return text
    shares = " x ".join(f"{d}: {s}" for d, s in zip(distribution.dimensions, distribution.shares, strict=True))
    rows = [
        [f"<code>{escape(load_text(a, distribution))}</code>", str(a.copies), f"{a.fraction:.0%}"]
        for a in distribution.loads
    ]
    summary = f"<p><strong>{distribution.cells}</strong> cells = {escape(shares)}</p>"
    costs = [
        f"<p>{escape(label.capitalize())}: {escape('; '.join(values))}.</p>"
        for label, values in cost_lines(plan, distribution.cells).items()
    ]
    return summary + text + _table(["rows of", "go to cells", "share in one cell"], rows) + "".join(costs)


def _result(plan: Plan, result: Iterable[Sequence[Any]]) -> str:
    rows = list(itertools.islice(result, RESULT_ROWS + 1))
    shown = [[escape("NULL" if value is None else str(value)) for value in row] for row in rows[:RESULT_ROWS]]
    more = f'<p class="muted">The first {RESULT_ROWS} rows.</p>' if len(rows) > RESULT_ROWS else ""
    return f'{more}<div class="scroll">{_table([escape(c.name) for c in plan.columns], shown)}</div>'


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _highlight(sql: str) -> str:
    """Keywords stand out; strings are left alone."""
    words = re.compile(rf"('(?:[^']|'')*')|\b({_KEYWORDS})\b", re.IGNORECASE)
    parts, end = [], 0
    for match in words.finditer(sql):
        parts.append(escape(sql[end : match.start()]))
        parts.append(escape(match[0]) if match[1] else f"<b>{escape(match[0])}</b>")
        end = match.end()
    return "".join([*parts, escape(sql[end:])])
