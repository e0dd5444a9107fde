"""The normalised query: the output of the SQL layer and the input of the planner.

A `Query` is SQL in normalised form: equalities have become variables, predicates on one table sit on its atom,
semi-joins are conditions, outer joins are optional atoms or branches, and all names are resolved. Everything is plain
frozen data. The SQL text is stored only for messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias
from typing import Literal as OneOf

from crown.ir.expression import Expression
from crown.ir.plan import Atom, RankFunction, Variable, WindowFrame, WindowFunction
from crown.ir.tables import Table, TableColumn
from crown.types import DataType

AggregateFunction: TypeAlias = OneOf[
    "count", "sum", "avg", "min", "max",
    "var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr",
    "first", "string_agg", "array_agg", "skewness", "kurtosis",
    "percentile_cont", "percentile_disc", "mode", "bit_and", "bit_or", "bit_xor",
]  # fmt: skip
RANKS: Final = ("row_number", "rank", "dense_rank")
# A construct of the query that adds branches: the rows of an outer join without a match, the rows
# that pass a NOT EXISTS because they have no group, the further queries of a UNION ALL. "outer
# values" adds none: a subquery joined with the outer values that it is compared with.
Origin: TypeAlias = OneOf["outer join", "not exists", "union all", "outer values"]


@dataclass(frozen=True)
class Named:
    """A named expression: one column of a row."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Condition:
    """EXISTS (or NOT EXISTS, when `negated`) of a conjunction that shares variables with the outer one.

    `atoms` may themselves carry conditions one level down (`conditions`). Variables that occur in the
    outer conjunction too are the correlation; all others are existential.
    """

    atoms: tuple[Atom, ...]
    negated: bool
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class OptionalAtom:
    """An atom of an outer join's optional side, or of a subquery that is a value (`subquery`).

    It shows its rows that match, or one row of NULLs where none does.

    The variables it shares with the atoms around it are its key, and one of those atoms holds them all. All others are
    its own, and NULL where it has no match. `optional` are attached to it in the same way, by its own variables.
    """

    atom: Atom
    optional: tuple[OptionalAtom, ...] = ()
    subquery: bool = False


@dataclass(frozen=True)
class Conjunction:
    """Atoms joined by their shared variables, filtered by conditions and residual predicates; a bag of rows.

    `columns` are the columns that the surrounding `Select` sees, as expressions over the variables. `origins` are the
    constructs that made this one of several branches, and `reasons` say why an outer join could not be one tree.
    """

    variables: tuple[Variable, ...]  # all variables of atoms, conditions and optional atoms
    atoms: tuple[Atom, ...]
    columns: tuple[Named, ...]
    conditions: tuple[Condition, ...] = ()
    residual: tuple[Expression, ...] = ()  # over variables of atoms; a row stays when all are TRUE
    origins: tuple[Origin, ...] = ()
    optional: tuple[OptionalAtom, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Order:
    expression: Expression  # over the output columns of the body, or what the aggregate reads
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Aggregate:
    """`argument` is over the branches' columns; None only for COUNT(*).

    `further` are the second value of a covariance, or further values of COUNT(DISTINCT a, b). `first`, `string_agg` and
    percentiles read the values by `order`, and of `first` only rows for which `condition` holds. `parameter` is the
    separator or the fraction.
    """

    name: str
    function: AggregateFunction
    argument: Expression | None
    distinct: bool
    type: DataType
    further: tuple[Expression, ...] = ()
    order: tuple[Order, ...] = ()
    condition: Expression | None = None
    parameter: str | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All expressions that it reads."""
        first = () if self.argument is None else (self.argument,)
        last = () if self.condition is None else (self.condition,)
        return (*first, *self.further, *(order.expression for order in self.order), *last)

    def over(self, rewrite: Callable[[Expression], Expression]) -> Aggregate:
        """The same aggregate of other expressions."""
        return replace(
            self,
            argument=None if self.argument is None else rewrite(self.argument),
            further=tuple(map(rewrite, self.further)),
            order=tuple(replace(order, expression=rewrite(order.expression)) for order in self.order),
            condition=None if self.condition is None else rewrite(self.condition),
        )


@dataclass(frozen=True)
class Select:
    """SELECT over the bag union of its branches (one unless outer joins, NOT EXISTS or UNION ALL add more).

    Without aggregation (`group_by` is None) `outputs` read the branches' columns; with it they, and
    `having`, read the names in `group_by` and `aggregates`. An empty `group_by` is a global aggregate. With `sets`
    there are groups for each of these subsets of `group_by`, in which the other columns are NULL, and `grouping_name`
    of a column is 1.
    """

    branches: tuple[Conjunction, ...]
    outputs: tuple[Named, ...]
    distinct: bool = False
    group_by: tuple[Named, ...] | None = None
    aggregates: tuple[Aggregate, ...] = ()
    having: Expression | None = None
    sets: tuple[tuple[str, ...], ...] | None = None


def grouping_name(column: str) -> str:
    """The column that tells whether a grouping set is without a column of `group_by`."""
    return f"grouping({column})"


@dataclass(frozen=True)
class SetOperation:
    """Columns are matched by position; names and types are those of `left` (the SQL layer casts)."""

    operator: OneOf["union", "except", "intersect"]
    all: bool
    left: Body
    right: Body


NO_LIMIT = 1 << 62  # more rows than any result has


@dataclass(frozen=True)
class Top:
    """ORDER BY ... LIMIT [OFFSET]. Columns after the first `shown` only order the rows. The limit may be `NO_LIMIT`."""

    input: Body
    order: tuple[Order, ...]
    limit: int
    offset: int = 0
    shown: int | None = None


@dataclass(frozen=True)
class Values:
    """Literal rows of the query; their expressions read no columns."""

    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True)
class WindowColumn:
    """A window function. `arguments` are over the input's columns; `aggregate` folds the rows of the frame.

    `lag` has the value, then what it is without a row; a lead is a lag by a negative `offset`. `ntile` has `offset`
    buckets, `nth_value` counts from 1.
    """

    name: str
    function: WindowFunction
    type: DataType
    arguments: tuple[Expression, ...] = ()
    offset: int = 0
    ignore_nulls: bool = False
    frame: WindowFrame | None = None
    aggregate: Aggregate | None = None


@dataclass(frozen=True)
class Windowed:
    """The input's rows, each with the values of window functions over one partition and order.

    `limit`: only the rows whose `by` is at most that are needed; all columns are then ranks. `word`: what the query
    calls it, if that is not a window function.
    """

    input: Body
    partition: tuple[str, ...]  # output columns of the input
    order: tuple[Order, ...]
    columns: tuple[WindowColumn, ...]
    by: RankFunction = "row_number"
    limit: int | None = None
    word: str = ""


@dataclass(frozen=True)
class Recursion:
    """WITH RECURSIVE: the rows of `base`, and those that `step` derives from the rows so far, until there are no new
    ones.

    Atoms of `step`, and of the bodies in `nested` (in dependency order), read the rows so far under the name of this
    nested query itself. Each of their conjunctions joins them once. Names and types of columns are those of `base`.
    `name` is what the query calls it.
    """

    name: str
    base: Body
    step: Body
    all: bool
    nested: tuple[tuple[str, Body], ...] = ()


Body: TypeAlias = Select | SetOperation | Top | Values | Windowed | Recursion


@dataclass(frozen=True)
class Query:
    """A bound query. Atoms name their source: a table, or one of `nested` (by name, in dependency order)."""

    sql: str
    tables: tuple[Table, ...]  # those the query reads, reduced to what it needs
    body: Body
    nested: tuple[tuple[str, Body], ...] = ()
    order: tuple[Order, ...] = ()  # ORDER BY without LIMIT: the order of pulled results only
