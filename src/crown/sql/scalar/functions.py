"""Functions by their Spark names: their arguments, argument types and results.

Most are a row of `SIGNATURES`; the casts to its types are those that Spark inserts. Functions that need more than that
have a rule in `SPECIAL`. sqlglot has classes for many functions: `NODES` says which argument is where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from crown import types
from crown.ir.expression import Expression, Literal
from crown.sql.context import Context
from crown.sql.diagnose import written_name
from crown.sql.dialect import in_spark
from crown.sql.misspelt import nearest
from crown.sql.scalar import (
    arrays,
    bits,
    date_functions,
    date_parts,
    expansions,
    interval_arithmetic,
    lambdas,
    nested,
    patterns,
    rounding,
    splits,
    synonyms,
)
from crown.sql.scalar.binding import ScalarBinder, Special
from crown.sql.scalar.catalogue import FAMILIES
from crown.sql.scalar.coerce import cast
from crown.sql.words import words
from crown.types import BINARY, BOOLEAN, DATE, FLOAT64, INT32, INT64, STRING, TIMESTAMP, DataType

_BYTES = None  # a string or binary, as it is
_EMPTY, _SPACE, _FIRST, _NONE = (
    Literal("", STRING),
    Literal(" ", STRING),
    Literal(1, INT32),
    Literal(-1, INT32),
)


@dataclass(frozen=True)
class Signature:
    function: str
    takes: tuple[DataType | None, ...]
    gives: DataType
    defaults: tuple[Literal, ...] = ()  # of the last arguments, where they are not written


def _alike(names: str, takes: Sequence[DataType | None], gives: DataType) -> dict[str, Signature]:
    return {name: Signature(name, tuple(takes), gives) for name in words(names)}


SIGNATURES: dict[str, Signature] = {
    **_alike("sqrt cbrt exp expm1 ln log2 log10 log1p rint sign degrees radians", [FLOAT64], FLOAT64),
    **_alike("sin cos tan asin acos atan sinh cosh tanh", [FLOAT64], FLOAT64),
    **_alike("power atan2 hypot log", [FLOAT64, FLOAT64], FLOAT64),
    **_alike("upper lower initcap soundex", [STRING], STRING),
    **_alike("ascii", [STRING], INT32),
    **_alike("octet_length bit_length", [_BYTES], INT32),
    **_alike("levenshtein find_in_set", [STRING, STRING], INT32),
    **_alike("repeat", [STRING, INT32], STRING),
    **_alike("translate", [STRING, STRING, STRING], STRING),
    **_alike("split_part substring_index", [STRING, STRING, INT32], STRING),
    **_alike("chr", [INT64], STRING),
    **_alike("md5 sha1", [_BYTES], STRING),
    **_alike("crc32", [_BYTES], INT64),
    **_alike("unhex", [STRING], BINARY),
    **_alike("bin", [INT64], STRING),
    **_alike("factorial", [INT32], INT64),
    **_alike("width_bucket", [FLOAT64, FLOAT64, FLOAT64, INT64], INT64),
    **_alike("make_date", [INT32, INT32, INT32], DATE),
    **_alike("sha2", [_BYTES, INT32], STRING),
    **_alike("add_months", [DATE, INT32], DATE),
    **_alike("last_day", [DATE], DATE),
    **_alike("next_day", [DATE, STRING], DATE),
    **_alike("dayofyear weekofyear weekday", [DATE], INT32),
    **_alike("unix_date", [DATE], INT32),
    **_alike("date_from_unix_date", [INT32], DATE),
    **_alike("unix_seconds unix_millis unix_micros", [TIMESTAMP], INT64),
    "starts_with": Signature("starts_with", (STRING, STRING), BOOLEAN),
    "ends_with": Signature("ends_with", (STRING, STRING), BOOLEAN),
    "contains": Signature("contains", (STRING, STRING), BOOLEAN),
    "replace": Signature("replace", (STRING, STRING, STRING), STRING, (_EMPTY,)),
    "lpad": Signature("lpad", (STRING, INT32, STRING), STRING, (_SPACE,)),
    "rpad": Signature("rpad", (STRING, INT32, STRING), STRING, (_SPACE,)),
    "overlay": Signature("overlay", (STRING, STRING, INT32, INT32), STRING, (_NONE,)),
    "btrim": Signature("trim", (STRING, STRING), STRING, (_SPACE,)),
    "months_between": Signature("months_between", (TIMESTAMP, TIMESTAMP, BOOLEAN), FLOAT64, (Literal(True, BOOLEAN),)),
}
SIGNATURES |= {"pow": SIGNATURES["power"], "char": SIGNATURES["chr"], "sha": SIGNATURES["sha1"]}

# sqlglot's classes: the function's name and where its arguments are.
NODES: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    **{
        kind: (name, ("this",))
        for kind, name in {
            exp.Sqrt: "sqrt",
            exp.Cbrt: "cbrt",
            exp.Exp: "exp",
            exp.Ln: "ln",
            exp.Rint: "rint",
            exp.Sign: "sign",
            exp.Degrees: "degrees",
            exp.Radians: "radians",
            exp.Sin: "sin",
            exp.Cos: "cos",
            exp.Tan: "tan",
            exp.Asin: "asin",
            exp.Acos: "acos",
            exp.Atan: "atan",
            exp.Sinh: "sinh",
            exp.Cosh: "cosh",
            exp.Tanh: "tanh",
            exp.Upper: "upper",
            exp.Lower: "lower",
            exp.Soundex: "soundex",
            exp.Ascii: "ascii",
            exp.BitLength: "bit_length",
            exp.MD5: "md5",
            exp.Unhex: "unhex",
            exp.ToBase64: "base64",
            exp.Factorial: "factorial",
            exp.SHA: "sha1",
            exp.LastDay: "last_day",
            exp.UnixDate: "unix_date",
            exp.DateFromUnixDate: "date_from_unix_date",
            exp.UnixSeconds: "unix_seconds",
            exp.UnixMillis: "unix_millis",
            exp.UnixMicros: "unix_micros",
            exp.DayOfYear: "dayofyear",
            exp.WeekOfYear: "weekofyear",
            exp.IsNan: "isnan",
            exp.Hex: "hex",
            exp.Space: "space",
            exp.BitwiseNot: "bit_not",
            exp.BitwiseCount: "bit_count",
        }.items()
    },
    **{
        kind: (name, ("this", "expression"))
        for kind, name in {
            exp.Pow: "power",
            exp.Atan2: "atan2",
            exp.StartsWith: "starts_with",
            exp.EndsWith: "ends_with",
            exp.Contains: "contains",
            exp.Levenshtein: "levenshtein",
            exp.AddMonths: "add_months",
            exp.NextDay: "next_day",
            exp.IntDiv: "div",
            exp.BitwiseAnd: "bit_and",
            exp.BitwiseOr: "bit_or",
            exp.BitwiseXor: "bit_xor",
            exp.BitwiseLeftShift: "shiftleft",
            exp.BitwiseRightShift: "shiftright",
            exp.RegexpLike: "rlike",
        }.items()
    },
    exp.TimestampFromParts: ("make_timestamp", ("year", "month", "day", "hour", "min", "sec", "nano")),
    exp.Chr: ("chr", ("expressions",)),
    exp.ConcatWs: ("concat_ws", ("expressions",)),
    exp.Initcap: ("initcap", ("this",)),
    exp.MonthsBetween: ("months_between", ("this", "expression", "roundoff")),
    exp.Overlay: ("overlay", ("this", "expression", "from_", "for_")),
    exp.RegexpExtract: ("regexp_extract", ("this", "expression", "group")),
    exp.RegexpReplace: ("regexp_replace", ("this", "expression", "replacement")),
    exp.Repeat: ("repeat", ("this", "times")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.SHA2: ("sha2", ("this", "length")),
    exp.SplitPart: ("split_part", ("this", "delimiter", "part_index")),
    exp.StrPosition: ("locate", ("substr", "this", "position")),
    exp.SubstringIndex: ("substring_index", ("this", "delimiter", "count")),
    exp.WidthBucket: ("width_bucket", ("this", "min_value", "max_value", "num_buckets")),
    exp.Translate: ("translate", ("this", "from_", "to")),
    **arrays.NODES,
    **synonyms.NODES,
    **expansions.NODES,
}
# Arguments that sqlglot adds for other dialects, and which say what Spark does anyway.
_SPARK_ALREADY: dict[type[exp.Expr], frozenset[str]] = {
    exp.Initcap: frozenset({"expression"}),
    exp.RegexpExtract: frozenset({"null_if_pos_overflow"}),
    exp.ConcatWs: frozenset({"safe", "coalesce", "flatten"}),
    exp.ArrayAppend: frozenset({"null_propagation"}),
    exp.ArrayInsert: frozenset({"offset"}),
    exp.ArrayPrepend: frozenset({"null_propagation"}),
    exp.ArrayRemove: frozenset({"null_propagation"}),
    exp.ArraySlice: frozenset({"is_length"}),
}

NON_DETERMINISTIC = frozenset(
    words(
        "rand randn random uuid shuffle now current_timestamp current_date current_time localtimestamp "
        "monotonically_increasing_id spark_partition_id input_file_name current_user user session_user curdate "
        "getdate sysdate current_database current_catalog current_timezone randstr uniform"
    )
)
_NON_DETERMINISTIC_CLASSES = tuple(
    getattr(exp, name)
    for name in words(
        "Rand Randn Randstr Uuid CurrentTimestamp CurrentDate CurrentTime CurrentDatetime CurrentUser Localtimestamp "
        "Localtime CurrentTimestampLTZ CurrentTimezone MonotonicallyIncreasingId SessionUser"
    )
    if hasattr(exp, name)
)
_AGGREGATES = words(
    "count sum avg min max count_if bool_and bool_or stddev stddev_pop variance var_pop covar_pop covar_samp corr "
    "skewness kurtosis collect_list collect_set array_agg max_by min_by first last listagg string_agg percentile "
    "median mode any_value bit_and bit_or bit_xor approx_count_distinct"
)


def named_call(binder: ScalarBinder, node: exp.Expr) -> Expression:
    """Return a function of sqlglot's classes, or one that it only knows by name; an error if Crown doesn't know it."""
    context = binder.context
    refuse_non_deterministic(context, node)
    if isinstance(node, exp.Anonymous):
        return call_by_name(binder, node, str(node.this).lower(), node.expressions)
    found = NODES.get(type(node))
    if found is None:
        _unknown(context, node)
    name, keys = found
    others = [key for key, value in node.args.items() if value and key not in keys]
    for other in set(others) - _said_already(node):
        context.fail(
            node, "UNKNOWN-FUNCTION", f"{name} with {other.strip('_')} is not supported", hint="use Spark's own form"
        )
    parts = [part for key in keys if (value := node.args.get(key)) for part in _listed(value)]
    return call_by_name(binder, node, name, parts)


def _said_already(node: exp.Expr) -> frozenset[str]:
    """The arguments that change nothing here: those of SPLIT_PART tell of an empty delimiter and of part 0."""
    if isinstance(node, exp.SplitPart):
        delimiter, part = node.args.get("delimiter"), node.args.get("part_index")
        if isinstance(delimiter, exp.Literal) and isinstance(part, exp.Literal) and delimiter.name and part.name != "0":
            return frozenset({"part_index_zero_as_one", "empty_delimiter_returns_whole"})
    return _SPARK_ALREADY.get(type(node), frozenset())


def _listed(value: exp.Expr | list[exp.Expr]) -> list[exp.Expr]:
    return value if isinstance(value, list) else [value]


def call_by_name(binder: ScalarBinder, node: exp.Expr, name: str, parts: Sequence[exp.Expr]) -> Expression:
    """Return the function `name` of Spark with these arguments."""
    special = SPECIAL.get(name)
    if special is not None:
        return special(binder, node, parts)
    signature = SIGNATURES.get(name)
    if signature is None:
        _unknown(binder.context, node)
    most, least = len(signature.takes), len(signature.takes) - len(signature.defaults)
    if not least <= len(parts) <= most:
        wrong_count(binder.context, node, name, least, most)
    arguments = [_argument(binder, part, type_) for part, type_ in zip(parts, signature.takes, strict=False)]
    missing = most - len(parts)
    arguments += signature.defaults[len(signature.defaults) - missing :]
    return binder.call(signature.function, arguments, signature.gives, node)


def wrong_count(context: Context, node: exp.Expr, name: str, least: int, most: int) -> NoReturn:
    expected = str(least) if least == most else f"{least} to {most}"
    plural = "" if expected == "1" else "s"
    context.fail(node, "UNKNOWN-FUNCTION", f"{name} takes {expected} argument{plural}", hint="see docs/sql.md")


def _argument(binder: ScalarBinder, node: exp.Expr, type_: DataType | None) -> Expression:
    value = binder.bind(node)
    if type_ is not None:
        return cast(binder.context, node, value, type_)
    if value.type in (STRING, BINARY):
        return value
    if value.type == types.NULL:
        return Literal(None, STRING)
    return binder.context.fail(
        node,
        "TYPE-CLASH",
        f"expected a string or binary, not {value.type.shown}",
        hint="cast it to a string",
    )


def name_of(node: exp.Expr) -> str:
    """Return the function's name in Spark, in lower case; empty for an operator."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    text = in_spark(node)
    head = text.split("(", 1)[0]
    return head.lower() if head.replace("_", "").isalnum() and "(" in text else ""


def refuse_non_deterministic(context: Context, node: exp.Expr) -> None:
    if isinstance(node, _NON_DETERMINISTIC_CLASSES) or name_of(node) in NON_DETERMINISTIC:
        shown = written_name(context.sql, node) or name_of(node) or "this"
        context.fail(
            node,
            "NON-DETERMINISTIC",
            f"{shown} returns a different value each time",
            reason="a result must only depend on the tables, and a deletion must find the row that was inserted",
            hint="store the value in a column when the row is written",
        )


_GENERATORS = {
    "inline": "use EXPLODE of the array, and take the fields of the struct it returns",
    "inline_outer": "use EXPLODE_OUTER of the array, and take the fields of the struct it returns",
    "stack": "use VALUES in FROM, or UNION ALL",
    "json_tuple": "use get_json_object for each field",
}


def _unknown(context: Context, node: exp.Expr) -> NoReturn:
    shown = written_name(context.sql, node)
    if shown is not None and shown.lower() in _GENERATORS:
        context.fail(
            node,
            "TABLE-FUNCTION",
            f"{shown} is not supported",
            reason="it makes several rows or columns of a row",
            hint=_GENERATORS[shown.lower()],
        )
    known = [name for names in FAMILIES.values() for name in names]
    near = nearest(shown or name_of(node), [*known, *_AGGREGATES, *context.functions], 0.75)
    context.fail(
        node,
        "UNKNOWN-FUNCTION",
        f"function {shown} is not supported" if shown else "this expression is not supported",
        reason="the engine must compute exactly the value that Spark computes",
        hint=near or "pass it as a Python function (functions={...}), or compute it upstream, as a column of the table",
    )


def _base64(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    if len(parts) != 1:
        wrong_count(binder.context, node, "base64", 1, 1)
    return binder.call("base64", [_argument(binder, parts[0], _BYTES)], STRING, node)


def _format_number(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """With a number of digits; a decimal is written by its own digits."""
    if len(parts) != 2:
        wrong_count(binder.context, node, "format_number", 2, 2)
    number, digits = binder.bind(parts[0]), binder.bind(parts[1])
    if not digits.type.is_integer:
        binder.context.fail(
            node,
            "PATTERN",
            "format_number is only supported with a number of digits",
            hint="write format_number(x, 2)",
        )
    if number.type.is_decimal:
        number = cast(binder.context, node, number, STRING)
    else:
        number = cast(binder.context, node, number, INT64 if number.type.is_integer else FLOAT64)
    return binder.call("format_number", [number, cast(binder.context, node, digits, INT32)], STRING, node)


def _concat_with(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    if not parts:
        wrong_count(binder.context, node, "concat_ws", 1, 9)
    values = [binder.bind(part) for part in parts]
    separator = cast(binder.context, node, values[0], STRING)

    def text(value: Expression) -> Expression:
        """An array is joined with the separator itself, to nothing if it is empty."""
        if value.type.element is None:
            return cast(binder.context, node, value, STRING)
        joined = binder.call("array_join", [arrays.of_elements(binder, node, value, STRING), separator], STRING, node)
        present = arrays.of_elements(binder, node, binder.call("array_compact", [value], value.type, node), STRING)
        empty = binder.call("eq", [binder.call("size", [present], INT32, node), Literal(0, INT32)], BOOLEAN, node)
        return binder.call("case", [empty, Literal(None, STRING), joined], STRING, node)

    return binder.call("concat_ws", [separator, *map(text, values[1:])], STRING, node)


def _locate(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """0 for a position that is NULL, whatever the rest."""
    if not 2 <= len(parts) <= 3:
        wrong_count(binder.context, node, "locate", 2, 3)
    wanted, subject = (binder.string(part) for part in parts[:2])
    start = cast(binder.context, node, binder.bind(parts[2]), INT32) if len(parts) == 3 else _FIRST
    found = binder.call("locate", [wanted, subject, start], INT32, node)
    if isinstance(start, Literal) and start.value is not None:
        return found
    absent = binder.call("is_null", [start], BOOLEAN, node)
    return binder.call("case", [absent, Literal(0, INT32), found], INT32, node)


def _instr(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    if len(parts) != 2:
        wrong_count(binder.context, node, "instr", 2, 2)
    return _locate(binder, node, (parts[1], parts[0]))


def _hex(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    if len(parts) != 1:
        wrong_count(binder.context, node, "hex", 1, 1)
    value = binder.bind(parts[0])
    if value.type not in (STRING, BINARY, types.NULL):
        value = cast(binder.context, node, value, INT64)
    elif value.type == types.NULL:
        value = Literal(None, STRING)
    return binder.call("hex", [value], STRING, node)


def _hashed(function: str, gives: DataType) -> Special:
    def bind(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
        if not parts:
            wrong_count(binder.context, node, function, 1, 9)
        values = [binder.bind(part) for part in parts]
        typed: list[Expression] = [v if v.type != types.NULL else Literal(None, BOOLEAN) for v in values]
        return binder.call(function, typed, gives, node)

    return bind


def _space(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    return call_by_name(binder, node, "repeat", [exp.Literal.string(" "), *parts])


def _is_nan(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    """FALSE for NULL."""
    if len(parts) != 1:
        wrong_count(binder.context, node, "isnan", 1, 1)
    value = cast(binder.context, node, binder.bind(parts[0]), FLOAT64)
    found = binder.call("is_nan", [value], BOOLEAN, node)
    return binder.call("coalesce", [found, Literal(False, BOOLEAN)], BOOLEAN, node)


def _itself(binder: ScalarBinder, node: exp.Expr, parts: Sequence[exp.Expr]) -> Expression:
    if len(parts) != 1:
        wrong_count(binder.context, node, "positive", 1, 1)
    value = binder.bind(parts[0])
    if not value.type.is_numeric:
        binder.context.fail(node, "TYPE-CLASH", f"positive takes a number, not {value.type.shown}")
    return value


SPECIAL: dict[str, Special] = {
    "concat_ws": _concat_with,
    "base64": _base64,
    "format_number": _format_number,
    "locate": _locate,
    "position": _locate,
    "instr": _instr,
    "hex": _hex,
    "hash": _hashed("hash", INT32),
    "xxhash64": _hashed("xxhash64", INT64),
    "space": _space,
    "isnan": _is_nan,
    "positive": _itself,
    "bround": rounding.bround,
    "date_part": date_parts.named_part,
    "datepart": date_parts.named_part,
    **bits.SPECIAL,
    **arrays.SPECIAL,
    **lambdas.SPECIAL,
    **nested.SPECIAL,
    **patterns.SPECIAL,
    **date_functions.SPECIAL,
    **interval_arithmetic.SPECIAL,
    **splits.SPECIAL,
    **synonyms.SPECIAL,
    **expansions.SPECIAL,
}
