"""Walks over a syntax tree. sqlglot's own walk takes several times as long, which counts for 10,000 values."""

from __future__ import annotations

from typing import TypeVar

from sqlglot import exp

_Node = TypeVar("_Node", bound=exp.Expr)
_LEAVES = (exp.Literal, exp.Identifier, exp.Null, exp.Boolean)


def nodes_of(root: exp.Expr) -> list[exp.Expr]:
    """Return the nodes of a tree, each before those below it, and each level before the next.

    >>> import sqlglot
    >>> [type(node).__name__ for node in nodes_of(sqlglot.parse_one("a + 1"))]
    ['Add', 'Column', 'Literal', 'Identifier']
    """
    found = [root]
    for node in found:  # which grows meanwhile
        if type(node) in _LEAVES:
            continue
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                found.append(value)
            elif type(value) is list:
                found += [part for part in value if isinstance(part, exp.Expr)]
    return found


def nodes_of_kind(root: exp.Expr, *kinds: type[_Node]) -> list[_Node]:
    """Return the nodes of these kinds, in the order of `nodes_of`."""
    return [node for node in nodes_of(root) if isinstance(node, kinds)]
