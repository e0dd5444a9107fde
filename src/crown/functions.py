"""Python functions that a query may call: `View(sql, schema, functions={"score": score})`.

A function is called for the values of a batch, in Arrow columns; the kernel remembers recent results, so a function
must be deterministic: the same arguments always return the same result, without side effects.
"""

from __future__ import annotations

import datetime
import functools
import inspect
import operator
import types as python_types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints, overload

import pyarrow as pa

from crown import types
from crown.arrow import arrow_type, crown_type
from crown.errors import CrownError
from crown.ir.declared import declared_calls
from crown.ir.expression import Call
from crown.ir.functions import Declared, declared_name
from crown.ir.plan import Plan
from crown.sql.typenames import from_name
from crown.types import DataType
from crown.wording import counted, with_article

TypeLike: TypeAlias = str | pa.DataType
PythonFunctions: TypeAlias = Mapping[str, Callable[..., object]]

_BY_ANNOTATION = {
    bool: types.BOOLEAN,
    int: types.INT64,
    float: types.FLOAT64,
    str: types.STRING,
    bytes: types.BINARY,
    datetime.date: types.DATE,
    datetime.datetime: types.TIMESTAMP,
}
_MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError)


class Function:
    """A Python function with declared types, as `function` returns it. Calling it calls the function."""

    def __init__(
        self,
        call: Callable[..., object],
        returns: TypeLike | None,
        arguments: Sequence[TypeLike] | None,
        vectorised: bool,
        nulls: Literal["skip", "pass"] | None,
    ) -> None:
        if not callable(call):
            raise _undeclared(f"{call!r} is not a function")
        if nulls not in ("skip", "pass", None):
            raise _undeclared(f"nulls must be 'skip' or 'pass', not {nulls!r}")
        functools.update_wrapper(self, call)
        self._call = call
        self.vectorised = vectorised
        name = getattr(call, "__name__", "the function")
        hints = _hints(call)
        if arguments is None:
            found = [_annotated(name, parameter, hints.get(parameter)) for parameter in _parameters(name, call)]
            self.arguments = tuple(type_ for type_, _ in found)
            takes_none = any(optional for _, optional in found)
        else:
            self.arguments = tuple(_type(name, given) for given in arguments)
            takes_none = False
        if returns is None:
            self.returns = _annotated(name, "the result", hints.get("return"))[0]
        else:
            self.returns = _type(name, returns)
        self.strict = nulls != "pass" if nulls is not None else not takes_none

    def __call__(self, *arguments: object) -> object:
        return self._call(*arguments)

    def evaluate(self, stream: object) -> pa.Table:
        """Return the values for a stream of arguments; called by the kernel."""
        rows = pa.RecordBatchReader.from_stream(stream).read_all()
        columns = [column.combine_chunks() for column in rows.columns]
        if self.vectorised:
            values = _checked(self._call(*columns), self.returns, rows.num_rows)
        else:
            results = [self._call(*row) for row in _rows(columns, rows.num_rows)]
            values = _array(results, self.returns)
        return pa.table({"value": values})


@overload
def function(
    call: Callable[..., object],
    *,
    returns: TypeLike | None = ...,
    arguments: Sequence[TypeLike] | None = ...,
    vectorised: bool = ...,
    nulls: Literal["skip", "pass"] | None = ...,
) -> Function: ...
@overload
def function(
    *,
    returns: TypeLike | None = ...,
    arguments: Sequence[TypeLike] | None = ...,
    vectorised: bool = ...,
    nulls: Literal["skip", "pass"] | None = ...,
) -> Callable[[Callable[..., object]], Function]: ...
def function(
    call: Callable[..., object] | None = None,
    *,
    returns: TypeLike | None = None,
    arguments: Sequence[TypeLike] | None = None,
    vectorised: bool = False,
    nulls: Literal["skip", "pass"] | None = None,
) -> Function | Callable[[Callable[..., object]], Function]:
    """Declare a Python function, so that queries can call it.

    `returns` and `arguments` are SQL types (`"DOUBLE"`, `"DECIMAL(10,2)"`) or Arrow types; without them, the
    annotations of the function say the types: bool, int (BIGINT), float (DOUBLE), str, bytes, date and datetime.
    A scalar function is called with the values of one row. With `vectorised` it is called with one `pyarrow.Array` for
    each argument and returns an array of as many values. With `nulls="skip"` the result is NULL for a row with a NULL
    argument, and the function is not called; with `"pass"` it gets None. The default is "skip", or "pass" if an
    argument is annotated to take None.

    The function must be deterministic. An exception rejects the batch: see `CROWN-FUNCTION-FAILED`.

    >>> import crown
    >>> @function
    ... def initial(name: str) -> str:
    ...     return name[:1].upper()
    >>> view = crown.View("SELECT initial(name) AS i, COUNT(*) AS n FROM people GROUP BY initial(name)",
    ...                   "CREATE TABLE people (name STRING)", functions={"initial": initial})
    >>> view.insert("people", [("ada",), ("alan",), (None,)]).num_rows
    2
    >>> sorted(view, key=str)
    [('A', 2), (None, 1)]
    """
    if call is None:
        return lambda call: Function(call, returns, arguments, vectorised, nulls)
    return Function(call, returns, arguments, vectorised, nulls)


def declare(functions: PythonFunctions | None) -> dict[str, Declared]:
    """Return the functions as queries call them, by lower-case name."""
    if functions is None:
        return {}
    if not isinstance(functions, Mapping) or not all(isinstance(name, str) for name in functions):
        raise CrownError(
            "functions must be a dict of names and Python functions",
            code="CROWN-ARGUMENT",
            hint="functions={'score': score}",
        )
    declared: dict[str, Declared] = {}
    for given, call in functions.items():
        name = given.lower()
        if name in declared:
            raise _undeclared(f"there are two functions {name}", "names are not case-sensitive")
        known = call if isinstance(call, Function) else Function(call, None, None, False, None)
        declared[name] = Declared(name, known.arguments, known.returns, known.strict, known.evaluate)
    return declared


def check_called(plan: Plan, functions: Mapping[str, Declared], error: type[CrownError]) -> None:
    """Raise `error` unless each function that the plan calls is given, with the types with which it is called."""
    for call in declared_calls(plan):
        name, arguments, returns = declared_name(call.function) or "", _types(call), call.type
        known = functions.get(name)
        wanted = f"{name}({', '.join(t.sql_name for t in arguments)}) returning {returns.sql_name}"
        if known is None:
            raise error(
                f"the view calls the Python function {wanted}, which is not given",
                code="CROWN-FUNCTION-MISSING",
                reason="a plan or a saved view has no code",
                hint=f"pass functions={{{name!r}: ...}}",
            )
        if (known.function, known.arguments, known.returns) != (call.function, arguments, returns):
            raise error(
                f"the view calls the Python function {wanted}; the given one is declared differently",
                code="CROWN-FUNCTION-MISSING",
                hint="give it the same types, and the same nulls option, as when the view was created",
            )


def _types(call: Call) -> tuple[DataType, ...]:
    return tuple(DataType(argument.type) for argument in call.arguments)


def _rows(columns: Sequence[pa.Array], length: int) -> Iterator[tuple[Any, ...]]:
    if not columns:
        return iter([()] * length)
    return zip(*(column.to_pylist() for column in columns), strict=True)


def _array(values: list[Any], type_: DataType) -> pa.Array:
    try:
        return _exact(values, type_)
    except _MISFITS:
        for value in values:
            try:
                _exact([value], type_)
            except _MISFITS as error:
                raise TypeError(f"it returned {value!r}, which is not {with_article(type_.sql_name)}") from error
        raise


def _exact(values: list[Any], type_: DataType) -> pa.Array:
    if type_.is_integer:  # pyarrow would truncate a float
        values = [None if value is None else operator.index(value) for value in values]
    return pa.array(values, arrow_type(type_))


def _checked(result: Any, type_: DataType, length: int) -> pa.Array:
    """Return what a vectorised function returned as an array of its declared type."""
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if not isinstance(result, pa.Array):
        raise TypeError(f"it returned {with_article(type(result).__name__)} instead of a pyarrow.Array")
    if len(result) != length:
        raise ValueError(f"it returned {counted(len(result), 'value')} for {counted(length, 'row')}")
    wanted = arrow_type(type_)
    if result.type == wanted:
        return result
    found = crown_type(result.type)
    same_kind = found is not None and (
        (found.is_numeric and type_.is_numeric and not (found.is_float and not type_.is_float))
        or found == type_
        or (found.is_temporal and type_.is_temporal)
    )
    if not same_kind and not pa.types.is_null(result.type):
        raise TypeError(f"it returned an array of {result.type} instead of {wanted}")
    return result.cast(wanted)


def _hints(call: Callable[..., object]) -> dict[str, Any]:
    try:
        return get_type_hints(call)
    except (TypeError, NameError, AttributeError):
        return {}


def _parameters(name: str, call: Callable[..., object]) -> list[str]:
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        raise _undeclared(f"the arguments of {name} are not known", "declare them: arguments=[...]") from None
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise _undeclared(f"{name} takes any number of arguments, or named ones", "declare them: arguments=[...]")
    return [parameter.name for parameter in parameters]


def _annotated(name: str, what: str, annotation: Any) -> tuple[DataType, bool]:
    """The type of an annotation, and whether it admits None."""
    optional = False
    if get_origin(annotation) in (Union, python_types.UnionType):
        members = [member for member in get_args(annotation) if member is not type(None)]
        optional = len(members) < len(get_args(annotation))
        annotation = members[0] if len(members) == 1 else annotation
    type_ = _BY_ANNOTATION.get(annotation) if isinstance(annotation, type) else None
    if type_ is None:
        shown = "has no type" if annotation is None else f"has the type {annotation}, for which SQL has several or none"
        raise _undeclared(
            f"{name}: {what} {shown}", "declare it: @crown.function(returns='DOUBLE', arguments=['BIGINT', ...])"
        )
    return type_, optional


def _type(name: str, given: TypeLike) -> DataType:
    type_ = from_name(given) if isinstance(given, str) else None
    if isinstance(given, pa.DataType):
        type_ = crown_type(given)
    if type_ is None:
        raise _undeclared(f"{name}: {given!r} is not a type of SQL or Arrow that Crown supports", "see docs/sql.md")
    return type_


def _undeclared(message: str, hint: str | None = None) -> CrownError:
    return CrownError(message, code="CROWN-FUNCTION-DECLARED", hint=hint)
