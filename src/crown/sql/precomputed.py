"""Calls of the user's functions as columns of tables, for engines that can't make the calls themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from crown.errors import PlanError
from crown.ir.functions import Declared
from crown.sql.diagnose import parse_statements
from crown.sql.dialect import in_spark
from crown.sql.scalar.declared import check_function_names
from crown.wording import counted


@dataclass(frozen=True)
class ComputedColumn:
    """A column of a table: the function of the arguments, which are SQL text over the table's columns."""

    table: str
    name: str
    function: Declared
    arguments: tuple[str, ...]


def precompute(
    queries: Mapping[str, str],
    tables: Mapping[str, Sequence[str]],
    functions: Mapping[str, Declared],
    *,
    dialect: str = "spark",
) -> tuple[dict[str, str], list[ComputedColumn]]:
    """Return queries by name with calls replaced by columns, and these columns, which the queries share.

    `tables` are the columns of each table. Raises a `PlanError` for a call that reads more than one table of FROM.
    """
    check_function_names(functions, dialect)
    made: dict[tuple[str, str], ComputedColumn] = {}
    return {name: _computed(sql, tables, functions, dialect, made) for name, sql in queries.items()}, list(
        made.values()
    )


def _computed(
    sql: str,
    tables: Mapping[str, Sequence[str]],
    functions: Mapping[str, Declared],
    dialect: str,
    made: dict[tuple[str, str], ComputedColumn],
) -> str:
    """Return the query with calls replaced by columns; add new ones to `made`."""
    (statement,) = parse_statements(sql, dialect)
    calls = [call for call in statement.find_all(exp.Anonymous) if str(call.this).lower() in functions]
    for call in reversed(calls):  # inner ones first
        function = functions[str(call.this).lower()]
        alias, table = _table_of(call, tables, function)
        arguments = tuple(_unqualified(argument) for argument in call.expressions)
        if len(arguments) != len(function.arguments):
            raise _refused(call, f"{function.name} takes {counted(len(function.arguments), 'argument')}")
        key = table, f"{function.name}({', '.join(arguments)})"
        name = f"_crown_{function.name}_{len(made) + 1}"
        column = made.setdefault(key, ComputedColumn(table, name, function, arguments))
        call.replace(exp.column(column.name, table=alias))
    return statement.sql(dialect) if calls else sql


def _table_of(call: exp.Anonymous, tables: Mapping[str, Sequence[str]], function: Declared) -> tuple[str, str]:
    """The alias and the name of the one table whose columns the arguments read."""
    select = call.find_ancestor(exp.Select)
    named: dict[str, str] = {}
    if isinstance(select, exp.Select):
        sources = [select.args["from_"].this] if select.args.get("from_") else []
        sources += [join.this for join in select.args.get("joins") or ()]
        known = {name.lower(): name for name in tables}
        for source in sources:
            if isinstance(source, exp.Table) and source.name.lower() in known:
                named[source.alias_or_name.lower()] = known[source.name.lower()]
    found: set[str] = set()
    for column in call.find_all(exp.Column):
        owners = [
            alias
            for alias, table in named.items()
            if (column.table.lower() == alias if column.table else _has(tables[table], column.name))
        ]
        if len(owners) != 1:
            raise _refused(call, f"{column.sql('spark')} is not a column of one table of its FROM")
        found.add(owners[0])
    if len(found) != 1:
        raise _refused(call, "its arguments are columns of several tables" if found else "it reads no column")
    alias = found.pop()
    if not function.strict and len(named) > 1:
        raise _refused(call, "it takes NULLs, which an outer join makes after it has been computed")
    return alias, named[alias]


def _has(columns: Sequence[str], name: str) -> bool:
    return any(column.lower() == name.lower() for column in columns)


def _unqualified(argument: exp.Expr) -> str:
    bare = argument.copy()
    for column in bare.find_all(exp.Column):
        column.set("table", None)
    return in_spark(bare)


def _refused(call: exp.Anonymous, reason: str) -> PlanError:
    return PlanError(
        f"on Spark, {call.sql('spark')} can't be computed",
        code="CROWN-SPARK-FUNCTION",
        reason=f"the function is called before rows are joined, and {reason}",
        hint="call it in a subquery or view over one table, or use crown.View",
    )
