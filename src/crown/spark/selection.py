"""Selections of the query as Spark SQL, so that rows no atom wants are dropped before dispatch.

A row is kept when it could be a row of at least one atom over its table. Only comparisons and logic over columns and
literals are translated, where Spark and the kernel can't differ; for anything else the row is kept and the kernel
decides.
"""

from __future__ import annotations

from crown.expression import Call, Column, Expression, Literal
from crown.plan.model import Atom, BagStage, Plan, TreeStage

_COMPARISONS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "is_not_distinct": "<=>"}


def selection(plan: Plan, table: str) -> str | None:
    """The condition for rows of `table`, or None when all are needed."""
    conditions = []
    for stage in plan.stages:
        if isinstance(stage, TreeStage | BagStage):
            for atom in stage.atoms:
                if atom.source == table:
                    conditions.append(_condition(atom))
    wanted = [condition for condition in conditions if condition is not None]
    if not conditions or len(wanted) < len(conditions):
        return None
    return " OR ".join(f"({condition})" for condition in dict.fromkeys(wanted))


def _condition(atom: Atom) -> str | None:
    """What every row of the atom satisfies."""
    parts = [
        f"{quoted(binding.expression.name)} IS NOT NULL"
        for binding in atom.bindings
        if binding.variable in atom.not_null and isinstance(binding.expression, Column)
    ]
    conjuncts = _conjuncts(atom.filter) if atom.filter is not None else ()
    parts += [text for conjunct in conjuncts if (text := to_spark_sql(conjunct)) is not None]
    return " AND ".join(dict.fromkeys(parts)) or None


def _conjuncts(expression: Expression) -> tuple[Expression, ...]:
    if isinstance(expression, Call) and expression.function == "and":
        return tuple(part for argument in expression.arguments for part in _conjuncts(argument))
    return (expression,)


def to_spark_sql(expression: Expression) -> str | None:
    """The expression as Spark SQL text, or None where it isn't certain to mean the same.

    >>> to_spark_sql(Call("lt", (Column("a", "int64"), Literal(3, "int64")), "boolean"))
    '(`a` < CAST(3 AS BIGINT))'
    """
    match expression:
        case Column(name, _):
            return quoted(name)
        case Literal(value, type_):
            return _literal(value, type_)
        case Call(function, arguments, _):
            texts = [to_spark_sql(argument) for argument in arguments]
            known = [text for text in texts if text is not None]
            return _call(function, known) if len(known) == len(texts) else None


def _call(function: str, arguments: list[str]) -> str | None:
    if function in _COMPARISONS:
        return f"({arguments[0]} {_COMPARISONS[function]} {arguments[1]})"
    if function in ("and", "or"):
        return "(" + f" {function.upper()} ".join(arguments) + ")"
    if function == "not":
        return f"(NOT {arguments[0]})"
    if function == "is_null":
        return f"({arguments[0]} IS NULL)"
    if function == "in":
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    return None


def _literal(value: object, type_: str) -> str | None:
    names = {
        "boolean": "BOOLEAN",
        "int8": "TINYINT",
        "int16": "SMALLINT",
        "int32": "INT",
        "int64": "BIGINT",
        "float32": "FLOAT",
        "float64": "DOUBLE",
    }
    if value is None:
        return None
    if type_ == "string":
        text = str(value)
        return f"'{text}'" if "'" not in text and "\\" not in text else None
    if type_ == "date":
        return f"date_from_unix_date({value})"
    if type_ == "timestamp":
        return f"timestamp_micros({value})"
    if type_.startswith("decimal"):
        return f"CAST('{value}' AS {type_.upper()})"
    if type_ in ("float32", "float64"):
        return f"CAST('{value!r}' AS {names[type_]})" if isinstance(value, int | float) else None
    if type_ in names:
        return f"CAST({str(value).lower()} AS {names[type_]})"
    return None


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
