"""What the demonstration says and draws at its end, from made-up batches."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from crown.demo.network import network
from crown.demo.pipeline import BatchFigures, DemoProgress
from crown.demo.report import WARM_UP, budget, explained, figures, state_line, verdicts, write_page
from tests.support.browser import WHY_NOT, browser

ANSWER = Counter({(f"tag {n}", 1000 - n, 5 * n): 1 for n in range(30)})


def progress() -> DemoProgress:
    steps = [BatchFigures(4.0 if n < WARM_UP else 0.5, 10_000, 100_000 * n) for n in range(12)]
    return DemoProgress(12, 120_000, 900, 1_100_000, 21.0, ANSWER, steps)


def test_verdicts_count_what_differs() -> None:
    other = ANSWER - Counter({("tag 3", 997, 15): 1}) + Counter({("tag 3", 1, 1): 1, ("tag 4", 1, 1): 1})
    equal, different = verdicts(ANSWER, ANSWER, other)
    assert equal.equal and "30 rows" in str(equal)
    assert not different.equal and (different.missing, different.extra) == (1, 2)


def test_figures_leave_the_warm_up_out_and_say_what_recomputing_costs() -> None:
    lines = figures(progress(), 2.0)
    assert "20,000 updates per second, 0.50 s per batch of 10,000" in lines[1]
    assert "takes 2.00 s" in lines[2] and "4.0 times" in lines[2] and "12 batches that is 24 s" in lines[2]
    assert len(figures(DemoProgress(1, 10, 0, 0, 1.0, ANSWER, progress().history[:1]), 2.0)) == 1


def test_the_budget_is_known_before_the_start() -> None:
    social = network(0.002, seed=7)
    one, two = (budget(explained(social, cells=cells), social, cells=cells) for cells in (1, 2))
    assert 100_000 < one <= two < 2.1 * one
    assert "budget known before the start" in state_line(progress(), one)


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
def test_the_page_has_verdicts_and_charts(tmp_path: Path) -> None:
    social = network(0.002, seed=7)
    explanation = explained(social, cells=2)
    judged = verdicts(ANSWER, ANSWER, ANSWER)
    lines = [*figures(progress(), 2.0), state_line(progress(), 2e6)]
    page = write_page(tmp_path, explanation, progress(), judged, lines, 2e6)
    with browser() as shown:
        for width in (1280, 500):
            for scheme in ("light", "dark"):
                shown.resize(width, 900)
                shown.prefer(scheme)
                shown.open(page.as_uri())
                assert shown.overlaps() == []
                if directory := os.environ.get("CROWN_SHOTS"):
                    shown.screenshot(Path(directory) / f"demo-{width}-{scheme}.png")
        text = shown.text()
        for words in ("The view equals the query", "recomputing instead", "tag 0"):
            assert words in text
        assert shown.run("return document.querySelectorAll('.chart rect').length") == 12 + 12 + 12
        assert shown.errors() == []
