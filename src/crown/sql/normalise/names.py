"""Readable unique names for variables and atoms."""

from __future__ import annotations

import re

from crown.ir.expression import Column, Expression, columns_of
from crown.sql.relation import atom_of, source_column


def readable(text: str) -> str:
    """Lower case, with nothing but letters, digits and underscores.

    >>> readable("Total Price")
    'total_price'
    """
    return re.sub(r"\W+", "_", text.lower()).strip("_")


class Namer:
    def __init__(self) -> None:
        self._variables: dict[str, int] = {}
        self._atoms: set[str] = set()

    def variable(self, members: list[Expression], aliases: dict[str, str], suggestion: str = "") -> str:
        """Return a name after the first plain column of a class, else after the output it is shown as."""
        plain = next((m for m in members if isinstance(m, Column)), None)
        if plain is not None:
            base = readable(f"{aliases.get(atom_of(plain.name), '')}_{source_column(plain.name)}")
        else:
            base = readable(suggestion) or _after_columns(members[0], aliases)
        name = _unique(base or "v", self._variables)
        self._variables[name] = len(self._variables)
        return name

    def order(self, variable: str) -> int:
        return self._variables[variable]

    def atom(self, alias: str) -> str:
        name = _unique(alias, self._atoms)
        self._atoms.add(name)
        return name


def _after_columns(term: Expression, aliases: dict[str, str]) -> str:
    columns = list(dict.fromkeys(columns_of(term)))
    owner = aliases.get(atom_of(columns[0]), "") if columns else ""
    return readable("_".join([owner, *(source_column(c) for c in columns[:3]), "value"]))


def _unique(base: str, taken: dict[str, int] | set[str]) -> str:
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name
