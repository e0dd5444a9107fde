"""WITH RECURSIVE: the stages of the step, nested in the stage that runs them round by round.

The step is planned like any query, over a placeholder for the recursion's own rows. Stages that read it, directly or
not, run in each round; all others run once, outside. Tables are also read outside: each use of one in the step is a
separate tree, so that all changes reach the recursion through stages, and a batch that fails can be rolled back as a
whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from crown.errors import PlanError
from crown.ir.expression import Column, Expression, Literal
from crown.ir.plan import (
    ITSELF,
    Atom,
    BagStage,
    Binding,
    MapStage,
    Node,
    RecursionStage,
    SetOperationStage,
    Stage,
    TreeStage,
    Variable,
    sources_of,
)
from crown.ir.query import Body, Conjunction, Recursion, Select, SetOperation
from crown.ir.scalars import substitute, variables_of
from crown.plan.explain.summary import RECURSION
from crown.plan.planning import Planning, StageRows
from crown.types import INT32

ROUNDS: Final = 10_000  # of a batch, if the query may not terminate


@dataclass
class Loop:
    """A recursion whose step is about to be planned: `name` are its rows until it is closed."""

    name: str
    body: Recursion
    base: StageRows
    planning: Planning
    _start: int = field(init=False)

    def __post_init__(self) -> None:
        columns = tuple(replace(column, nullable=True) for column in self.base.columns)
        self.planning.stand_in(ITSELF, columns)
        self.planning.nested[self.name] = StageRows(ITSELF, columns, self.base.names, distinct=not self.body.all)
        self._start = len(self.planning.stages)

    def close(self, step: StageRows) -> StageRows:
        """Return the rows of the recursion; `step` are those of the step, whose stages were planned last."""
        planning = self.planning
        inside, outside = self._parted(planning.stages[self._start :])
        del planning.stages[self._start :]
        planning.stages += outside
        if not inside or inside[-1].id != step.stage:
            raise AssertionError("the step gives what its last stage does")
        for stage in inside:
            self._check(stage)
        inside = self._without_tables(inside)
        id = planning.new_id("recursion")
        limit = None if _ends(self.name, self.body) else ROUNDS
        stage = renumbered(RecursionStage(id, self.body.name, self.base.stage, tuple(inside), self.body.all, limit), id)
        _rename_reports(planning, {old.id: new.id for old, new in zip(inside, stage.stages, strict=True)})
        planning.add(stage)
        self._note(stage)
        columns = tuple(replace(column, nullable=True) for column in self.base.columns)
        return StageRows(stage.id, columns, self.base.names, distinct=not self.body.all)

    def _parted(self, stages: Sequence[Stage]) -> tuple[list[Stage], list[Stage]]:
        recursive = {ITSELF}
        for stage in stages:
            if recursive.intersection(sources_of(stage)):
                recursive.add(stage.id)
        return [s for s in stages if s.id in recursive], [s for s in stages if s.id not in recursive]

    def _check(self, stage: Stage) -> None:
        linear = isinstance(stage, SetOperationStage) and stage.operator == "union" and stage.all
        plain = isinstance(stage, BagStage | MapStage) or (isinstance(stage, TreeStage) and stage.mode != "ring")
        if not (linear or plain):
            raise PlanError(
                f"the step of the recursive query {self.body.name} can't be maintained",
                code="CROWN-SQL-RECURSION",
                sql=self.planning.sql,
                reason="it compares rows of the recursion with each other, and later rounds could change that",
                hint="join the recursive name with tables, and keep what compares or counts rows outside of the step",
            )

    def _without_tables(self, stages: Sequence[Stage]) -> list[Stage]:
        """The stages with every table read by a separate tree, outside."""
        tables = {table.name for table in self.planning.tables}
        known: dict[tuple[object, ...], str] = {}

        def read(atom: Atom, variables: Mapping[str, Variable]) -> Atom:
            if atom.source not in tables:
                return atom
            meaning = (atom.source, atom.bindings, atom.filter, atom.not_null)
            if meaning not in known:
                known[meaning] = self.planning.add(_rows_of(atom, variables, self.planning.new_id("rows")))
            own = tuple(Binding(name, Column(name, variables[name].type)) for name in atom.variables)
            return replace(atom, source=known[meaning], bindings=own, filter=None)

        found: list[Stage] = []
        for stage in stages:
            if isinstance(stage, TreeStage | BagStage):
                variables = {variable.name: variable for variable in stage.variables}
                stage = replace(stage, atoms=tuple(read(atom, variables) for atom in stage.atoms))
            found.append(stage)
        return found

    def _note(self, stage: RecursionStage) -> None:
        again = (
            ""
            if stage.all
            else "; a deletion first removes every row that loses a derivation, then restores those that have another"
        )
        flipping = list(dict.fromkeys(_flipping(stage)))
        anew = f"; a change of {', '.join(flipping)} derives all rows anew" if flipping else ""
        bound = "" if stage.limit is None else f"; a batch that takes more than {stage.limit:,} rounds is refused"
        self.planning.note(
            RECURSION,
            stage.id,
            f"{stage.name}: rounds until no row is new, each of which costs what the step's joins cost for the rows "
            f"that the round before has changed{'' if stage.all else again}{anew}{bound}",
            "constant updates and linear space: a change may derive any number of rows, and all are stored",
        )


def _rows_of(atom: Atom, variables: Mapping[str, Variable], id: str) -> TreeStage:
    """Return the rows of a table that an atom reads. Rows of an atom without bindings are still counted."""
    names = atom.variables
    own = tuple(variables[name] for name in names)
    if not names:
        names, own = ("row",), (Variable("row", INT32, False),)
        atom = replace(atom, bindings=(Binding("row", Literal(1, INT32)),))
    return TreeStage(id, own, (atom,), (Node(atom.name, names, 0, None, (), connex=True),), names, "bag")


def _flipping(stage: RecursionStage) -> Iterator[str]:
    """The atoms whose inserted rows can delete rows of the step."""
    for tree in stage.stages:
        if not isinstance(tree, TreeStage):
            continue
        below: list[bool] = []
        for node in tree.nodes:
            flips = node.edge in ("anti", "optional") or (node.parent is not None and below[node.parent])
            below.append(flips)
            if flips and node.atom is not None:
                yield tree.atoms[node.atom].name


def renumbered(stage: RecursionStage, prefix: str) -> RecursionStage:
    """Return the recursion with the stages of its step numbered from 0, after `prefix`."""
    ids = {inner.id: f"{prefix}.{number}" for number, inner in enumerate(stage.stages)}
    return replace(stage, stages=tuple(replace(_reading(inner, ids), id=ids[inner.id]) for inner in stage.stages))


def _reading(stage: Stage, ids: Mapping[str, str]) -> Stage:
    match stage:
        case TreeStage() | BagStage():
            atoms = tuple(replace(atom, source=ids.get(atom.source, atom.source)) for atom in stage.atoms)
            return replace(stage, atoms=atoms)
        case MapStage():
            return replace(stage, input=ids.get(stage.input, stage.input))
        case SetOperationStage():
            left, right = stage.inputs
            return replace(stage, inputs=(ids.get(left, left), ids.get(right, right)))
    raise AssertionError("no other stage is part of a step")


def _rename_reports(planning: Planning, ids: Mapping[str, str]) -> None:
    def of(stage: str) -> str:
        return ids.get(stage, stage)

    planning.conjunctions[:] = [
        replace(c, stage=of(c.stage), bags=tuple(replace(bag, stage=of(bag.stage)) for bag in c.bags))
        for c in planning.conjunctions
    ]
    planning.constructs[:] = [replace(construct, stage=of(construct.stage)) for construct in planning.constructs]


def _ends(name: str, body: Recursion) -> bool:
    """Whether every batch terminates: there are no duplicates, and no value is computed from the recursion's own."""
    sources = {name, *(inner for inner, _ in body.nested)}
    return not body.all and all(_copies(inner, sources) for inner in (body.step, *(one for _, one in body.nested)))


def _copies(body: Body, sources: set[str]) -> bool:
    match body:
        case Select():
            return all(_copies_branch(branch, body, sources) for branch in body.branches)
        case SetOperation():
            return _copies(body.left, sources) and _copies(body.right, sources)
    return False


def _copies_branch(branch: Conjunction, select: Select, sources: set[str]) -> bool:
    columns = {column.name: column.expression for column in branch.columns}
    own = [atom for atom in branch.atoms if atom.source in sources]
    of_itself = {variable for atom in own for variable in atom.variables}
    computed = {b.variable for atom in own for b in atom.bindings if not isinstance(b.expression, Column)}

    def copied(expression: Expression) -> bool:
        read = set(variables_of([expression]))
        return not read & computed and (isinstance(expression, Column) or not read & of_itself)

    return all(copied(substitute(output.expression, columns)) for output in select.outputs)
