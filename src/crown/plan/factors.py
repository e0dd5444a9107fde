"""Rewrite aggregate arguments as sums of products of factors that each read one atom (section 6.3 of the paper).

The sum over all join rows of a product of per-atom factors is a ring component: each atom row carries its factor,
and the tree multiplies and adds. A sum of such products is several components, by linearity. A product of sums is
multiplied out, up to `PRODUCTS` products; beyond that the rows are folded one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from crown.ir.expression import Call, Expression, Literal, LiteralValue, fails_on_its_own
from crown.ir.nullability import Nullable, may_be_null
from crown.ir.scalars import cast, null_if, variables_of
from crown.plan.tree.draft import RingTerm
from crown.plan.tree.hypergraph import Hyperedge
from crown.types import BOOLEAN, FLOAT64, INT64, MAX_PRECISION, DataType, longest_decimal

PRODUCTS = 64


@dataclass(frozen=True)
class _Product:
    factors: tuple[Expression, ...]


def sum_terms(
    name: str, argument: Expression, edges: Sequence[Hyperedge], nullable: Nullable
) -> tuple[RingTerm, ...] | None:
    """Return the components whose sum is SUM(argument); None if it is not a sum of products of one-atom factors."""
    products = _products(argument, edges, nullable)
    if products is None or not argument.type.is_numeric:
        return None
    terms = []
    for position, product in enumerate(products):
        typed = _typed(product)
        if typed is None:
            return None
        factors, type_ = typed
        # A NULL in one summand makes the whole argument NULL, so the other summands must not count
        # then either.
        others = [f for other in products if other is not product for f in other.factors if may_be_null(f, nullable)]
        guards = tuple(
            _one_unless_null(factor, type_) for factor in dict.fromkeys(others) if factor not in product.factors
        )
        terms.append(RingTerm(f"{name}.{position}", factors + guards, type_))
    return tuple(terms)


def count_term(
    name: str, argument: Expression | None, edges: Sequence[Hyperedge], nullable: Nullable
) -> RingTerm | None:
    """Return the component that is COUNT(argument), or COUNT(*) without one; None as for `sum_terms`."""
    if argument is None or not may_be_null(argument, nullable):
        return RingTerm(name, (), INT64)
    if _home(argument, edges):
        return RingTerm(name, (_one_unless_null(argument, INT64),), INT64)
    products = _products(argument, edges, nullable)
    if products is None:
        return None
    parts = dict.fromkeys(f for product in products for f in product.factors if may_be_null(f, nullable))
    return RingTerm(name, tuple(_one_unless_null(factor, INT64) for factor in parts), INT64)


def _one_unless_null(expression: Expression, type_: DataType) -> Expression:
    one = Literal("1", longest_decimal(0)) if type_.is_decimal else Literal(1 if type_ == INT64 else 1.0, type_)
    return null_if(Call("is_null", (expression,), BOOLEAN), one)


def _home(expression: Expression, edges: Sequence[Hyperedge]) -> bool:
    read = frozenset(variables_of([expression]))
    return any(read <= edge for edge in edges) and not fails_on_its_own(expression)


def _products(expression: Expression, edges: Sequence[Hyperedge], nullable: Nullable) -> list[_Product] | None:
    """Return the products whose sum is the expression, each of factors over one atom; None when it is no such sum."""

    def inside(part: Expression) -> list[_Product] | None:
        return _products(part, edges, nullable)

    if _home(expression, edges):
        return [_Product((_without_widening(expression),))]
    match expression:
        case Call("add" | "subtract" as function, (left, right)):
            one, other = inside(left), inside(right)
            if one is None or other is None:
                return None
            return one + (other if function == "add" else [_negated(product) for product in other])
        case Call("negate", (argument,)):
            found = inside(argument)
            return None if found is None else [_negated(product) for product in found]
        case Call("multiply", (left, right), type_):
            return _crossed(inside(left), inside(right), type_)
        case Call("case", (when, then, Literal(otherwise))) if _is_zero(otherwise) and not may_be_null(then, nullable):
            # Where `when` is not TRUE the value is 0, and so is the product, since its other factor
            # is never NULL.
            chosen = Call("case", (when, Literal(1, INT64), Literal(0, INT64)), INT64)
            found = inside(then) if _home(chosen, edges) else None
            return None if found is None else [_Product((chosen, *product.factors)) for product in found]
        case Call("cast", (argument,), type_) if _moves_past_sums(argument.type, type_):
            found = inside(argument)
            if found is None or not type_.is_float:
                return found
            return [_Product(tuple(cast(factor, FLOAT64) for factor in product.factors)) for product in found]
    return None


def _crossed(one: list[_Product] | None, other: list[_Product] | None, type_: DataType) -> list[_Product] | None:
    """Return the product of two sums, if the type of the product holds all digits of each."""
    if one is None or other is None or len(one) * len(other) > PRODUCTS:
        return None
    crossed = [_Product(a.factors + b.factors) for a in one for b in other]
    exact = type_.scale is None or all(_scale(product) <= type_.scale for product in crossed)
    return crossed if exact else None


def _is_zero(value: LiteralValue) -> bool:
    return not isinstance(value, bool) and value is not None and Decimal(value) == 0


def _moves_past_sums(source: DataType, target: DataType) -> bool:
    """Whether casting a sum or product equals casting its parts, except for overflow."""
    if target.is_float:
        return source.is_numeric
    if source.is_integer:
        return target.is_integer or target.is_decimal
    return source.scale is not None and target.scale is not None and target.scale >= source.scale


def _without_widening(expression: Expression) -> Expression:
    """Return a decimal before it was widened to fit its neighbour, so that products have no unneeded digits."""
    while isinstance(expression, Call) and expression.function == "cast" and expression.type.is_decimal:
        (inner,) = expression.arguments
        if not _moves_past_sums(inner.type, expression.type):
            break
        expression = inner
    return expression


def _negated(product: _Product) -> _Product:
    first, *rest = product.factors
    return _Product((Call("negate", (first,), first.type), *rest))


def _scale(product: _Product) -> int:
    return sum(factor.type.scale or 0 for factor in product.factors)


def _typed(product: _Product) -> tuple[tuple[Expression, ...], DataType] | None:
    """Return the factors cast to one kind of number, and the component's type."""
    types = [factor.type for factor in product.factors]
    if any(type_.is_float for type_ in types):
        return tuple(cast(factor, FLOAT64) for factor in product.factors), FLOAT64
    if all(type_.is_integer for type_ in types):
        return tuple(cast(factor, INT64) for factor in product.factors), INT64
    scale = _scale(product)
    if scale > MAX_PRECISION or not all(type_.is_numeric for type_ in types):
        return None
    return tuple(
        cast(factor, longest_decimal(0)) if factor.type.is_integer else factor for factor in product.factors
    ), longest_decimal(scale)
