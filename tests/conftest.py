"""Seeds and hypothesis profiles for all tests.

All randomness of the tests comes from one seed, which every run prints: hypothesis is forced to it, and the fixture
`rng` gives each test its own generator derived from it. The default run always takes the same seed, so that a failure
means a change broke something. `CROWN_SEED=random`, as in `make test-slow`, explores; `CROWN_SEED=n` repeats a run.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import hypothesis
import hypothesis.core
import pytest

_asked = os.environ.get("CROWN_SEED") or "2023"
SEED = random.SystemRandom().randrange(2**32) if _asked == "random" else int(_asked)
# Tests run in several processes (pytest -n): all take the seed of the first.
os.environ["CROWN_SEED"] = str(SEED)

# Java processes of tests are short: compiling code twice, and collecting garbage in parallel, costs
# them more than it saves. Spark's launcher gives these options to every driver.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CLASSES = Path(sys.prefix) / "spark.jsa"  # by tools/archive-classes
if CLASSES.exists():
    JAVA_OPTIONS += f' -XX:SharedArchiveFile="{CLASSES}" -Xlog:cds=off,cds+dynamic=off'
os.environ.setdefault("SPARK_SUBMIT_OPTS", JAVA_OPTIONS)

# Timing is nobody's business in a test: machines are shared, and the first call of a kind may
# compile or start things.
hypothesis.settings.register_profile(
    "default",
    max_examples=40,
    derandomize=False,  # hypothesis would ignore the seed where the variable CI is set
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)
hypothesis.settings.register_profile("slow", parent=hypothesis.settings.get_profile("default"), max_examples=3000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure(config: pytest.Config) -> None:
    setattr(hypothesis.core, "global_force_seed", SEED)  # noqa: B010 - declared as None
    config.option.loadscopereorder = False  # keep the order of `pytest_collection_modifyitems`


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files with Spark first: they take longest, and one that came last would leave other processes idle."""
    with_spark = {item.path for item in items if item.get_closest_marker("spark")}
    items.sort(key=lambda item: item.path not in with_spark)


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed: {SEED} (repeat with CROWN_SEED={SEED})"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(f"seed of this run: {SEED} (repeat with CROWN_SEED={SEED})")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """A generator of its own for each test, derived from the run's seed and the test's name."""
    return random.Random(f"{SEED}:{request.node.nodeid}")
