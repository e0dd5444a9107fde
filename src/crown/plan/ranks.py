"""ROW_NUMBER, RANK and DENSE_RANK that every reader bounds: only the first rows of each partition are needed.

`rn <= k` in an outer WHERE, in ON or QUALIFY has become a filter of the atoms that read the ranked rows. If all of them
have one, the ranks need not be maintained beyond the largest bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from crown.ir.atoms import body_atoms, map_atoms
from crown.ir.expression import Call, Column, Expression, Literal, columns_of
from crown.ir.plan import Atom
from crown.ir.query import RANKS, Body, Query, Windowed
from crown.ir.scalars import all_of

LARGEST = 2**31 - 1  # ranks are integers


def bound_ranks(query: Query) -> Query:
    """Return the query with `limit` set where ranks are bounded, and without filters that then hold for all rows."""
    for name in [name for name, _ in query.nested]:
        body = dict(query.nested)[name]
        if isinstance(body, Windowed):
            query = _bounded(query, name, body)
    return query


def _bounded(query: Query, name: str, body: Windowed) -> Query:
    atoms = [
        atom for one in (*(b for _, b in query.nested), query.body) for atom in body_atoms(one) if atom.source == name
    ]
    for position, ranked in enumerate(_chain(body)):
        if any(column.function not in RANKS for column in ranked.columns):
            continue
        for column in ranked.columns:
            bounds = [_bound(atom, column.name) for atom in atoms]
            known = [bound for bound in bounds if bound is not None]
            if not bounds or len(known) < len(bounds) or max(known) >= LARGEST:
                continue
            limit = max(known)
            assert column.function in RANKS
            first = replace(ranked, by=column.function, limit=limit)
            outermost = _reordered(body, position, first)
            if all(_holds_up_to(atom, column.name, limit) for atom in atoms):
                query = _without_filter(query, name, column.name, limit)
            return _with_body(query, name, _without_unread(query, name, outermost))
    return query


def _chain(body: Body) -> list[Windowed]:
    found = []
    while isinstance(body, Windowed):
        found.append(body)
        body = body.input
    return found


def _reordered(body: Windowed, position: int, first: Windowed) -> Windowed:
    """The stage at `position` of the chain as the last one; each adds columns and reads only those of the rows."""
    chain = _chain(body)
    inner = chain[-1].input
    for other in reversed([one for number, one in enumerate(chain) if number != position]):
        inner = replace(other, input=inner)
    return replace(first, input=inner)


def _without_unread(query: Query, name: str, body: Windowed) -> Windowed:
    """Drop ranks that nothing reads: then only inserted and deleted rows are changes."""
    read = {
        column
        for one in (*(b for _, b in query.nested), query.body)
        for atom in body_atoms(one)
        if atom.source == name
        for expression in (*(b.expression for b in atom.bindings), *([] if atom.filter is None else [atom.filter]))
        for column in columns_of(expression)
    }
    return replace(body, columns=tuple(column for column in body.columns if column.name in read))


def _bound(atom: Atom, column: str) -> int | None:
    """The largest value of the column that the atom's filter lets through."""
    found = [bound for part in _conjuncts(atom.filter) if (bound := _most(part, column)) is not None]
    return max(0, min(found)) if found else None


def _most(part: Expression, column: str) -> int | None:
    match part:
        case Call("le", (subject, Literal(int(value)))) | Call("ge", (Literal(int(value)), subject)):
            limit = value
        case Call("lt", (subject, Literal(int(value)))) | Call("gt", (Literal(int(value)), subject)):
            limit = value - 1
        case Call("eq", (subject, Literal(int(value)))) | Call("eq", (Literal(int(value)), subject)):
            limit = value
        case Call("in", (subject, *values)) if all(isinstance(v, Literal) and isinstance(v.value, int) for v in values):
            limit = max(int(v.value) for v in values if isinstance(v, Literal) and isinstance(v.value, int))
        case _:
            return None
    while isinstance(subject, Call) and subject.function == "cast" and subject.type.is_integer:
        (subject,) = subject.arguments
    return limit if isinstance(subject, Column) and subject.name == column and not isinstance(limit, bool) else None


def _says_no_more(part: Expression, column: str, limit: int) -> bool:
    """Whether the predicate holds for every rank up to the limit."""
    if _most(part, column) != limit:
        return False
    assert isinstance(part, Call)
    if part.function == "eq":
        return limit == 1
    if part.function == "in":
        return {v.value for v in part.arguments[1:] if isinstance(v, Literal)} >= set(range(1, limit + 1))
    return True


def _holds_up_to(atom: Atom, column: str, limit: int) -> bool:
    return any(_says_no_more(part, column, limit) for part in _conjuncts(atom.filter))


def _conjuncts(expression: Expression | None) -> Iterator[Expression]:
    if isinstance(expression, Call) and expression.function == "and":
        for argument in expression.arguments:
            yield from _conjuncts(argument)
    elif expression is not None:
        yield expression


def _with_body(query: Query, name: str, body: Windowed) -> Query:
    return replace(query, nested=tuple((n, body if n == name else b) for n, b in query.nested))


def _without_filter(query: Query, name: str, column: str, limit: int) -> Query:
    def rewrite(atom: Atom) -> Atom:
        if atom.source != name:
            return atom
        kept = [part for part in _conjuncts(atom.filter) if not _says_no_more(part, column, limit)]
        return replace(atom, filter=all_of(kept))

    nested = tuple((n, map_atoms(b, rewrite)) for n, b in query.nested)
    return replace(query, nested=nested, body=map_atoms(query.body, rewrite))
