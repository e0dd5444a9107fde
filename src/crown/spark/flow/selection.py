"""Express the query's selections as Spark SQL, so that rows that no atom needs are dropped before dispatch.

A row is kept when it could be a row of at least one atom over its table. Only comparisons and logic over columns and
literals are pushed to Spark, because there it can't differ from the kernel; for anything else the row is kept and the
kernel decides.
"""

from __future__ import annotations

from crown.ir import render
from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.plan import Atom, BagStage, Plan, TreeStage
from crown.ir.render import quoted

__all__ = ["compares", "exact_spark_sql", "quoted", "selection"]

_SAME_IN_SPARK = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "is_not_distinct", "and", "or", "not", "is_null", "in"})


def selection(plan: Plan, table: str) -> str | None:
    """Return the condition for rows of `table`, or None when all are needed."""
    conditions = [_condition(atom) for atom in _atoms(plan, table)]
    wanted = [condition for condition in conditions if condition is not None]
    if not conditions or len(wanted) < len(conditions):
        return None
    return " OR ".join(f"({condition})" for condition in dict.fromkeys(wanted))


def compares(plan: Plan, table: str) -> bool:
    """Return whether the condition for rows of `table` is more than a check for NULL."""
    return all(_comparisons(atom) for atom in _atoms(plan, table))


def _atoms(plan: Plan, table: str) -> list[Atom]:
    trees = [stage for stage in plan.stages if isinstance(stage, TreeStage | BagStage)]
    return [atom for stage in trees for atom in stage.atoms if atom.source == table]


def _condition(atom: Atom) -> str | None:
    """Return what every row of the atom satisfies."""
    parts = [
        f"{quoted(binding.expression.name)} IS NOT NULL"
        for binding in atom.bindings
        if binding.variable in atom.not_null and isinstance(binding.expression, Column)
    ]
    return " AND ".join(dict.fromkeys(parts + _comparisons(atom))) or None


def _comparisons(atom: Atom) -> list[str]:
    conjuncts = _conjuncts(atom.filter) if atom.filter is not None else ()
    return [f"({text})" for conjunct in conjuncts if (text := exact_spark_sql(conjunct)) is not None]


def _conjuncts(expression: Expression) -> tuple[Expression, ...]:
    if isinstance(expression, Call) and expression.function == "and":
        return tuple(part for argument in expression.arguments for part in _conjuncts(argument))
    return (expression,)


def exact_spark_sql(expression: Expression) -> str | None:
    """Return the expression as Spark SQL text, or None where it isn't certain to mean the same.

    >>> from crown.types import BOOLEAN, INT64
    >>> exact_spark_sql(Call("lt", (Column("a", INT64), Literal(3, INT64)), BOOLEAN))
    '`a` < 3'
    """
    return render.to_spark_sql(expression) if _means_the_same(expression) else None


def _means_the_same(expression: Expression) -> bool:
    match expression:
        case Column(_, type_):
            return "map<" not in type_  # Spark does not compare maps
        case Literal(None, _) | Literal(str(), "float32" | "float64" | "binary"):
            return False
        case Literal(str(text), "string"):
            # What a backslash means is a setting of Spark's parser.
            return "'" not in text and "\\" not in text
        case Literal():
            return True
        case Call(function, arguments, _):
            return function in _SAME_IN_SPARK and all(map(_means_the_same, arguments))
