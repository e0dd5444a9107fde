"""A Plan evaluated from scratch in plain Python: the judge of the planner, without the kernel.

A tree stage is evaluated by the meaning of its nodes (semi-joins bottom-up, annotations, enumeration over connex
nodes top-down), never by joining its atoms, so that a wrong tree gives a wrong answer. On the way the properties
that the kernel relies on are asserted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cmp_to_key
from itertools import product
from typing import Any

from crown.ir.expression import columns_of
from crown.ir.plan import (
    ITSELF,
    AggregateColumn,
    AggregateStage,
    Atom,
    BagStage,
    DistinctStage,
    MapStage,
    MaterializeStage,
    OrderBy,
    Plan,
    RecursionStage,
    SetOperationStage,
    Stage,
    TopStage,
    TreeStage,
    ValuesStage,
    WindowStage,
)
from crown.ir.tables import Table
from tests.support.reference import reduced
from tests.support.reference import value as evaluate

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Relation:
    columns: tuple[str, ...]
    rows: Counter[Row]

    def as_dicts(self) -> Iterable[tuple[dict[str, Any], int]]:
        return ((dict(zip(self.columns, row, strict=True)), weight) for row, weight in self.rows.items())


def run(plan: Plan, tables: Mapping[str, Iterable[Mapping[str, Any]]]) -> Counter[Row]:
    """The result of the plan over tables given as rows by column name: rows with their multiplicities."""
    known: dict[str, Relation] = {}
    for table in plan.tables:
        known[table.name] = _table(table, tables[table.name])
    for stage in plan.stages:
        assert stage.id.startswith("$")
        assert stage.id not in known
        known[stage.id] = _stage(stage, known)
    result = known[plan.stages[-1].id]
    assert len(result.columns) == len(plan.columns)
    assert plan.bag or all(weight == 1 for weight in result.rows.values()), "a set has no row twice"
    return result.rows


def _table(table: Table, rows: Iterable[Mapping[str, Any]]) -> Relation:
    columns = tuple(column.name for column in table.columns)
    whole = reduced(table, [dict(row) for row in rows])
    return Relation(columns, Counter(tuple(row[name] for name in columns) for row in whole))


def _stage(stage: Stage, known: Mapping[str, Relation]) -> Relation:
    match stage:
        case TreeStage():
            return _Tree(stage, [_atom_rows(atom, known[atom.source]) for atom in stage.atoms]).rows()
        case BagStage():
            return _bag(stage, known)
        case MapStage():
            return _map(stage, known[stage.input])
        case AggregateStage():
            return _aggregate(stage, known[stage.input])
        case DistinctStage():
            source = known[stage.input]
            return Relation(source.columns, Counter(dict.fromkeys(source.rows, 1)))
        case MaterializeStage():
            return known[stage.input]
        case SetOperationStage():
            return _set_operation(stage, known)
        case ValuesStage():
            rows = Counter(tuple(evaluate(e, {}) for e in row) for row in stage.rows)
            return Relation(tuple(column.name for column in stage.columns), rows)
        case TopStage():
            assert not stage.partition and not stage.ranks, "DuckDB is the only judge of window functions"
            return _top(stage, known[stage.input])
        case WindowStage():
            raise NotImplementedError("DuckDB is the only judge of window functions")
        case RecursionStage():
            return _recursion(stage, known)


def _recursion(stage: RecursionStage, known: Mapping[str, Relation]) -> Relation:
    """Round by round, each over what the one before has added."""
    base = known[stage.base]
    rows: Counter[Row] = Counter()
    added = base.rows
    while added:
        if not stage.all:
            added = Counter(dict.fromkeys(row for row in added if row not in rows))
        rows = rows + added
        inside = {**known, ITSELF: Relation(base.columns, added)}
        for inner in stage.stages:
            inside[inner.id] = _stage(inner, inside)
        added = inside[stage.stages[-1].id].rows
    return Relation(base.columns, rows)


def _atom_rows(atom: Atom, source: Relation) -> Counter[Row]:
    rows: Counter[Row] = Counter()
    for row, weight in source.as_dicts():
        if atom.filter is not None and evaluate(atom.filter, row) is not True:
            continue
        values: dict[str, Any] = {}
        equal = True
        for binding in atom.bindings:
            value = evaluate(binding.expression, row)
            equal &= values.setdefault(binding.variable, value) == value
        if equal and all(values[name] is not None for name in atom.not_null):
            rows[tuple(values[name] for name in atom.variables)] += weight
    return rows


class _Tree:
    """Annotations are (row count, one value per ring component); a set-mode tree just doesn't show them."""

    def __init__(self, stage: TreeStage, atom_rows: Sequence[Counter[Row]]) -> None:
        self.stage = stage
        self.nodes = stage.nodes
        self.atom_rows = atom_rows
        self.children = [[i for i, n in enumerate(self.nodes) if n.parent == index] for index in range(len(self.nodes))]
        self.views: list[dict[Row, tuple[Any, ...]]] = [{} for _ in self.nodes]  # V_s with w_s
        self.projections: list[dict[Row, tuple[Any, ...]]] = [{} for _ in self.nodes]  # V_p with w_p
        self._check()

    def _check(self) -> None:
        nodes = self.nodes
        assert nodes[0].parent is None
        assert nodes[0].key == ()
        assert nodes[0].connex
        assert sorted(n.atom for n in nodes if n.atom is not None) == list(range(len(self.stage.atoms)))
        for index, node in enumerate(nodes):
            if node.atom is not None:
                assert node.variables == self.stage.atoms[node.atom].variables
            if node.connex:
                assert set(node.variables) <= set(self.stage.outputs)
            if node.parent is not None:
                parent = nodes[node.parent]
                assert node.parent < index
                assert set(node.key) == set(node.variables) & set(parent.variables)
                assert parent.connex or not node.connex
                assert node.edge in ("join", "optional") or not node.connex
                assert parent.edge != "optional" or node.edge == "optional"
                assert node.edge != "optional" or node.atom is not None
            if node.atom is None:
                guards = [c for c in self.children[index] if nodes[c].edge == "join"]
                assert any(set(nodes[c].key) == set(node.variables) for c in guards), "no guard"
        connex = {v for n in nodes if n.connex for v in n.variables}
        assert connex == set(self.stage.outputs)

    def rows(self) -> Relation:
        for index in reversed(range(len(self.nodes))):
            self._fill(index)
        results: Counter[Row] = Counter()
        columns = self.stage.outputs + tuple(component.name for component in self.stage.ring)
        for values, annotation in self._enumerate(0, None):
            if all(evaluate(predicate, values) is True for predicate in self.stage.residual):
                row = tuple(values[name] for name in self.stage.outputs)
                if self.stage.mode == "ring":
                    row += annotation[1:]
                assert row not in results, "enumeration gave a row twice"
                results[row] = annotation[0] if self.stage.mode == "bag" else 1
        if self.stage.always and not results:
            results[(0,) * len(columns)] = 1
        return Relation(columns, results)

    def _fill(self, index: int) -> None:
        node = self.nodes[index]
        for row, own in self._candidates(index).items():
            values = dict(zip(node.variables, row, strict=True))
            annotation, satisfied = own, True
            for child in self.children[index]:
                below = self.nodes[child]
                key = tuple(values[name] for name in below.key)
                weight = self.projections[child].get(key)
                if weight is None and below.edge == "optional":
                    weight = self._phantom(child, key)
                satisfied &= (weight is None) if below.edge == "anti" else (weight is not None)
                if below.edge in ("join", "optional") and not below.connex and weight is not None:
                    annotation = _times(annotation, weight)
            if satisfied:
                self.views[index][row] = annotation
                key = tuple(values[name] for name in node.key)
                before = self.projections[index].get(key)
                self.projections[index][key] = annotation if before is None else _plus(before, annotation)

    def _phantom(self, index: int, key: Row) -> tuple[Any, ...]:
        """The annotation of the row of NULLs that an optional node shows for a key without a row."""
        node = self.nodes[index]
        assert node.atom is not None
        nothing = dict.fromkeys(node.variables)
        annotation: tuple[Any, ...] = (1,)
        for component in self.stage.ring:
            for factor in component.factors:
                assert factor.atom != node.atom or not set(columns_of(factor.expression)) & set(node.key)
            factors = [f.expression for f in component.factors if f.atom == node.atom]
            value = evaluate(factors[0], nothing) if factors else 1
            annotation += (0 if value is None else value,)
        values = nothing | dict(zip(node.key, key, strict=True))
        for child in self.children[index]:
            below = self.nodes[child]
            inner = tuple(values[name] for name in below.key)
            weight = self.projections[child].get(inner) or self._phantom(child, inner)
            annotation = annotation if below.connex else _times(annotation, weight)
        return annotation

    def _candidates(self, index: int) -> dict[Row, tuple[Any, ...]]:
        node = self.nodes[index]
        if node.atom is None:
            guards = [c for c in self.children[index] if self.nodes[c].edge == "join"]
            guards = [c for c in guards if set(self.nodes[c].key) == set(node.variables)]
            one = (1,) * (1 + len(self.stage.ring))
            keys = [(self.nodes[c].key, key) for c in guards for key in self.projections[c]]
            return {tuple(dict(zip(names, key, strict=True))[v] for v in node.variables): one for names, key in keys}
        rows = {}
        for row, weight in self.atom_rows[node.atom].items():
            values = dict(zip(node.variables, row, strict=True))
            annotation: tuple[Any, ...] = (weight,)
            for component in self.stage.ring:
                factors = [f.expression for f in component.factors if f.atom == node.atom]
                factor = evaluate(factors[0], values) if factors else 1
                annotation += (0 if factor is None else weight * factor,)
            rows[row] = annotation
        return rows

    def _enumerate(self, index: int, key: Row | None) -> Iterable[tuple[dict[str, Any], tuple[Any, ...]]]:
        node = self.nodes[index]
        view = self.views[index]
        if node.edge == "optional" and key is not None and key not in self.projections[index]:
            values = dict.fromkeys(node.variables) | dict(zip(node.key, key, strict=True))
            view = {tuple(values.values()): self._phantom(index, key)}
        for row, annotation in view.items():
            values = dict(zip(node.variables, row, strict=True))
            if key is not None and tuple(values[name] for name in node.key) != key:
                continue
            below = [
                list(self._enumerate(child, tuple(values[name] for name in self.nodes[child].key)))
                for child in self.children[index]
                if self.nodes[child].connex
            ]
            for parts in product(*below):
                everything, total = dict(values), annotation
                for part, weight in parts:
                    everything |= part
                    total = _times(total, weight)
                yield everything, total


def _times(one: Row, other: Row) -> Row:
    return tuple(a * b for a, b in zip(one, other, strict=True))


def _plus(one: Row, other: Row) -> Row:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _bag(stage: BagStage, known: Mapping[str, Relation]) -> Relation:
    partial: list[tuple[dict[str, Any], int]] = [({}, 1)]
    for atom in stage.atoms:
        index: dict[Row, list[tuple[dict[str, Any], int]]] = defaultdict(list)
        bound = [v for v in atom.variables if partial and v in partial[0][0]]
        for row, weight in _atom_rows(atom, known[atom.source]).items():
            values = dict(zip(atom.variables, row, strict=True))
            index[tuple(values[v] for v in bound)].append((values, weight))
        partial = [
            (values | more, weight * times)
            for values, weight in partial
            for more, times in index[tuple(values[v] for v in bound)]
        ]
    assert set(stage.order) == {v for atom in stage.atoms for v in atom.variables}
    rows: Counter[Row] = Counter()
    for values, weight in partial:
        rows[tuple(values[name] for name in stage.outputs)] += weight
    return Relation(stage.outputs, rows)


def _map(stage: MapStage, source: Relation) -> Relation:
    rows: Counter[Row] = Counter()
    for row, weight in source.as_dicts():
        if stage.filter is None or evaluate(stage.filter, row) is True:
            shown = tuple(evaluate(column.expression, row) for column in stage.columns)
            for column, value in zip(stage.columns, shown, strict=True):
                assert column.nullable or value is not None, f"{column.name} is said not to be NULL"
            rows[shown] += weight
    names = tuple(column.name for column in stage.columns)
    assert len(set(names)) == len(names)
    return Relation(names, rows)


def _aggregate(stage: AggregateStage, source: Relation) -> Relation:
    groups: dict[Row, list[tuple[dict[str, Any], int]]] = defaultdict(list)
    if stage.always:
        groups[()] = []
    for row, weight in source.as_dicts():
        groups[tuple(row[name] for name in stage.group)].append((row, weight))
    columns = stage.group + tuple(aggregate.name for aggregate in stage.aggregates)
    assert len(set(columns)) == len(columns)
    rows = {key + tuple(_fold(a, members) for a in stage.aggregates): 1 for key, members in groups.items()}
    return Relation(columns, Counter(rows))


def _fold(aggregate: AggregateColumn, members: list[tuple[dict[str, Any], int]]) -> Any:
    if aggregate.argument is None:
        return sum(weight for _, weight in members)
    argument = aggregate.argument
    values = [(value, weight) for row, weight in members if (value := evaluate(argument, row)) is not None]
    count = sum(weight for _, weight in values)
    total = sum(value * weight for value, weight in values) if aggregate.function in ("sum", "avg") else 0
    match aggregate.function:
        case "count":
            return count
        case "count_distinct":
            return len({value for value, _ in values})
        case "sum":
            return total if values else None
        case "avg":
            return total / count if values else None
        case "min":
            return min((value for value, _ in values), default=None)
        case "max":
            return max((value for value, _ in values), default=None)


def _set_operation(stage: SetOperationStage, known: Mapping[str, Relation]) -> Relation:
    left, right = known[stage.inputs[0]], known[stage.inputs[1]]
    combine: Callable[[int, int], int] = {
        ("union", True): lambda m, n: m + n,
        ("union", False): lambda m, n: min(1, m + n),
        ("except", True): lambda m, n: max(0, m - n),
        ("except", False): lambda m, n: int(m > 0 and n == 0),
        ("intersect", True): lambda m, n: min(m, n),
        ("intersect", False): lambda m, n: int(m > 0 and n > 0),
    }[stage.operator, stage.all]
    assert len(left.columns) == len(right.columns)
    rows = {row: combine(left.rows[row], right.rows[row]) for row in {*left.rows, *right.rows}}
    return Relation(left.columns, Counter({row: weight for row, weight in rows.items() if weight}))


def _top(stage: TopStage, source: Relation) -> Relation:
    def compare(one: Row, other: Row) -> int:
        return _compare(stage.order, source.columns, one, other)

    rows = sorted(source.rows.elements(), key=cmp_to_key(compare))
    return Relation(source.columns, Counter(rows[stage.offset : stage.offset + stage.limit]))


def _compare(order: Sequence[OrderBy], columns: Sequence[str], one: Row, other: Row) -> int:
    for by in order:
        values = [evaluate(by.expression, dict(zip(columns, row, strict=True))) for row in (one, other)]
        result = _compare_values(values[0], values[1], by.descending, by.nulls_first)
        if result:
            return result
    return next((r for a, b in zip(one, other, strict=True) if (r := _compare_values(a, b, False, True))), 0)


def _compare_values(one: Any, other: Any, descending: bool, nulls_first: bool) -> int:
    if one is None or other is None:
        return 0 if one is other else (-1 if (one is None) == nulls_first else 1)
    result = int(one > other) - int(one < other)
    return -result if descending else result


def run_cells(cell: Plan, merge: Plan | None, tables: Mapping[str, Iterable[Mapping[str, Any]]]) -> Counter[Row]:
    """The result of a distributed plan: each atom's rows go to their cells, every cell runs, the merge plan adds up."""
    routing = cell.routing
    assert routing is not None
    outputs: Counter[Row] = Counter()
    unused: Counter[Row] | None = Counter()
    for place in product(*(range(share) for share in routing.shares)):
        known = {table.name: _table(table, tables[table.name]) for table in cell.tables}
        for stage in cell.stages:
            if isinstance(stage, TreeStage | BagStage):
                stage = _routed(stage, cell, known, place)
            known[stage.id] = _stage(stage, known)
        given = known[cell.stages[-1].id].rows
        if any("/" in name and relation.rows for name, relation in known.items()):
            outputs += given
            unused = None
        elif unused is not None:
            unused = given  # a cell without a row takes no part, unless there is none with one
    outputs += unused or Counter()
    if merge is None:
        return outputs
    (table,) = merge.tables
    names = [column.name for column in table.columns]
    return run(merge, {table.name: [dict(zip(names, row, strict=True)) for row in outputs.elements()]})


def _routed(
    stage: TreeStage | BagStage, cell: Plan, known: dict[str, Relation], place: tuple[int, ...]
) -> TreeStage | BagStage:
    """The stage over the rows that this cell gets: each atom over a table reads its own copy."""
    assert cell.routing is not None
    atoms = list(stage.atoms)
    for route in cell.routing.routes:
        if route.stage != stage.id:
            continue
        atom = atoms[route.atom]
        source = known[atom.source]
        mine: Counter[Row] = Counter()
        for row, weight in source.as_dicts():
            hashed = [None if c is None else hash((evaluate(c, row), "salt")) for c in route.coordinates]
            spots = zip(hashed, cell.routing.shares, place, strict=True)
            if all(value is None or value % share == spot for value, share, spot in spots):
                mine[tuple(row.values())] += weight
        copy = f"{stage.id}/{route.atom}"
        known[copy] = Relation(source.columns, mine)
        atoms[route.atom] = replace(atom, source=copy)
    return replace(stage, atoms=tuple(atoms))
