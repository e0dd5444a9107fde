"""Combine many views into one plan over cells with one output: the rows of all views, distinguished by a number.

The code that runs one query on Spark can then run many: a table is read and routed once, cells have one stream of
deltas, and one stage merges them. A row has the number of its view, and its values in the columns that the view uses;
other columns are NULL. Columns are shared by views where the types agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.plan import (
    Atom,
    BagStage,
    Binding,
    MapColumn,
    MapStage,
    Node,
    OrderBy,
    Plan,
    Route,
    Routing,
    SetOperationStage,
    Stage,
    TreeStage,
    Variable,
)
from crown.ir.scalars import substitute
from crown.ir.tables import Table, TableColumn, resolved
from crown.plan.cells.distribute import CELLS, can_be_spread
from crown.plan.cells.layout import Layout, Resolver, lay_out, routing_value
from crown.plan.cells.routes import all_routes, routes_of
from crown.plan.combine_views import Shared, results, view_plan
from crown.plan.passthrough import passthrough
from crown.types import BOOLEAN, INT32, DataType

VIEW = "_view"


@dataclass(frozen=True)
class Slots:
    """Where the rows of one view are among those of all: those with its number, its columns by these names.

    `order` is that of its rows where they are read as a whole, by the view's own columns.
    """

    name: str
    number: int
    columns: tuple[TableColumn, ...]
    places: tuple[str, ...]
    bag: bool
    order: tuple[OrderBy, ...] = ()


@dataclass(frozen=True)
class Together:
    """`meeting` are the views whose rows in different cells meet, so that the merge must complete them."""

    layout: Layout
    views: tuple[Slots, ...]
    meeting: tuple[str, ...] = ()


def lay_out_together(project: Plan, cells: int) -> Together:
    """Lay out the views of a project over cells, as one plan."""
    first = [table for table in project.tables if table.primary_key or table.window] if cells > 1 else []
    tables = tuple(resolved(table) if table in first else table for table in project.tables)
    resolvers = tuple(Resolver(passthrough(table), 1 if table.window else cells) for table in first)
    inner, merged = Shared(), Shared(prefix="$merged.")
    handed, shown = _Rows(), _Rows()
    meeting: list[str] = []
    spread = True  # whether the merge can be spread
    for result in results(project):
        plan = view_plan(project, result.name)
        if cells > 1 and not can_be_spread(plan):
            spread = False
            meeting.append(result.name)
            pieces = {table.name: _hand_over_table(inner, handed, table, cells) for table in plan.tables}
            places = merged.add(_reading(plan.stages, pieces))
        else:
            layout = lay_out(plan, cells)
            last = inner.add(layout.cell.stages, routes_of(layout.cell))[layout.cell.stages[-1].id]
            piece = handed.add(result.name, last, inner.columns(last), layout.cell.columns, layout.cell.bag)
            meeting += [result.name] if layout.merge is not None else []
            spread &= layout.merge is None or layout.merge.routing is not None
            after = (_passed(piece),) if layout.merge is None else _reading(layout.merge.stages, {CELLS: piece})
            places = merged.add(after, _merge_routes(piece, layout.merge, after[0], cells))
            plan = layout.merge or replace(plan, stages=after)
        end = places[plan.stages[-1].id]
        shown.add(result.name, end, merged.columns(end), result.columns, result.bag)
    cell = _tagged(project, tables, inner, handed)
    if cells == 1:
        return Together(Layout(1, (), cell, None), handed.views(project))
    cell = replace(cell, routing=Routing(cells, ("views",), (cells,), all_routes(inner)))
    if not meeting:
        return Together(Layout(cells, resolvers, cell, None), handed.views(project))
    merge = _tagged(project, (Table(CELLS, cell.columns),), merged, shown)
    if spread:
        merge = replace(merge, routing=Routing(cells, ("group",), (cells,), all_routes(merged)))
    return Together(Layout(cells, resolvers, cell, merge), shown.views(project), tuple(meeting))


@dataclass
class _Rows:
    """The output of a plan: stages by number, with their columns in slots."""

    types: list[DataType] = field(default_factory=list)
    stages: list[tuple[str, tuple[Variable, ...]]] = field(default_factory=list)
    slots: list[Slots] = field(default_factory=list)

    def add(self, name: str, stage: str, own: tuple[Variable, ...], columns: Sequence[TableColumn], bag: bool) -> Slots:
        """Add the rows of a stage, whose columns are `columns` by position."""
        chosen: list[int] = []
        for column in columns:
            free = (i for i, type_ in enumerate(self.types) if type_ == column.type and i not in chosen)
            place = next(free, len(self.types))
            if place == len(self.types):
                self.types.append(column.type)
            chosen.append(place)
        slots = Slots(name, len(self.slots), tuple(columns), tuple(f"c{place}" for place in chosen), bag)
        self.stages.append((stage, own))
        self.slots.append(slots)
        return slots

    def columns(self) -> tuple[TableColumn, ...]:
        shown = (TableColumn(f"c{place}", type_, True) for place, type_ in enumerate(self.types))
        return (TableColumn(VIEW, INT32, False), *shown)

    def views(self, project: Plan) -> tuple[Slots, ...]:
        """Return where the views' rows are."""
        by_name = {slots.name: slots for slots in self.slots}
        return tuple(
            replace(by_name[result.name], columns=result.columns, bag=result.bag) for result in results(project)
        )


def _tagged(project: Plan, tables: tuple[Table, ...], shared: Shared, rows: _Rows) -> Plan:
    """Return the plan whose rows are those of all views."""
    maps: list[Stage] = []
    for (stage, own), slots in zip(rows.stages, rows.slots, strict=True):
        value = {place: Column(column.name, column.type) for place, column in zip(slots.places, own, strict=True)}
        columns = [MapColumn(VIEW, INT32, False, Literal(slots.number, INT32))]
        for place in rows.columns()[1:]:
            expression: Expression = value.get(place.name, Literal(None, place.type))
            columns.append(MapColumn(place.name, place.type, True, expression))
        maps.append(MapStage(f"$view{slots.number}", stage, tuple(columns)))
    unions: list[Stage] = []
    last = maps[0].id
    for one in maps[1:]:
        unions.append(SetOperationStage(f"$views{len(unions)}", "union", all=True, inputs=(last, one.id)))
        last = unions[-1].id
    read = {atom.source for stage in shared.stages if isinstance(stage, TreeStage | BagStage) for atom in stage.atoms}
    used = tuple(table for table in tables if table.name in read)
    return Plan(project.sql, used, (*shared.stages, *maps, *unions), rows.columns(), bag=True)


def _hand_over_table(inner: Shared, handed: _Rows, table: Table, cells: int) -> Slots:
    """Pass the rows of a table on, for a view that can't be distributed."""
    name = f"table {table.name}"
    known = next((slots for slots in handed.slots if slots.name == name), None)
    if known is not None:
        return known
    (tree,) = passthrough(resolved(table)).stages
    route = Route(tree.id, 0, (routing_value(table.columns),), shares=(cells,))
    stage = inner.add((tree,), {(tree.id, 0): route})[tree.id]
    return handed.add(name, stage, inner.columns(stage), table.columns, True)


def _reading(stages: Sequence[Stage], pieces: Mapping[str, Slots]) -> tuple[Stage, ...]:
    """Return the stages with their tables read from among the rows of all views."""

    def read(atom: Atom) -> Atom:
        if atom.source not in pieces:
            return atom
        slots = pieces[atom.source]
        value = _values(slots)
        wanted = _is_view(slots)
        where = None if atom.filter is None else substitute(atom.filter, value)
        bindings = tuple(Binding(b.variable, substitute(b.expression, value)) for b in atom.bindings)
        both = wanted if where is None else Call("and", (wanted, where), BOOLEAN)
        return replace(atom, source=CELLS, bindings=bindings, filter=both)

    return tuple(
        replace(stage, atoms=tuple(read(atom) for atom in stage.atoms))
        if isinstance(stage, TreeStage | BagStage)
        else stage
        for stage in stages
    )


def _passed(piece: Slots) -> TreeStage:
    """Return the rows of a view that are complete already."""
    names = tuple(f"v{number}" for number in range(len(piece.columns)))
    pairs = list(zip(names, piece.columns, piece.places, strict=True))
    atom = Atom(CELLS, CELLS, tuple(Binding(n, Column(place, c.type)) for n, c, place in pairs), _is_view(piece))
    variables = tuple(Variable(n, c.type, c.nullable) for n, c, _ in pairs)
    node = Node(CELLS, names, 0, None, (), connex=True)
    return TreeStage(f"$passed{piece.number}", variables, (atom,), (node,), names, "bag")


def _merge_routes(piece: Slots, merge: Plan | None, first: Stage, cells: int) -> dict[tuple[str, int], Route]:
    """Return where the merge takes a view's rows, if it is spread."""
    if merge is None:
        value = routing_value([replace(c, name=place) for c, place in zip(piece.columns, piece.places, strict=True)])
    elif merge.routing is not None and merge.routing.routes[0].coordinates[0] is not None:
        value = substitute(merge.routing.routes[0].coordinates[0], _values(piece))
    else:
        return {}
    return {(first.id, 0): Route(first.id, 0, (value,), shares=(cells,))}


def _values(slots: Slots) -> dict[str, Expression]:
    return {c.name: Column(place, c.type) for c, place in zip(slots.columns, slots.places, strict=True)}


def _is_view(slots: Slots) -> Expression:
    return Call("eq", (Column(VIEW, INT32), Literal(slots.number, INT32)), BOOLEAN)
