"""Tables and views as a schema describes them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from crown.ir.tables import Profile, TableColumn, Window


@dataclass(frozen=True)
class TableSchema:
    name: str
    columns: tuple[TableColumn, ...]
    primary_key: tuple[str, ...] = ()
    profile: Profile = "arbitrary"
    window: Window | None = None

    def column(self, name: str) -> TableColumn | None:
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class ResultSchema:
    """A view that is maintained, which queries read like a table."""

    name: str
    columns: tuple[TableColumn, ...]


@dataclass(frozen=True)
class ViewSchema:
    """A view's query with the text its positions refer to."""

    name: str
    query: exp.Expr
    columns: tuple[str, ...]
    sql: str
