"""The interface of the binder that rules for single functions see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from sqlglot import exp

from crown.ir.expression import Expression
from crown.sql.context import Context
from crown.types import DataType


class ScalarBinder(Protocol):
    """Binds the arguments of a function, and the call itself."""

    @property
    def context(self) -> Context: ...

    @property
    def parameters(self) -> tuple[Mapping[str, Expression], ...]:
        """The parameters, by name, of each function whose body is being bound, from the outermost in."""

    def with_parameters(self, parameters: Mapping[str, Expression]) -> ScalarBinder:
        """Return a binder that also sees these parameters."""

    def bind(self, node: exp.Expr) -> Expression:
        """Return the typed expression of `node`."""

    def string(self, node: exp.Expr) -> Expression:
        """Return the expression of `node`, cast to a string."""

    def call(self, function: str, arguments: list[Expression], type_: DataType, node: exp.Expr) -> Expression:
        """Return a call of the kernel's `function`, folded where its arguments are constants."""


# The rule of a function by its name, and the rule of one of sqlglot's classes.
Special: TypeAlias = Callable[[ScalarBinder, exp.Expr, Sequence[exp.Expr]], Expression]
Handler: TypeAlias = Callable[[ScalarBinder, exp.Expr], Expression]
