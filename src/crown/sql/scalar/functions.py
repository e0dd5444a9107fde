"""Functions that the kernel does not evaluate: their Spark text and their result type.

A call of one of them is `Call("sql:<Spark SQL with holes>", arguments, type)` until its atom is known; then it
becomes a computed column of the atom's table (see `conjunction.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError

from crown import types
from crown.ir.expression import Call, Expression
from crown.sql.context import Context
from crown.sql.diagnose import nearest
from crown.sql.words import words

ResultType = str | Callable[[Sequence[Expression]], str]


def _like_first(arguments: Sequence[Expression]) -> str:
    return arguments[0].type


def _rounded(arguments: Sequence[Expression]) -> str:
    return arguments[0].type if arguments[0].type in (*types.INTEGERS, *types.FLOATS) else "float64"


# By the function's name in Spark (lower case).
_RESULT: dict[str, ResultType] = {
    **dict.fromkeys(("round", "bround"), _rounded),
    **dict.fromkeys(
        words(
            "sqrt cbrt exp ln log log2 log10 pow power sin cos tan asin acos atan atan2 sinh cosh tanh degrees "
            "radians sign signum months_between"
        ),
        "float64",
    ),
    **dict.fromkeys(("date_trunc", "to_timestamp", "from_utc_timestamp", "to_utc_timestamp"), "timestamp"),
    **dict.fromkeys(("trunc", "date_add", "date_sub", "add_months", "to_date", "last_day", "next_day"), "date"),
    **dict.fromkeys(("datediff", "dayofweek", "dayofyear", "quarter", "weekofyear", "weekday"), "int32"),
    **dict.fromkeys(("hour", "minute", "second", "ascii", "instr", "locate", "position"), "int32"),
    **dict.fromkeys(("bit_length", "octet_length", "levenshtein", "hash", "find_in_set"), "int32"),
    **dict.fromkeys(("unix_timestamp", "xxhash64", "crc32", "unix_seconds", "unix_millis", "unix_micros"), "int64"),
    **dict.fromkeys(
        words(
            "ltrim rtrim lpad rpad replace translate reverse repeat initcap left right regexp_replace "
            "regexp_extract split_part concat_ws md5 sha sha1 sha2 hex btrim substring_index soundex date_format "
            "from_unixtime format_string overlay char chr"
        ),
        "string",
    ),
    **dict.fromkeys(("contains", "startswith", "endswith", "rlike", "regexp_like", "isnan"), "boolean"),
    **dict.fromkeys(("pmod", "mod", "shiftleft", "shiftright", "bit_count"), _like_first),
}

# What sqlglot calls by a class of its own, where its Spark text starts with another word or is an operator.
_RESULT_OF_CLASS: dict[type[exp.Expr], ResultType] = {
    exp.BitwiseAnd: _like_first,
    exp.BitwiseOr: _like_first,
    exp.BitwiseXor: _like_first,
    exp.BitwiseNot: _like_first,
    exp.BitwiseLeftShift: _like_first,
    exp.BitwiseRightShift: _like_first,
    exp.RegexpLike: "boolean",
    exp.IntDiv: "int64",
    exp.Trim: "string",
    exp.ILike: "boolean",
    exp.Like: "boolean",
    exp.Extract: "int32",
    exp.Substring: "string",
    exp.StrPosition: "int32",
    exp.DateDiff: "int32",
}

NON_DETERMINISTIC = frozenset(
    words(
        "rand randn random uuid shuffle now current_timestamp current_date current_time localtimestamp "
        "monotonically_increasing_id spark_partition_id input_file_name current_user user session_user curdate "
        "getdate sysdate current_database current_catalog"
    )
)
_NON_DETERMINISTIC_CLASSES = tuple(
    getattr(exp, name)
    for name in (
        "Rand",
        "Randn",
        "Uuid",
        "CurrentTimestamp",
        "CurrentDate",
        "CurrentTime",
        "CurrentDatetime",
        "CurrentUser",
        "Localtimestamp",
        "CurrentTimestampLTZ",
        "MonotonicallyIncreasingId",
        "SessionUser",
    )
    if hasattr(exp, name)
)
_KNOWN_TO_KERNEL = ("abs", "coalesce", "nvl", "ifnull", "nullif", "if", "greatest", "least", "upper", "lower", "length")
_AGGREGATES = ("count", "sum", "avg", "min", "max", "count_if", "bool_and", "bool_or")
_HOLE = "crown_hole_"


def name_of(node: exp.Expr) -> str:
    """The function's name in Spark, in lower case; empty for an operator."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    try:
        text = node.sql("spark")
    except (SqlglotError, AttributeError, TypeError, ValueError):  # odd trees of malformed text have no text
        return ""
    head = text.split("(", 1)[0]
    return head.lower() if head.replace("_", "").isalnum() and "(" in text else ""


def host_call(
    context: Context, node: exp.Expr, bind: Callable[[exp.Expr], Expression], *, result: str | None = None
) -> Expression:
    """A call that the engine's host evaluates, or an error if it is unknown or gives no stable value."""
    refuse_non_deterministic(context, node)
    name = name_of(node)
    rule = result or _RESULT_OF_CLASS.get(type(node)) or _RESULT.get(name)
    if rule is None:
        shown = name or type(node).__name__.lower()
        context.fail(
            node,
            "UNKNOWN-FUNCTION",
            f"function {shown} is not known to Crown",
            reason="its result type, and that it is deterministic, must be known",
            hint=nearest(shown, [*_RESULT, *_KNOWN_TO_KERNEL, *_AGGREGATES], 0.75) or "compute it upstream as a column",
        )
    template, arguments = _template(node, bind)
    if not arguments:
        context.fail(
            node,
            "CONSTANT-FUNCTION",
            f"{name or 'this function'} of constants is not evaluated",
            reason="functions outside the kernel are computed per row of a table",
            hint="write its value as a literal",
        )
    type_ = rule if isinstance(rule, str) else rule(arguments)
    return context.mark(Call("sql:" + template, tuple(arguments), type_), node)


def refuse_non_deterministic(context: Context, node: exp.Expr) -> None:
    if isinstance(node, _NON_DETERMINISTIC_CLASSES) or name_of(node) in NON_DETERMINISTIC:
        shown = name_of(node) or type(node).__name__
        context.fail(
            node,
            "NON-DETERMINISTIC",
            f"{shown} gives another value each time",
            reason="a maintained result must depend on the tables alone; a deletion must find the row it inserted",
            hint="add the value as a column of the table when the row is written",
        )


def _template(node: exp.Expr, bind: Callable[[exp.Expr], Expression]) -> tuple[str, list[Expression]]:
    """The node's Spark text with a hole for each argument that is not a literal or keyword, and the arguments."""
    shell = node.copy()
    arguments: list[Expression] = []
    for key, value in node.args.items():
        children = value if isinstance(value, list) else [value]
        filled: list[object] = []
        for child in children:
            if not isinstance(child, exp.Expr) or isinstance(child, exp.Literal | exp.Var | exp.DataType | exp.Boolean):
                filled.append(child.copy() if isinstance(child, exp.Expr) else child)
                continue
            arguments.append(bind(child))
            filled.append(exp.to_identifier(f"{_HOLE}{len(arguments) - 1}_"))
        shell.set(key, filled if isinstance(value, list) else filled[0])
    text = shell.sql("spark")
    for index in range(len(arguments)):
        text = text.replace(f"{_HOLE}{index}_", f"\x00{index}\x00")
    return text, arguments
