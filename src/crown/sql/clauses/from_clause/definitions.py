"""The names that a query can read besides tables: those of WITH, and views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from crown.types import DataType

FLATTENED = 40
FLATTENED_BRANCHES = 8


@dataclass(frozen=True)
class OutputColumn:
    name: str
    type: DataType
    nullable: bool = True


@dataclass
class Definition:
    """A name of WITH, or a view: bound where it is used; a body that can't be flattened is stored once.

    One that is used again (`shared`) and took more than `FLATTENED` steps to bind, or has more than
    `FLATTENED_BRANCHES`, is not flattened either: otherwise a chain of names that each use the previous one twice would
    grow exponentially.
    """

    query: exp.Expr
    columns: tuple[str, ...]
    names: Mapping[str, Definition]  # that its query can read
    sql: str  # the text that it is part of
    shared: bool = False
    used: bool = False
    nested: tuple[str, tuple[OutputColumn, ...]] | None = None
    recursive: str = ""  # its name, if its query reads itself
    own: tuple[str, ...] | None = None  # the names of the nested columns, where that is not bound yet
