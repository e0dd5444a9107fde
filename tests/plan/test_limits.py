"""Every search ends after a counted number of steps, and explain says so where it was cut."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from itertools import combinations, islice
from math import prod

import pytest

from crown.errors import CrownError, PlanError
from crown.ir.plan import BagStage
from crown.plan import explain, plan_with_report
from crown.plan.cells import hypercube
from crown.plan.factors import PRODUCTS
from crown.plan.tree import bags, extend, trees
from crown.plan.tree.hypergraph import Hyperedge, cover_number, is_acyclic, union
from crown.plan.tree.search_limit import Steps
from crown.sql import parse

SCHEMA = "CREATE TABLE e (a INT, b INT); CREATE TABLE wide (" + ", ".join(f"c{i} INT" for i in range(60)) + ")"


def _self_joins(pairs: list[tuple[int, int]], outputs: str = "COUNT(*) AS n") -> str:
    """One use of `e` for each pair; equal numbers are joined."""
    first: dict[int, str] = {}
    conditions = []
    for index, pair in enumerate(pairs):
        for number, column in zip(pair, "ab", strict=True):
            here = f"e{index}.{column}"
            if number in first:
                conditions.append(f"{first[number]} = {here}")
            first.setdefault(number, here)
    tables = ", ".join(f"e e{index}" for index in range(len(pairs)))
    return f"SELECT {outputs} FROM {tables} WHERE {' AND '.join(conditions)}"


def _cycle(size: int) -> list[tuple[int, int]]:
    return [(i, (i + 1) % size) for i in range(size)]


def _clique(size: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(size) for j in range(i)]


SHAPES = {
    "chain": [(i, i + 1) for i in range(64)],
    "star": [(0, i + 1) for i in range(64)],
    "cycle of 20": _cycle(20),
    "cycle of 64": _cycle(64),
    "clique": _clique(11),
    "grid": [(10 * i + j, 10 * i + j + 1) for i in range(6) for j in range(5)]
    + [(10 * i + j, 10 * i + 10 + j) for i in range(5) for j in range(6)],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("outputs", ["COUNT(*) AS n", "e0.a, e9.b", "*"])
def test_large_joins_have_a_plan(shape: str, outputs: str) -> None:
    sql = _self_joins(SHAPES[shape], outputs)
    plan, report = plan_with_report(parse(sql, SCHEMA))
    (conjunction,) = report.conjunctions
    said = "the search stopped after" in str(explain(plan, report))
    assert said == (not conjunction.exhaustive)
    assert plan == plan_with_report(parse(sql, SCHEMA))[0]


def test_a_cut_search_for_bags_makes_one_bag_and_says_so() -> None:
    plan, report = plan_with_report(parse(_self_joins(_cycle(20)), SCHEMA))
    assert [len(stage.atoms) for stage in plan.stages if isinstance(stage, BagStage)] == [20]
    assert f"the search stopped after {bags.STEPS} steps; a cheaper tree may exist" in str(explain(plan, report))


def test_small_cycles_are_searched_to_the_end() -> None:
    _, report = plan_with_report(parse(_self_joins(_cycle(6)), SCHEMA))
    assert report.conjunctions[0].exhaustive


def _edges(pairs: list[tuple[int, int]]) -> list[Hyperedge]:
    return [frozenset(map(str, pair)) for pair in pairs]


def _hypertree(size: int, rng: random.Random) -> list[Hyperedge]:
    edges = [frozenset({"v0", "v1"})]
    number = 2
    while len(edges) < size:
        parent = sorted(rng.choice(edges))
        fresh = [f"v{number + i}" for i in range(rng.randrange(4))]
        number += len(fresh)
        edges.append(frozenset(rng.sample(parent, rng.randint(1, min(3, len(parent)))) + fresh))
    return edges


@pytest.mark.parametrize("shape", SHAPES)
def test_steps_of_bags(shape: str) -> None:
    edges = _edges(SHAPES[shape])
    steps = Steps(bags.STEPS)
    blocks = bags.find_bags(edges, steps=steps)
    # After the cut the pairs of one partition are still looked at, and no more.
    assert steps.taken <= bags.STEPS + len(edges) * len(edges) ** 2
    assert is_acyclic([union(edges[atom] for atom in block) for block in blocks])


def test_steps_of_trees(rng: random.Random) -> None:
    cut = 0
    for size in (10, 30, 60, 100):
        edges = _hypertree(size, rng)
        outputs = union(edges)
        for limit in (0, 50, 2000):
            steps = Steps(limit)
            found = trees.find_trees(edges, outputs, [1.0] * size, steps=steps)
            nodes = [node for node in found.best[0].nodes() if node.atom is not None]
            assert sorted(node.atom for node in nodes if node.atom is not None) == list(range(size))
            assert found.exhaustive == (steps.taken <= limit)
            # Past the limit each subproblem has one root, so there are no more of them than items.
            assert steps.taken <= limit + 2 * size**3
            cut += steps.cut
    assert cut


def test_steps_of_the_extension(rng: random.Random) -> None:
    for _ in range(30):
        edges = _hypertree(rng.choice([6, 12, 40]), rng)
        outputs = frozenset(rng.sample(sorted(union(edges)), 2))
        for limit in (0, 10, extend.STEPS):
            added = extend.least_extension(edges, outputs, (), Steps(limit))
            assert not extend.least_extension(edges, outputs | added, ())


def test_cover_number(rng: random.Random) -> None:
    for _ in range(200):
        edges = [frozenset(rng.sample("abcdefg", rng.randint(1, 4))) for _ in range(rng.randint(1, 7))]
        wanted = union(edges)
        least = next(n for n in range(len(edges) + 1) if any(union(c) >= wanted for c in combinations(edges, n)))
        assert cover_number(wanted, edges) == least
        assert least <= cover_number(wanted, edges, exact=0) <= len(edges)
    assert cover_number(union(_edges(_cycle(40))), _edges(_cycle(40))) == 20


def test_too_many_tables_are_refused() -> None:
    with pytest.raises(PlanError) as caught:
        plan_with_report(parse(_self_joins([(i, i + 1) for i in range(120)]), SCHEMA))
    assert caught.value.code == "CROWN-PLAN-TOO-MANY-TABLES"
    assert caught.value.reason and caught.value.hint


def test_all_conjunctions_of_a_query_share_the_steps() -> None:
    """Many cyclic branches: each later one gets less, none gets nothing."""
    branch = _self_joins(_cycle(10), "e0.a")
    _, report = plan_with_report(parse(" UNION ALL ".join([branch] * 6), SCHEMA))
    assert len(report.conjunctions) == 6
    assert not any(conjunction.exhaustive for conjunction in report.conjunctions)
    limits = [c.why_not_better[-1].split()[4] for c in report.conjunctions]
    assert int(limits[0]) == bags.STEPS
    assert bags.STEPS // 50 <= int(limits[-1]) < bags.STEPS // 2


@pytest.mark.parametrize("cells", [1, 2, 64, 97, 4096, 720720, 10**9, 10**9 + 7, 2**40, 10**30])
def test_shares_of_many_cells(cells: int) -> None:
    """Factorisations are counted before they are listed."""
    places = hypercube._places(cells)
    found = list(islice(hypercube._factorisations(cells, places), hypercube.FACTORISATIONS + 1))
    assert 1 <= len(found) <= hypercube.FACTORISATIONS
    assert all(prod(shares) == cells for shares in found)
    plan_with_report(parse(_self_joins([(i, i + 1) for i in range(10)], "*"), SCHEMA), cells=cells)


def _doubled(levels: int, step: str) -> list[str]:
    return [f"c{i} AS ({step.format(f'c{i - 1}')})" for i in range(1, levels + 1)]


@pytest.mark.parametrize(
    "step",
    [
        "SELECT x.a, y.b FROM {0} x JOIN {0} y ON x.b = y.a",
        "SELECT a, b FROM {0} UNION ALL SELECT a, b FROM {0}",
        "SELECT a, b FROM {0} WHERE EXISTS (SELECT 1 FROM {0} y WHERE y.a = b)",
        "SELECT a, b FROM {0} WHERE a > (SELECT MAX(y.a) FROM {0} y)",
        "SELECT x.a, y.b FROM {0} x LEFT JOIN {0} y ON x.b = y.a",
        "SELECT a, COUNT(*) AS b FROM {0} GROUP BY a UNION SELECT a, b FROM {0}",
    ],
)
def test_doubled_names_grow_by_one_body_each(step: str) -> None:
    """As WITH and as views: the query grows with the number of names, not with the number of copies."""
    sizes = []
    for levels in (10, 14, 18):
        names = _doubled(levels, step)
        text = f"WITH c0 AS (SELECT a, b FROM e), {', '.join(names)} SELECT a, b FROM c{levels}"
        views = "".join(f"; CREATE VIEW {name}" for name in ["c0 AS SELECT a, b FROM e", *names])
        counts = []
        for sql, schema in ((text, SCHEMA), (f"SELECT a, b FROM c{levels}", SCHEMA + views)):
            try:
                plan, _ = plan_with_report(parse(sql, schema))
            except CrownError:
                counts.append(-1)  # too many branches, say
            else:
                counts.append(len(plan.stages))
        assert counts[0] == counts[1]
        sizes.append(counts[0])
    assert sizes[2] - sizes[1] <= 2 * max(1, sizes[1] - sizes[0])
    assert max(sizes) < 200


def test_a_product_of_sums_is_multiplied_out_only_so_far() -> None:
    few = parse("SELECT SUM((x.a + y.b) * (x.b + y.a)) AS n FROM e x JOIN e y ON x.a = y.a", SCHEMA)
    many = parse(f"SELECT SUM({' * '.join(['(x.b + y.b)'] * 20)}) AS n FROM e x JOIN e y ON x.a = y.a", SCHEMA)
    for query, ring in ((few, True), (many, False)):
        plan, _ = plan_with_report(query)
        tree = plan.stages[0]
        assert (getattr(tree, "mode", "") == "ring") == ring
        assert len(getattr(tree, "ring", ())) <= PRODUCTS + 1


def _columns(count: int, text: str = "c{0}") -> str:
    return ", ".join(text.format(i) for i in range(count))


def _chain(count: int, join: str) -> tuple[str, str]:
    tables = ";".join(f"CREATE TABLE t{i} (k INT, v{i} INT)" for i in range(count + 1))
    return "SELECT * FROM t0" + "".join(f" FULL JOIN t{i} {join.format(i - 1, i)}" for i in range(1, count + 1)), tables


# Of a size: the query and the schema. Twice the size may take a little more than twice the work.
GROWING: dict[str, Callable[[int], tuple[str, str]]] = {
    "columns": lambda n: (f"SELECT {_columns(n)} FROM w", f"CREATE TABLE w ({_columns(n, 'c{0} INT')})"),
    "qualified columns": lambda n: (
        f"SELECT {_columns(n, 'w.c{0}')} FROM w",
        f"CREATE TABLE w ({_columns(n, 'c{0} INT')})",
    ),
    "the same column": lambda n: (f"SELECT {_columns(n, 'a')} FROM e", SCHEMA),
    "computed columns": lambda n: (f"SELECT {_columns(n, 'a + {0} AS c{0}')} FROM e", SCHEMA),
    "names of outputs": lambda n: (
        f"SELECT a AS c0, {', '.join(f'c{i} + 1 AS c{i + 1}' for i in range(30))}, {_columns(n, 'c9 AS d{0}')} FROM e",
        SCHEMA,
    ),
    "aggregates": lambda n: (
        f"SELECT {_columns(n, 'SUM(c{0}) AS s{0}')} FROM w",
        f"CREATE TABLE w ({_columns(n, 'c{0} INT')})",
    ),
    "NATURAL JOIN": lambda n: (
        "SELECT * FROM w NATURAL FULL JOIN x",
        f"CREATE TABLE w ({_columns(n, 'c{0} INT')}); CREATE TABLE x ({_columns(n, 'c{0} INT')})",
    ),
    "equalities with constants": lambda n: (
        f"SELECT c0 FROM w WHERE {' AND '.join(f'c{i} = {i}' for i in range(n))}",
        f"CREATE TABLE w ({_columns(n, 'c{0} INT')})",
    ),
    "CASE": lambda n: (f"SELECT CASE {' '.join(f'WHEN a = {i} THEN {i}' for i in range(n))} END AS x FROM e", SCHEMA),
}


def _work(sql: str, schema: str) -> int:
    """The number of functions called from parsing to explain."""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        str(explain(*plan_with_report(parse(sql, schema))))
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("shape", GROWING)
def test_work_grows_with_the_text(shape: str) -> None:
    _work(*GROWING[shape](10))  # imports
    small, large = (_work(*GROWING[shape](size)) for size in (150, 300))
    assert large < 2.4 * small


@pytest.mark.parametrize("join", ["ON t{0}.k = t{1}.k", "ON t{0}.v{0} = t{1}.k", "USING (k)"])
def test_full_joins_have_a_few_conjunctions_each(join: str) -> None:
    for count in (4, 12, 24):
        _, report = plan_with_report(parse(*_chain(count, join)))
        assert len(report.conjunctions) <= 5 * count


DOUBLED = ["x0 AS (SELECT a AS x FROM e)", *(f"x{i} AS (SELECT x + x AS x FROM x{i - 1})" for i in range(1, 40))]
TOO_LARGE = {
    "WITH": (f"WITH {', '.join(DOUBLED)} SELECT x FROM x39", SCHEMA, "TOO-LONG"),
    "names of outputs": (
        f"SELECT a AS x0, {', '.join(f'x{i} + x{i} AS x{i + 1}' for i in range(40))} FROM e",
        SCHEMA,
        "TOO-LONG",
    ),
    "a wide union": (
        " UNION ALL ".join(["SELECT * FROM w"] * 8),
        f"CREATE TABLE w ({_columns(4500, 'c{0} INT')})",
        "TOO-LONG",
    ),
    "IN": (f"SELECT a FROM e WHERE a IN ({', '.join(map(str, range(30_002)))})", SCHEMA, "TOO-LONG"),
    "number": (f"SELECT a FROM e WHERE a < {'1' * 1_000_000}", SCHEMA, "LITERAL"),
    "outputs": (f"SELECT {_columns(5001, 'a')} FROM e", SCHEMA, "TOO-LONG"),
    "aggregates": (f"SELECT {_columns(1001, 'SUM(a + {0})')} FROM e", SCHEMA, "TOO-LONG"),
    "FULL JOIN": (*_chain(51, "USING (k)"), "TOO-MANY-TABLES"),
    "GROUPING SETS": (
        f"SELECT COUNT(*) AS n FROM e GROUP BY {', '.join(['GROUPING SETS (a, b, (a, b), (), a)'] * 40)}",
        SCHEMA,
        "GROUPING-SETS",
    ),
    "a clique of wide tables": (
        "SELECT COUNT(*) AS n FROM "
        + " JOIN ".join(
            f"t{i}" + (" ON " + " AND ".join(f"t{i}.c{j} = t{j}.c{i}" for j in range(i)) if i else "")
            for i in range(30)
        ),
        ";".join(f"CREATE TABLE t{i} ({_columns(30, 'c{0} INT')})" for i in range(30)),
        "TOO-MANY-TABLES",
    ),
    "NOT IN": (
        f"SELECT a FROM e WHERE {'a NOT IN (SELECT b FROM e WHERE ' * 20}a > 0{')' * 20}",
        SCHEMA,
        "TOO-LONG",
    ),
    "UNPIVOT": (
        f"SELECT * FROM w UNPIVOT (v FOR n IN ({_columns(65)}))",
        f"CREATE TABLE w ({_columns(65, 'c{0} INT')})",
        "TOO-MANY-BRANCHES",
    ),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_is_too_large_is_refused(name: str) -> None:
    sql, schema, code = TOO_LARGE[name]
    with pytest.raises(CrownError) as caught:
        plan_with_report(parse(sql, schema))
    assert caught.value.code.endswith(code)
    assert caught.value.reason and caught.value.hint


def test_names_of_outputs_are_bound_inside_aggregates_as_elsewhere() -> None:
    sql = "SELECT SUM(a) AS s, SUM(s) OVER () AS w, SUM(s) AS z FROM e"
    with pytest.raises(CrownError, match="aggregate"):
        parse(sql, SCHEMA)
