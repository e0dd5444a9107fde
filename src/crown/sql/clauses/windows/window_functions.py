"""Window functions of one SELECT: each distinct one is stored once and referenced by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from crown import types
from crown.ir.expression import Column, Expression, Literal
from crown.ir.plan import WindowFrame, WindowFunction
from crown.ir.query import Order
from crown.ir.scalars import substitute
from crown.sql.clauses.grouping.aggregates import MARK, Aggregates, Collected
from crown.sql.clauses.misplaced import refuse_window
from crown.sql.clauses.result.order_by import direction
from crown.sql.context import Context
from crown.sql.scalar.binder import Binder
from crown.sql.scalar.coerce import cast
from crown.types import FLOAT64, INT32, DataType

WINDOW = "%"  # window functions are columns of this prefix until the SELECT is assembled
_RANKS: Mapping[type[exp.Expr], tuple[WindowFunction, DataType]] = {
    exp.RowNumber: ("row_number", INT32),
    exp.Rank: ("rank", INT32),
    exp.DenseRank: ("dense_rank", INT32),
    exp.PercentRank: ("percent_rank", FLOAT64),
    exp.CumeDist: ("cume_dist", FLOAT64),
    exp.Ntile: ("ntile", INT32),
}
_VALUES: Mapping[type[exp.Expr], WindowFunction] = {
    exp.FirstValue: "first_value",
    exp.First: "first_value",
    exp.AnyValue: "first_value",
    exp.LastValue: "last_value",
    exp.Last: "last_value",
    exp.NthValue: "nth_value",
}
_LISTS = ("array_agg", "string_agg")
_WHOLE = WindowFrame("rows", None, None)
_DAYS = {"DAY": 1, "WEEK": 7}
_MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}


@dataclass(frozen=True)
class FoundWindow:
    """A window function over the columns of FROM, and the aggregates of the SELECT."""

    name: str
    function: WindowFunction
    type: DataType
    partition: tuple[Expression, ...]
    order: tuple[Order, ...]
    arguments: tuple[Expression, ...] = ()
    offset: int = 0
    ignore_nulls: bool = False
    frame: WindowFrame | None = None
    aggregate: Collected | None = None

    @property
    def column(self) -> Column:
        return Column(WINDOW + self.name, self.type)

    @property
    def is_group(self) -> bool:
        """Whether it has one value for each partition: an aggregate of all its rows."""
        return self.aggregate is not None and self.frame == _WHOLE

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All expressions that it reads."""
        folded = () if self.aggregate is None else self.aggregate.expressions
        return (*self.partition, *(o.expression for o in self.order), *self.arguments, *folded)


@dataclass(frozen=True)
class _Over:
    partition: tuple[Expression, ...]
    order: tuple[Order, ...]
    frame: WindowFrame


class WindowCollector:
    """Collects the window functions of a SELECT while its expressions are bound; partitions are also by `keys`."""

    def __init__(self, context: Context, node: exp.Select, keys: Sequence[Expression] = ()) -> None:
        self.context = context
        self.keys = tuple(keys)
        self.found: list[FoundWindow] = []
        self._named: dict[str, exp.Window] = {}
        for window in node.args.get("windows") or ():
            if self._named.setdefault(window.name.lower(), window) is not window:
                context.fail(window.this, "WINDOW-FUNCTION", f"there are two windows {window.name}", hint="rename one")
        self.inside = False

    def bind(self, node: exp.Expr, binder: Binder) -> Expression:
        """Return the window function as a column."""
        assert isinstance(node, exp.Window)
        if self.inside:
            refuse_window(self.context, node, "another window function")
        self.inside = True
        try:
            return self._bind(node, binder)
        finally:
            self.inside = False

    def _bind(self, node: exp.Window, binder: Binder) -> Expression:
        call, ignore_nulls = node.this, False
        if isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
            call, ignore_nulls = call.this, isinstance(call, exp.IgnoreNulls)
        over = self._over(node, binder)
        if type(call) in _RANKS:
            found = self._rank(call, over)
        elif isinstance(call, exp.Lag | exp.Lead):
            found = self._neighbour(call, over, binder, ignore_nulls)
        elif type(call) in _VALUES:
            found = self._value(call, over, binder, ignore_nulls)
        else:
            return self._aggregate(node.this, over, binder)
        return self._column(found)

    def _column(self, found: FoundWindow) -> Column:
        for known in self.found:
            if _same(known, found):
                return known.column
        self.found.append(found)
        return found.column

    def _rank(self, call: exp.Expr, over: _Over) -> FoundWindow:
        function, type_ = _RANKS[type(call)]
        buckets = 0
        if function == "ntile":
            buckets = self._number(call, call.this, "NTILE", least=1)
        elif call.expressions:
            self.context.fail(call, "WINDOW-FUNCTION", f"{function.upper()} takes no argument")
        if not over.order and function != "row_number":
            self.context.fail(
                call,
                "WINDOW-FUNCTION",
                f"{function.upper()} needs an ORDER BY",
                hint="write OVER (PARTITION BY ... ORDER BY ...)",
            )
        return self._new(function, type_, over, offset=buckets)

    def _neighbour(self, call: exp.Expr, over: _Over, binder: Binder, ignore_nulls: bool) -> FoundWindow:
        word = "LAG" if isinstance(call, exp.Lag) else "LEAD"
        if not over.order:
            self.context.fail(call, "WINDOW-FUNCTION", f"{word} needs an ORDER BY", hint="write OVER (ORDER BY ...)")
        value = self._typed(binder.bind(call.this))
        offset = self._number(call, call.args.get("offset") or exp.Literal.number(1), word)
        given = call.args.get("default")
        default = binder.bind(given) if given is not None else Literal(None, value.type)
        default = cast(self.context, call, default, value.type)
        back = offset if word == "LAG" else -offset
        return self._new("lag", value.type, over, (value, default), offset=back, ignore_nulls=ignore_nulls)

    def _value(self, call: exp.Expr, over: _Over, binder: Binder, ignore_nulls: bool) -> FoundWindow:
        value = self._typed(binder.bind(call.this))
        function = _VALUES[type(call)]
        number = 0
        if function == "nth_value":
            number = self._number(call, call.args.get("offset"), "NTH_VALUE", least=1)
        return self._new(
            function, value.type, over, (value,), offset=number, ignore_nulls=ignore_nulls, frame=over.frame
        )

    def _aggregate(self, call: exp.Expr, over: _Over, binder: Binder) -> Expression:
        """An aggregate over the frame; some are expressions over several."""
        collected = Aggregates(self.context)
        bound = collected.bind(call, binder)
        columns: dict[str, Expression] = {}
        for aggregate in collected.found:
            if aggregate.function in _LISTS and not aggregate.order and not aggregate.distinct:
                aggregate = replace(aggregate, order=over.order)  # Spark lists the values as the frame has them
            found = self._new("aggregate", aggregate.type, over, frame=over.frame, aggregate=aggregate)
            columns[MARK + aggregate.name] = self._column(found)
        return substitute(bound, columns)

    def _new(
        self,
        function: WindowFunction,
        type_: DataType,
        over: _Over,
        arguments: tuple[Expression, ...] = (),
        *,
        offset: int = 0,
        ignore_nulls: bool = False,
        frame: WindowFrame | None = None,
        aggregate: Collected | None = None,
    ) -> FoundWindow:
        word = aggregate.function if aggregate is not None else function
        name = f"{word}_{len(self.found) + 1}"
        return FoundWindow(
            name, function, type_, over.partition, over.order, arguments, offset, ignore_nulls, frame, aggregate
        )

    def _over(self, node: exp.Window, binder: Binder) -> _Over:
        partition, ordered, spec = self._written(node)
        keys = tuple(self._typed(binder.bind(p)) for p in partition)
        order = tuple(
            Order(self._typed(expression), *direction(self.context, item))
            for item in (ordered.expressions if ordered is not None else ())
            # A constant orders nothing.
            if not isinstance(expression := binder.bind(item.this if isinstance(item, exp.Ordered) else item), Literal)
        )
        keys = tuple(k for k in keys if not isinstance(k, Literal))
        return _Over(tuple(dict.fromkeys((*self.keys, *keys))), order, self._frame(spec, order))

    def _written(self, node: exp.Window) -> tuple[list[exp.Expr], exp.Expr | None, exp.Expr | None]:
        """PARTITION BY, ORDER BY and the frame of a window, with those of the window that it names, and so on."""
        written = node.args.get("partition_by") or [], node.args.get("order"), node.args.get("spec")
        used = [node]
        while (alias := used[-1].args.get("alias")) is not None:
            named = self._named.get(alias.name.lower())
            if named is None:
                self.context.fail(alias, "WINDOW-FUNCTION", f"there is no window {alias.name}", hint="add WINDOW")
            if named in used:
                self.context.fail(alias, "WINDOW-FUNCTION", f"the window {alias.name} is defined by itself")
            used.append(named)
            further = named.args.get("partition_by") or [], named.args.get("order"), named.args.get("spec")
            for part, mine, its in zip(("PARTITION BY", "ORDER BY", "frame"), written, further, strict=True):
                if mine and its:
                    self.context.fail(
                        alias,
                        "WINDOW-FUNCTION",
                        f"the window {alias.name} already has a {part}",
                        hint="write the whole window instead of its name",
                    )
            written = written[0] or further[0], written[1] or further[1], written[2] or further[2]
        return written

    def _typed(self, expression: Expression) -> Expression:
        return Literal(None, INT32) if expression.type == types.NULL else expression

    def _frame(self, spec: exp.Expr | None, order: tuple[Order, ...]) -> WindowFrame:
        if spec is None:
            # Without a frame: up to the last row that is equal in the order.
            return WindowFrame("range", None, 0) if order else _WHOLE
        unit = str(spec.args.get("kind") or "").lower()
        if unit not in ("rows", "range") or spec.args.get("exclude"):
            frame = "a frame with EXCLUDE" if spec.args.get("exclude") else f"a frame of {unit.upper()}"
            self.context.fail(spec, "WINDOW-FUNCTION", f"{frame} is not supported", hint="use ROWS or RANGE BETWEEN")
        start = self._bound(spec, "start", unit, order)
        end = self._bound(spec, "end", unit, order) if spec.args.get("end") is not None else 0
        if not order and unit == "range":
            start, end = None, None  # all rows are equal in the order
        if start is not None and end is not None and start > end:
            self.context.fail(spec, "WINDOW-FUNCTION", "the frame ends before it starts")
        return WindowFrame("rows" if unit == "rows" else "range", start, end)

    def _bound(self, spec: exp.Expr, end: str, unit: str, order: tuple[Order, ...]) -> int | None:
        value, side = spec.args.get(end), str(spec.args.get(f"{end}_side") or "").upper()
        word = value if isinstance(value, str) else value.name if isinstance(value, exp.Var) else ""
        if word.upper() == "CURRENT ROW":
            return 0
        if word.upper() == "UNBOUNDED":
            if (side == "PRECEDING") != (end == "start"):
                self.context.fail(spec, "WINDOW-FUNCTION", f"a frame can't {end} with UNBOUNDED {side}")
            return None
        sign = -1 if side == "PRECEDING" else 1
        if unit == "rows":
            return sign * self._number(spec, value, "ROWS")
        return sign * self._distance(spec, value, order)

    def _distance(self, spec: exp.Expr, value: exp.Expr | None, order: tuple[Order, ...]) -> int:
        """A distance between values of the order, in the unit in which the kernel counts them."""
        type_ = order[0].expression.type if len(order) == 1 else None
        if isinstance(value, exp.Interval) and type_ is not None and type_.is_temporal:
            unit = str(value.args.get("unit") or "").upper().rstrip("S")
            units = _DAYS if type_ == types.DATE else _MICROSECONDS
            if unit in units and value.this.name.isdigit():
                return int(value.this.name) * units[unit]
        elif type_ is not None and (type_.is_integer or type_ == types.DATE):
            return self._number(spec, value, "RANGE")
        self.context.fail(
            spec,
            "WINDOW-FUNCTION",
            "this distance of a RANGE frame is not supported",
            reason="it is added to the one ORDER BY expression, so that must be an integer, a date or a timestamp",
            hint="use ROWS, or order by an integer, a date or a timestamp",
        )

    def _number(self, place: exp.Expr, node: exp.Expr | None, word: str, *, least: int = 0) -> int:
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and least == 0 and word in ("LAG", "LEAD"):
            return -self._number(place, node.this, word)
        if not isinstance(node, exp.Literal) or not node.name.isdigit() or len(node.name) > 9 or int(node.name) < least:
            self.context.fail(
                place, "WINDOW-FUNCTION", f"{word} takes a whole number of at least {least}", hint="write a literal"
            )
        return int(node.name)


def _same(known: FoundWindow, found: FoundWindow) -> bool:
    def facts(window: FoundWindow) -> tuple[object, ...]:
        aggregate = None if window.aggregate is None else replace(window.aggregate, name="")
        return (
            window.function,
            window.partition,
            window.order,
            window.arguments,
            window.offset,
            window.ignore_nulls,
            window.frame,
            aggregate,
        )

    return facts(known) == facts(found)
