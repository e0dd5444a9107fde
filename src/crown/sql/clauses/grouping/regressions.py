"""REGR_COUNT, REGR_SLOPE and the like: arithmetic over counts, averages, variances and covariances."""

from __future__ import annotations

from typing import Protocol

from sqlglot import exp

from crown.ir.expression import Call, Expression, Literal
from crown.ir.query import AggregateFunction
from crown.types import BOOLEAN, FLOAT64

REGRESSIONS: tuple[type[exp.Expr], ...] = (
    exp.RegrCount,
    exp.RegrAvgx,
    exp.RegrAvgy,
    exp.RegrSxx,
    exp.RegrSyy,
    exp.RegrSxy,
    exp.RegrSlope,
    exp.RegrIntercept,
    exp.RegrR2,
)


class Aggregated(Protocol):
    """Adds an aggregate of these values."""

    def __call__(self, function: AggregateFunction, *of: Expression) -> Expression: ...


def regression(kind: type[exp.Expr], y: Expression, x: Expression, aggregated: Aggregated) -> Expression:
    """Return the aggregate of `y`, which depends on `x`; both are NULL where one is."""
    if kind is exp.RegrCount:
        return aggregated("count", x)
    if kind in (exp.RegrAvgx, exp.RegrAvgy):
        return aggregated("avg", x if kind is exp.RegrAvgx else y)
    if kind in (exp.RegrSxx, exp.RegrSyy):
        return _summed(aggregated("var_pop", x if kind is exp.RegrSxx else y), aggregated("count", x))
    if kind is exp.RegrSxy:
        return _summed(aggregated("covar_pop", y, x), aggregated("count", x))
    spread = aggregated("var_pop", x)
    if kind is exp.RegrR2:
        other, correlation = aggregated("var_pop", y), aggregated("corr", y, x)
        squared = _number("multiply", correlation, correlation)
        return _unless_zero(spread, _unless_zero(other, squared, Literal(1.0, FLOAT64)))
    slope = _unless_zero(spread, _number("divide", aggregated("covar_pop", y, x), spread))
    if kind is exp.RegrSlope:
        return slope
    return _number("subtract", aggregated("avg", y), _number("multiply", slope, aggregated("avg", x)))


def _summed(mean: Expression, count: Expression) -> Expression:
    return _number("multiply", mean, Call("cast", (count,), FLOAT64))


def _unless_zero(value: Expression, then: Expression, otherwise: Expression | None = None) -> Expression:
    zero = Call("eq", (value, Literal(0.0, FLOAT64)), BOOLEAN)
    return Call("case", (zero, otherwise or Literal(None, FLOAT64), then), FLOAT64)


def _number(function: str, *arguments: Expression) -> Expression:
    return Call(function, arguments, FLOAT64)
