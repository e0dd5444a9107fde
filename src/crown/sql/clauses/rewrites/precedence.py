"""Operators without parentheses: bind them as the dialect does, where the parser binds them differently.

The parser has one level for `|`, `^`, `&`, shifts and `||`, and a higher one for `+` and `-`, as PostgreSQL and DuckDB
do. In Spark `||` is on the level of `+`, and shifts, `&`, `^` and `|` each have a separate, lower level. Where
neither is known to be right, and where the parser orders comparisons differently, the query is refused.
"""

from __future__ import annotations

from sqlglot import exp

from crown.sql.context import Context
from crown.sql.nodes import nodes_of_kind

_LEVELS: dict[type[exp.Expr], int] = {
    exp.BitwiseOr: 0,
    exp.BitwiseXor: 1,
    exp.BitwiseAnd: 2,
    exp.BitwiseLeftShift: 3,
    exp.BitwiseRightShift: 3,
    exp.DPipe: 4,
    exp.Add: 4,
    exp.Sub: 4,
}
_ONE_LEVEL = frozenset({"postgres", "redshift", "materialize", "risingwave", "duckdb"})
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_OPEN_ENDED = (exp.Like, exp.ILike, exp.RegexpLike, exp.Between)  # their last operand could go on


def bind_operators(context: Context, query: exp.Expr) -> None:
    """Order the operators of the whole query."""
    for comparison in nodes_of_kind(query, *_COMPARISONS):
        _check_comparison(context, comparison)
    if context.dialect.lower() in _ONE_LEVEL:
        return
    for operator in nodes_of_kind(query, *_LEVELS):
        if type(operator.parent) not in _LEVELS:
            _order(context, operator)


def _check_comparison(context: Context, node: exp.Expr) -> None:
    right, left = node.expression, node.this
    right = right.this if isinstance(right, exp.Not) else right
    if isinstance(right, (*_COMPARISONS, *_OPEN_ENDED, exp.In)) or isinstance(left, _OPEN_ENDED):
        context.fail(
            node,
            "SYNTAX",
            "this mixes comparisons without parentheses",
            reason="databases read it in different ways",
            hint="put parentheses around one of the comparisons",
        )


def _order(context: Context, root: exp.Expr) -> None:
    """Replace a chain of operators by the same chain in Spark's order."""
    operands, operators = _flat(root)
    levels = {_LEVELS[type(operator)] for operator in operators}
    if len({type(operator) for operator in operators} - {exp.Add, exp.Sub}) == 0 or _same_level(operators, levels):
        return
    if not context.is_spark:
        context.fail(
            root,
            "SYNTAX",
            "this mixes bitwise operators or || with other operators, without parentheses",
            reason="databases read it in different ways",
            hint="add parentheses",
        )
    values = [operands[0]]
    waiting: list[exp.Expr] = []
    for operator, operand in zip(operators, operands[1:], strict=True):
        while waiting and _LEVELS[type(waiting[-1])] >= _LEVELS[type(operator)]:
            _combine(values, waiting)
        waiting.append(operator)
        values.append(operand)
    while waiting:
        _combine(values, waiting)
    root.replace(values[0])


def _same_level(operators: list[exp.Expr], levels: set[int]) -> bool:
    """Whether the parser's order is also Spark's: one level, or only `+` and `-` below one other operator."""
    plain = {exp.Add, exp.Sub}
    kinds = {type(operator) for operator in operators}
    if exp.DPipe in kinds and kinds & plain:
        return False
    return len(levels - {4}) + (exp.DPipe in kinds) <= 1


def _flat(root: exp.Expr) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Return the operands and operators of a chain, in the order of the text."""
    operands: list[exp.Expr] = []
    operators: list[exp.Expr] = []
    waiting: list[tuple[exp.Expr, bool]] = [(root, False)]
    while waiting:
        node, is_operator = waiting.pop()
        if is_operator:
            operators.append(node)
        elif type(node) in _LEVELS:
            waiting += [(node.expression, False), (node, True), (node.this, False)]
        else:
            operands.append(node)
    return operands, operators


def _combine(values: list[exp.Expr], waiting: list[exp.Expr]) -> None:
    right, left, operator = values.pop(), values.pop(), waiting.pop()
    rest = {name: value for name, value in operator.args.items() if name not in ("this", "expression")}
    combined = type(operator)(this=left, expression=right, **rest)
    combined.meta.update(operator.meta)
    values.append(combined)
