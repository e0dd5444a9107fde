"""The demonstration's report: the verdict, the figures, and a page with all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from crown import plan as planning
from crown import sql as front_end
from crown.changes import CHANGE_TYPE, INSERT
from crown.demo.charts import STYLE, over_time, ranking
from crown.demo.network import SQL, Network
from crown.demo.pipeline import Answer, DemoProgress
from crown.plan.explain.cells import table_shares
from crown.plan.explain.page import page_html
from crown.plan.explain.text import Explanation, explain
from crown.wording import counted
from crown.workload.footprint import bytes_per_row

WARM_UP = 4  # warm-up batches, in which Spark compiles what the others run
_SHOWN = 25
_CHARTED = 12


@dataclass(frozen=True)
class Verdict:
    """Whether one way to the view's content agrees with Spark's batch SQL."""

    name: str
    missing: int
    extra: int
    rows: int

    @property
    def equal(self) -> bool:
        return not self.missing and not self.extra

    def __str__(self) -> str:
        if self.equal:
            return f"{self.name} equals Spark's batch result, {counted(self.rows, 'row')}"
        return f"{self.name} lacks {counted(self.missing, 'row')} of Spark's batch result and has {self.extra:,} others"


def explained(network: Network, *, cells: int) -> Explanation:
    tables = {**network.static, **network.stream}
    schema = {
        name: pa.schema([field for field in rows.schema if not field.name.startswith("_")])
        for name, rows in tables.items()
    }
    return explain(*planning.plan_with_report(front_end.parse(SQL, schema), cells=cells))


def budget(explanation: Explanation, network: Network, *, cells: int) -> float:
    """Return the bytes that the state will take at most, known before the start: bytes per row times the most rows."""
    sizes = bytes_per_row(explanation.plan)
    copies = {share.table: share.copies for share in table_shares(explanation.plan, cells)}
    rows = {name: table.num_rows for name, table in network.static.items()}
    rows |= {name: _most_rows(changes) for name, changes in network.stream.items()}
    return float(sum(sizes[table.name] * copies[table.name] * rows[table.name] for table in explanation.plan.tables))


def _most_rows(changes: pa.Table) -> int:
    came = pc.equal(changes[CHANGE_TYPE].cast(pa.string()), INSERT).to_numpy()
    return int(np.cumsum(np.where(came, 1, -1)).max(initial=0))


def verdicts(deltas: Answer, expected: Answer, snapshot: Answer) -> tuple[Verdict, ...]:
    """Both ways to the view's content, its summed deltas and its snapshot, against Spark's batch SQL, row by row."""
    return tuple(
        Verdict(name, (expected - answer).total(), (answer - expected).total(), expected.total())
        for name, answer in (("the sum of all deltas", deltas), ("the snapshot", snapshot))
    )


def figures(progress: DemoProgress, recomputing: float) -> list[str]:
    """Return the lines with throughput, the cost of recomputing, and state."""
    rate = progress.updates / progress.seconds
    lines = [
        f"throughput: {progress.updates:,} updates in {progress.seconds:.1f} s, {rate:,.0f} per second, from the start"
        f" of the stream on"
    ]
    warm = progress.history[WARM_UP:]
    if warm:
        seconds = sum(batch.seconds for batch in warm)
        updates = sum(batch.updates for batch in warm)
        each = seconds / len(warm)
        lines.append(
            f"after a warm-up of {WARM_UP} batches: {updates / seconds:,.0f} updates per second, {each:.2f} s per batch"
            f" of {updates / len(warm):,.0f}"
        )
        lines.append(
            f"recomputing instead: Spark's batch SQL takes {recomputing:.2f} s for the final tables,"
            f" {recomputing / each:.1f} times a maintained batch; after each of {progress.batches} batches that is"
            f" {recomputing * progress.batches:.0f} s"
        )
    return lines


def state_line(progress: DemoProgress, budget: float) -> str:
    return (
        f"state: {progress.state_bytes / 1e6:.1f} MB in the engines after the last batch;"
        f" the budget known before the start was {budget / 1e6:.1f} MB"
    )


def say(console: Console, judged: Sequence[Verdict], lines: Sequence[str]) -> None:
    for verdict in judged:
        word = "[green bold]EQUAL[/green bold]" if verdict.equal else "[red bold]DIFFERENT[/red bold]"
        console.print(f"{word}: {verdict}")
    for line in lines:
        console.print(line, soft_wrap=True)


def write_page(
    folder: Path,
    explanation: Explanation,
    progress: DemoProgress,
    judged: Sequence[Verdict],
    lines: Sequence[str],
    budget: float,
) -> Path:
    """Write the page: verdicts, throughput over time, state against the budget, the top of the result, the plan."""
    top = sorted(progress.answer, key=lambda row: (-row[1], row[0]))[:_SHOWN]
    rates = [batch.updates / max(batch.seconds, 1e-3) for batch in progress.history]
    sizes = [batch.bytes / 1e6 for batch in progress.history]
    named = {True: "equal", False: "different"}
    said = "".join(
        f'<p><span class="verdict {named[verdict.equal]}">{named[verdict.equal]}</span>{escape(str(verdict))}</p>'
        for verdict in judged
    )
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines)
    lead = [
        ("Verdict", f"{said}<ul>{listed}</ul>"),
        ("Throughput", over_time(rates, unit="updates per second", early=WARM_UP)),
        ("State", over_time(sizes, unit="MB in the engines", limit=budget / 1e6)),
        ("Top of the result", ranking([(str(row[0]), float(row[1])) for row in top[:_CHARTED]], unit="deliveries")),
    ]
    headline = "The view equals the query" if all(v.equal for v in judged) else "The view differs from the query"
    page = folder / "index.html"
    text = page_html(explanation.plan, explanation.report, top, headline=headline, lead=lead, style=STYLE)
    page.write_text(text, encoding="utf-8")
    return page.resolve()
