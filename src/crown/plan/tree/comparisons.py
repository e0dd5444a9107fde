"""Which residual comparisons the kernel can answer by an ordered index, and why the others are filters.

A comparison qualifies if it has the form `p + constant < q` (or <=) over two outputs, and the nodes that hold them are
neighbours in the tree, or only generalised or derived nodes are between them: enumeration, having fixed a row
on the one side, then visits only the matching rows on the other. A band is two of them over the same pair. Its
sides are often two variables (`b.t - 5`, `b.t + 5`) that one atom binds to one column plus constants: they count as
one value, so that one order serves both bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.plan import Comparison, Node, TreeStage
from crown.types import DataType, widens

_PRECISION = 18  # of decimals whose words are numbers


@dataclass(frozen=True)
class ResidualVerdict:
    """A residual predicate, with its comparison or the reason why it is not one."""

    predicate: Expression
    comparison: Comparison | None
    reason: str = ""


@dataclass(frozen=True)
class _Linear:
    """A sum of variables times numbers, and a constant, in units of the words."""

    terms: Mapping[str, int]
    constant: int

    def minus(self, other: _Linear) -> _Linear:
        names = dict.fromkeys([*self.terms, *other.terms])
        terms = {name: self.terms.get(name, 0) - other.terms.get(name, 0) for name in names}
        return _Linear({name: n for name, n in terms.items() if n}, self.constant - other.constant)


_ZERO = _Linear({}, 0)


def judge_residual(stage: TreeStage) -> tuple[ResidualVerdict, ...]:
    """Return a verdict on each residual predicate of the stage, in order."""
    lists = _Lists(stage.nodes)
    values = _values(stage)
    return tuple(_judge(predicate, values, lists) for predicate in stage.residual)


def _judge(predicate: Expression, values: Mapping[str, tuple[str, int]], lists: _Lists) -> ResidualVerdict:
    if not (isinstance(predicate, Call) and predicate.function in ("lt", "le", "gt", "ge")):
        return ResidualVerdict(predicate, None, "it is not a single <, <=, > or >=")
    sides = [_linear(argument) for argument in predicate.arguments]
    if predicate.function in ("gt", "ge"):
        sides.reverse()
    less, more = sides
    if less is None or more is None:
        return ResidualVerdict(predicate, None, "its sides are not numbers or times plus a constant")
    difference = less.minus(more)
    for name in tuple(difference.terms):
        base, offset = values.get(name, (name, 0))
        times = difference.terms.get(name, 0)  # 0 once an earlier name with the same base has cancelled it
        difference = difference.minus(_Linear({name: times}, 0)).minus(_Linear({base: -times}, -times * offset))
    if sorted(difference.terms.values()) != [-1, 1] or abs(difference.constant) >= 2**62:
        return ResidualVerdict(predicate, None, "it does not compare one value with another")
    upper, lower = sorted(difference.terms, key=difference.terms.__getitem__)
    reason = lists.claim(lower, upper)
    if reason:
        return ResidualVerdict(predicate, None, reason)
    return ResidualVerdict(predicate, Comparison(lower, difference.constant, upper, predicate.function in ("lt", "gt")))


def _linear(expression: Expression) -> _Linear | None:
    """Return the expression as a linear form over columns whose words are numbers, or one column of floats."""
    match expression:
        case Column(name, type_):
            known = type_.is_integer or type_.is_temporal or type_.is_float
            known = known or (type_.precision is not None and type_.precision <= _PRECISION)
            return _Linear({name: 1}, 0) if known else None
        case Literal(value, type_):
            if value is None or isinstance(value, bool | float):
                return None
            if type_.scale is not None:
                return _Linear({}, int(Decimal(value).scaleb(type_.scale)))
            return _Linear({}, int(value)) if type_.is_integer or type_.is_temporal else None
        case Call("cast", (inner,), type_):
            return _linear(inner) if _keeps_words(inner.type, type_) else None
        case Call("negate", (inner,), type_) if not type_.is_float:
            negated = _linear(inner)
            return None if negated is None else _ZERO.minus(negated)
        case Call("add" | "subtract" | "date_add" | "date_diff" | "add_microseconds" as function, (left, right), type_):
            if type_.is_float or len({part.type.scale for part in (left, right, expression)}) > 1:
                return None
            one, other = _linear(left), _linear(right)
            if one is None or other is None:
                return None
            return one.minus(other if function in ("subtract", "date_diff") else _ZERO.minus(other))
    return None


def _keeps_words(source: DataType, target: DataType) -> bool:
    """Whether a cast leaves the word as it is, whatever the value: it widens, and both are of one kind and scale."""
    return widens(source, target) and source.is_integer == target.is_integer and source.scale == target.scale


def _values(stage: TreeStage) -> dict[str, tuple[str, int]]:
    """For each output the output of the same atom that has the same value but for a constant, and the constant."""
    found: dict[str, tuple[str, int]] = {}
    joined: list[bool] = []
    outputs = frozenset(stage.outputs)
    for node in stage.nodes:
        joined.append(node.parent is None or (joined[node.parent] and node.edge == "join"))
    for node in (node for node, is_joined in zip(stage.nodes, joined, strict=True) if is_joined):
        if node.atom is None:
            continue
        atom = stage.atoms[node.atom]
        first: dict[str, tuple[str, int]] = {}
        for binding in atom.bindings:
            form = _linear(binding.expression)
            if form is None or list(form.terms.values()) != [1] or binding.variable not in outputs:
                continue
            (column,) = form.terms
            base, base_offset = first.setdefault(column, (binding.variable, form.constant))
            found.setdefault(binding.variable, (base, form.constant - base_offset))
    return found


@dataclass
class _Lists:
    """The lists of rows that enumeration walks, each of which is kept in one order at most."""

    nodes: Sequence[Node]
    order_of: dict[tuple[int, int], str] = field(default_factory=dict)  # node, neighbour from which it is entered

    def claim(self, lower: str, upper: str) -> str:
        """Order the lists on the path between two variables; return the reason if that is not possible."""
        path = min((self._path(one, other) for one in self._holding(lower) for other in self._holding(upper)), key=len)
        if len(path) == 1:
            return f"{self.nodes[path[0]].name} has both values"
        between = [self.nodes[index].name for index in path[1:-1] if self.nodes[index].atom is not None]
        if between:
            ends = f"{self.nodes[path[0]].name} and {self.nodes[path[-1]].name}"
            return f"{', '.join(between)} {'is' if len(between) == 1 else 'are'} between {ends} in the tree"
        claims = {(path[0], path[1]): lower, (path[-1], path[-2]): upper}
        for (node, neighbour), variable in claims.items():
            known = self.order_of.get((node, neighbour), variable)
            if known != variable:
                return f"{self.nodes[node].name} is already ordered by {known}"
        self.order_of.update(claims)
        return ""

    def _holding(self, variable: str) -> list[int]:
        return [index for index, node in enumerate(self.nodes) if node.connex and variable in node.variables]

    def _path(self, one: int, other: int) -> list[int]:
        up, down = self._upwards(one), self._upwards(other)
        meeting = next(index for index in up if index in down)
        return up[: up.index(meeting) + 1] + down[: down.index(meeting)][::-1]

    def _upwards(self, index: int | None) -> list[int]:
        found = []
        while index is not None:
            found.append(index)
            index = self.nodes[index].parent
        return found
