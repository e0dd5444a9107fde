"""A view followed through its batches: its deltas add up, and all ways to read it agree with the judge."""

from __future__ import annotations

import datetime
import itertools
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

import crown
from crown.changes import CHANGE_TYPE, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from crown.functions import PythonFunctions
from tests.support.judge import Change, Judge, Row, differences, multiset, normal, split_delta


@dataclass
class Followed:
    """`single`: changes are applied one by one; `pulled`: the view has no deltas; `pairs`: its deltas show updates;
    `streamed`: they are read while others use the view.
    """

    name: str
    view: crown.View
    single: bool = False
    pulled: bool = False
    pairs: bool = False
    streamed: bool = False
    shown: Counter[Row] = field(default_factory=Counter)
    gone: dict[Row, Row] = field(default_factory=dict)
    functions: PythonFunctions | None = None

    def apply(self, changes: dict[str, pa.Table]) -> pa.Table:
        earlier, expected = iter(self.view), list(self.view)
        first = list(itertools.islice(earlier, 2))
        delta = self._applied(changes)
        assert multiset(first + list(earlier)) == multiset(expected), f"{self.name}: an iterator across a batch"
        if not self.single:
            self._add(delta)
            return delta
        for update in sorted(set(delta["_update"].to_pylist())):
            self._add(delta.filter(pc.equal(delta["_update"], update)).drop_columns("_update"))
        return delta

    def _applied(self, changes: dict[str, pa.Table]) -> pa.Table:
        if self.streamed:
            reader = self.view.apply(changes, stream=True)
            batches = list(itertools.islice(reader, 1))
            len(self.view)  # which waits for the batch
            return pa.Table.from_batches([*batches, *reader], reader.schema)
        if not self.pairs:
            return self.view.apply(changes, per_update=self.single)
        delta = self.view.apply(changes, updates=True)
        words = delta[CHANGE_TYPE].to_pylist()
        before = [row for row, word in enumerate(words) if word == UPDATE_PREIMAGE]
        assert all(words[row + 1] == UPDATE_POSTIMAGE for row in before), f"{self.name}: an update without its new row"
        return delta

    def advance(self, now: datetime.datetime) -> pa.Table:
        delta = self.view.advance(now)
        self._add(delta)
        return delta

    def _add(self, delta: pa.Table) -> None:
        came, went = split_delta(delta)
        assert not came & went, f"{self.name}: a row comes and goes in one delta"
        self.shown.update(came)
        self.shown.subtract(went)
        assert all(count >= 0 for count in self.shown.values()), f"{self.name}: a delta takes back what was not shown"
        self.shown = +self.shown

    def reload(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "view"
            self.view.save(path)
            self.view = crown.View.load(path, functions=self.functions)

    def check_delta(self, judge: Judge, delta: pa.Table) -> None:
        """The last delta, and what all of them add up to."""
        if self.pulled:
            assert not delta.num_rows, f"{self.name}: a delta of a view without deltas"
            return
        if not self.single or "_update" not in delta.column_names:
            judge.check_delta(delta, where=f"{self.name}: delta")
        missing, extra = differences(judge.result, self.shown)
        assert not missing and not extra, f"{self.name}: deltas do not add up: {missing} missing, {extra} extra"

    def check(self, judge: Judge, *, ordered: bool = False) -> None:
        """All ways to read the view; `ordered`: the judge's order is the only right one, but for equal rows."""
        rows = list(self.view)
        whole = list(_rows(self.view.to_arrow()))
        judge.check_result(rows, where=f"{self.name}: rows")
        judge.check_result(whole, where=f"{self.name}: to_arrow")
        assert len(self.view) == judge.result.total(), f"{self.name}: len"
        if ordered:
            self._check_order(judge.rows(), rows)
            self._check_order(judge.rows(), whole)
        counted = self.view.to_arrow(multiplicity=True)
        listed = [row[:-1] for row in _rows(counted)]
        assert len(multiset(listed)) == len(listed), f"{self.name}: a row is listed twice"
        repeated = [row[:-1] for row in _rows(counted) for _ in range(row[-1])]
        judge.check_result(repeated, where=f"{self.name}: to_arrow with multiplicity")
        self._check_members(rows)
        self._check_places(rows)
        sample = {tuple(map(normal, row)) for row in _rows(self.view.sample(5, seed=1))}
        assert sample <= {tuple(map(normal, row)) for row in rows}, f"{self.name}: sample"
        assert bool(sample) == bool(rows), f"{self.name}: sample"

    def _check_order(self, expected: list[Row], got: list[Row]) -> None:
        for one, other in zip(expected, got, strict=True):
            assert not any(differences(multiset([one]), multiset([other]))), f"{self.name}: {got} is not {expected}"

    def _check_places(self, rows: list[Row]) -> None:
        """Pages, positions, and the rows with a value."""
        count = len(rows)
        for offset, limit in ((0, 3), (count // 2, 2), (count, 1)):
            page = list(_rows(self.view.page(offset, limit)))
            assert multiset(page) == multiset(rows[offset : offset + limit]), f"{self.name}: page {offset}, {limit}"
        if not rows:
            return
        row = rows[count // 3]
        assert multiset([self.view[count // 3], self.view[-1]]) == multiset([row, rows[-1]]), f"{self.name}: positions"
        names = self.view.schema.names
        for column, name in enumerate(names):
            if names.count(name) == 1:
                found = multiset(_rows(self.view.lookup(**{name: row[column]})))
                same = multiset(other for other in rows if normal(other[column]) == normal(row[column]))
                assert found == same, f"{self.name}: lookup {name} = {row[column]!r}"

    def _check_members(self, rows: list[Row]) -> None:
        """Rows that are there and rows that were."""
        counts = multiset(rows)
        here = {tuple(map(normal, row)): row for row in rows}
        for value, row in list(here.items())[:20]:
            count = self.view.multiplicity(row)
            assert row in self.view and count == counts[value], f"{self.name}: multiplicity of {row}"
        for row in [row for value, row in self.gone.items() if value not in here][:5]:
            assert row not in self.view, f"{self.name}: {row} is still there"
        self.gone = here | (self.gone if len(self.gone) < 50 else {})


def _rows(table: pa.Table) -> Iterator[Row]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def follow(
    judge: Judge,
    followed: Sequence[Followed],
    batches: Iterable[Sequence[Change]],
    *,
    reloads: Collection[int] = (),
    times: Mapping[int, datetime.datetime] = MappingProxyType({}),
    ordered: bool = False,
) -> None:
    """Apply the batches to all views and compare after each.

    Before those numbered in `reloads`, save and load; before those in `times`, tell the time.
    """
    for number, batch in enumerate(batches):
        if number in reloads:
            for one in followed:
                one.reload()
        if number in times:
            told = [one.advance(times[number]) for one in followed]
            judge.tell(times[number])
            for one, delta in zip(followed, told, strict=True):
                one.check_delta(judge, delta)
                one.check(judge, ordered=ordered)
        changes = judge.as_arrow(batch)
        deltas = [one.apply(changes) for one in followed]
        judge.apply(batch)
        for one, delta in zip(followed, deltas, strict=True):
            one.check_delta(judge, delta)
            one.check(judge, ordered=ordered)
