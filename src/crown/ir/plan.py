"""The Plan: plain frozen data with a JSON form. The kernel reads only this.

A plan is a list of stages in dependency order. A stage turns the net changes of its sources (tables or
earlier stages) into the net changes of its own rows; the last stage is the view, unless the plan names several
results. Rows between stages are signed: weight +n for n inserted copies, -n for n deleted ones.

The Rust mirror of this file is `crates/crown-kernel/src/plan.rs`; change both together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal as OneOf
from typing import TypeAlias

from crown.ir.expression import Expression
from crown.ir.tables import Table, TableColumn
from crown.types import DataType

VERSION = 1  # of the JSON form
OPTIONAL = {"optional": True}  # of a field that JSON has only if it is not None


@dataclass(frozen=True)
class Variable:
    name: str
    type: DataType
    nullable: bool


@dataclass(frozen=True)
class Binding:
    """`variable` takes the value of `expression` (over the source's columns) in each row of the source."""

    variable: str
    expression: Expression


@dataclass(frozen=True)
class Atom:
    """One use of a table or stage. Two bindings of one variable mean that both values must be equal.

    Rows for which `filter` is not TRUE, or with NULL in a `not_null` variable, are not rows of the atom.
    Rows that become equal after binding are one atom row with a multiplicity.
    """

    name: str
    source: str
    bindings: tuple[Binding, ...]
    filter: Expression | None = None
    not_null: tuple[str, ...] = ()

    @cached_property
    def variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(b.variable for b in self.bindings))


@dataclass(frozen=True)
class Node:
    """A node of the tree. Nodes are listed parents first; node 0 is the root.

    A relation node has an `atom` (index into the tree's atoms) and exactly its variables. A generalised or
    derived node has none: a row of it exists while at least one guard child (key = all its variables) has
    that key. A row is in the semi-join view when every child is satisfied: `join` and `exists` children when they
    have the key, `anti` children when they don't. An `exists` child counts as 1 in annotations, whatever
    its multiplicity. `exists` and `anti` children, and all below them, are never connex.
    An `optional` child is always satisfied: while it has no row with the key it shows one row, once, in which all its
    variables but those of the key are NULL; a ring factor of its atom reads none of the key. Only atoms that drop NULL
    in the key hang by such an edge, and below one only further ones, by a key with variables that are not in its own.
    A generalised node's children by `anti` or `optional` edge are not guards.
    """

    name: str
    variables: tuple[str, ...]
    atom: int | None
    parent: int | None
    key: tuple[str, ...]  # shared with the parent, in one order for both sides; () for the root
    connex: bool
    edge: OneOf["join", "exists", "anti", "optional"] = "join"


@dataclass(frozen=True)
class Factor:
    atom: int
    expression: Expression  # over the atom's variables; NULL makes the whole product count as absent


@dataclass(frozen=True)
class RingComponent:
    """Sum over all join rows of the product of factors, one per atom at most; no factors: the row count.

    Numeric as `type` says: `int64`, `decimal(38,s)` (exact) or `float64`. The product's scale is the sum of
    the factors' scales. The component is 0, never NULL; the planner adds counts where SQL needs NULL.
    """

    name: str
    factors: tuple[Factor, ...]
    type: DataType


@dataclass(frozen=True)
class Comparison:
    """`lower` + `offset` < `upper`, or <= unless `strict`, between two outputs; the offset in the columns' own unit.

    Both have a type whose words the kernel can order (no string, no decimal of more than 18 digits); of floats the
    offset is 0. It must follow from the stage's residual, which is still evaluated: the kernel stores the rows that
    enumeration finds by the one value in the order of the other, and visits only those that can match.
    """

    lower: str
    offset: int
    upper: str
    strict: bool


@dataclass(frozen=True)
class TreeStage:
    """The join-free plan of one conjunction.

    mode `set`: each output row once. `bag`: with its multiplicity as weight. `ring`: each output row once, with
    the ring components as further columns after `outputs`; a changed value is a -1 of the old and a +1
    of the new row. With no outputs, mode `ring` and `always`, the one row exists even when nothing joins.
    Rows for which some `residual` (over outputs) is not TRUE are left out; `ordered` are bounds that follow from them.
    """

    id: str
    variables: tuple[Variable, ...]
    atoms: tuple[Atom, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    mode: OneOf["set", "bag", "ring"]
    ring: tuple[RingComponent, ...] = ()
    residual: tuple[Expression, ...] = ()
    always: bool = False
    ordered: tuple[Comparison, ...] = ()


@dataclass(frozen=True)
class BagStage:
    """The join of the atoms of one bag of a cyclic query, maintained by worst-case-optimal delta joins.

    Emits rows over `outputs` (all its variables unless projected) with their multiplicity. `order` is the
    order in which variables are bound; each update binds the updated atom's variables first.
    """

    id: str
    variables: tuple[Variable, ...]
    atoms: tuple[Atom, ...]
    outputs: tuple[str, ...]
    order: tuple[str, ...]


@dataclass(frozen=True)
class MapColumn:
    name: str
    type: DataType
    nullable: bool
    expression: Expression  # over the input stage's columns


@dataclass(frozen=True)
class MapStage:
    """Filter (rows for which `filter` is TRUE), then compute `columns`. No state."""

    id: str
    input: str
    columns: tuple[MapColumn, ...]
    filter: Expression | None = None


@dataclass(frozen=True)
class OrderBy:
    expression: Expression
    descending: bool
    nulls_first: bool


Folding: TypeAlias = OneOf[
    "count", "count_distinct", "sum", "avg", "min", "max",
    "var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr",
    "first", "string_agg", "array_agg", "skewness", "kurtosis",
    "percentile_cont", "percentile_disc", "mode", "bit_and", "bit_or", "bit_xor",
]  # fmt: skip


@dataclass(frozen=True)
class AggregateColumn:
    """count (argument None: all rows; else the non-NULL), count_distinct, sum, avg, min, max, ...: as in SQL.

    sum: int64 for integers, decimal for decimals, float64 for floats; avg: float64, or decimal as typed. Variances,
    covariances (of `argument` and `further`) and percentile_cont: of float64. first (NULLs too), string_agg and
    percentiles take the values by `order`, then by value. `distinct`: each value once. Rows for which `condition` is
    not TRUE don't count. `parameter`: string_agg's separator, a percentile's fraction.
    """

    name: str
    function: Folding
    argument: Expression | None
    type: DataType
    further: tuple[Expression, ...] = ()
    order: tuple[OrderBy, ...] = ()
    condition: Expression | None = None
    distinct: bool = False
    parameter: str | None = None


@dataclass(frozen=True)
class AggregateStage:
    """Folds its input's changes into groups. Columns: `group`, then the aggregates. `always`: global aggregate."""

    id: str
    input: str
    group: tuple[str, ...]
    aggregates: tuple[AggregateColumn, ...]
    always: bool = False


@dataclass(frozen=True)
class DistinctStage:
    """Each row of the input once. Stores the input's rows with their weights."""

    id: str
    input: str


@dataclass(frozen=True)
class MaterializeStage:
    """The input unchanged, stored with weights so that a set operation can look rows up."""

    id: str
    input: str


@dataclass(frozen=True)
class SetOperationStage:
    """With m and n the weights of a row in the two inputs: union all m+n, union min(1,m+n), except all max(0,m-n),
    except (m>0 and n=0), intersect all min(m,n), intersect (m>0 and n>0). Looks rows up in its inputs, which must be
    able to (see `crown.plan.promise`); any stage will do for union all.
    """

    id: str
    operator: OneOf["union", "except", "intersect"]
    all: bool
    inputs: tuple[str, str]


RankFunction: TypeAlias = OneOf["row_number", "rank", "dense_rank"]


@dataclass(frozen=True)
class RankColumn:
    name: str
    function: RankFunction


@dataclass(frozen=True)
class TopStage:
    """The first `limit` rows after `offset` by `order`, ties broken by the whole row; of each `partition`.

    `by` says what the limit counts: rows, or with ties (`rank`, `dense_rank`). Columns: the input's, then `ranks`.
    """

    id: str
    input: str
    order: tuple[OrderBy, ...]
    limit: int
    offset: int = 0
    partition: tuple[str, ...] = ()
    by: RankFunction = "row_number"
    ranks: tuple[RankColumn, ...] = ()


WindowFunction: TypeAlias = OneOf[
    "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile",
    "lag", "first_value", "last_value", "nth_value", "aggregate",
]  # fmt: skip


@dataclass(frozen=True)
class WindowFrame:
    """The rows around the current one that a window function reads: by position (`rows`), or by the distance of their
    order value (`range`). An offset is negative before the current row; None is the end of the partition.
    """

    unit: OneOf["rows", "range"]
    start: int | None
    end: int | None


@dataclass(frozen=True)
class WindowValue:
    """A window function over the rows of a stage, see `crown.ir.query.WindowColumn`."""

    name: str
    function: WindowFunction
    type: DataType
    arguments: tuple[Expression, ...]
    offset: int
    ignore_nulls: bool
    frame: WindowFrame | None
    aggregate: AggregateColumn | None


@dataclass(frozen=True)
class WindowStage:
    """The rows of the input, each with values that depend on its place in its partition; ties broken by the whole row.

    Stores the partitions in order. Columns: the input's, then `columns`.
    """

    id: str
    input: str
    partition: tuple[str, ...]
    order: tuple[OrderBy, ...]
    columns: tuple[WindowValue, ...]


@dataclass(frozen=True)
class ValuesStage:
    """Constant rows of the plan, as expressions without columns."""

    id: str
    columns: tuple[Variable, ...]
    rows: tuple[tuple[Expression, ...], ...]


ITSELF = "$itself"  # what the step of a recursion calls the recursion's own rows


@dataclass(frozen=True)
class RecursionStage:
    """The rows of `base`, and those that `stages` (the step) repeatedly derive from the recursion's own rows.

    The step's last stage produces its rows, with the columns of `base`. Its stages read `ITSELF`, each other and
    earlier stages, but no tables. They are trees that join `ITSELF` (once, in each tree that reads it), maps and UNION
    ALL, and produce a row once for each row that it is derived from. `all`: with duplicates. More than `limit` rounds
    in a batch are an error; None: the query is known to terminate. `name` is the user's.
    """

    id: str
    name: str
    base: str
    stages: tuple[Stage, ...]
    all: bool
    limit: int | None


Stage: TypeAlias = (
    TreeStage
    | BagStage
    | MapStage
    | AggregateStage
    | DistinctStage
    | MaterializeStage
    | SetOperationStage
    | TopStage
    | ValuesStage
    | WindowStage
    | RecursionStage
)


def sources_of(stage: Stage) -> tuple[str, ...]:
    """Return the tables and earlier stages that a stage reads."""
    match stage:
        case TreeStage() | BagStage():
            return tuple(atom.source for atom in stage.atoms)
        case SetOperationStage():
            return stage.inputs
        case ValuesStage():
            return ()
        case RecursionStage():
            own = {ITSELF, *(inner.id for inner in stage.stages)}
            read = dict.fromkeys(source for inner in stage.stages for source in sources_of(inner) if source not in own)
            return (stage.base, *read)
    return (stage.input,)


@dataclass(frozen=True)
class Route:
    """Where the rows of one atom go: for each HyperCube dimension the expression to hash, or None to replicate."""

    stage: str
    atom: int
    coordinates: tuple[Expression | None, ...]  # over the source table's columns
    shares: tuple[int, ...] | None = field(default=None, metadata=OPTIONAL)  # None: those of the routing


@dataclass(frozen=True)
class Routing:
    """HyperCube: `shares` per dimension, their product is the number of cells; one route per atom over a table.

    Routes are in the order of stages and atoms; a row's atom mask has bit i for route i.
    """

    cells: int
    dimensions: tuple[str, ...]  # the variables that are shared, for explain
    shares: tuple[int, ...]
    routes: tuple[Route, ...]


@dataclass(frozen=True)
class NamedResult:
    """One of several views that a plan maintains: the rows of a stage. `columns` and `bag` are as in `Plan`."""

    name: str
    stage: str
    columns: tuple[TableColumn, ...]
    bag: bool


@dataclass(frozen=True)
class Plan:
    """`columns` are those of the last stage, renamed for the user. `bag`: results carry a multiplicity.

    A plan with `results` maintains several views at once, or none yet; stages that several of them read are stored
    once.
    """

    sql: str
    tables: tuple[Table, ...]
    stages: tuple[Stage, ...]
    columns: tuple[TableColumn, ...]
    bag: bool
    order: tuple[OrderBy, ...] = ()  # of pulled results only; over the last stage's columns
    routing: Routing | None = None
    version: int = VERSION
    results: tuple[NamedResult, ...] | None = field(default=None, metadata=OPTIONAL)

    @cached_property
    def by_id(self) -> Mapping[str, Stage]:
        """Every stage, those of recursions' steps too."""
        return {stage.id: stage for stage in every_stage(self)}


def every_stage(plan: Plan) -> tuple[Stage, ...]:
    """Return the stages of a plan with those of its recursions' steps, in order."""
    found: list[Stage] = []
    for stage in plan.stages:
        found += stage.stages if isinstance(stage, RecursionStage) else ()
        found.append(stage)
    return tuple(found)
