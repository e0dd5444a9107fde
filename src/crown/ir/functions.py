"""The scalar functions: everything that an expression can call and the kernel evaluates.

A function has Spark's name if Spark has it as a function, and Spark's meaning in ANSI mode. The kernel checks argument
and result types (`crates/crown-kernel/src/expression/compile.rs`); the SQL layer inserts casts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from crown.types import DataType


@dataclass(frozen=True)
class Traits:
    """The properties of a call that do not depend on values."""

    least: int  # arguments
    most: int | None  # None for any number
    strict: bool = True  # NULL for a NULL argument
    total: bool = True  # if strict: NULL for nothing else

    def takes(self, arguments: int) -> bool:
        return self.least <= arguments and (self.most is None or arguments <= self.most)


def _named(names: str, function: Traits) -> Iterable[tuple[str, Traits]]:
    return [(name, function) for name in names.split()]


FUNCTIONS: dict[str, Traits] = dict(
    [
        # arithmetic; `divide` takes float64 or decimals (result scale as typed), `modulo` follows
        # the dividend's sign
        *_named("add subtract multiply", Traits(2, 2)),
        *_named("divide modulo", Traits(2, 2, total=False)),
        *_named("negate abs", Traits(1, 1)),
        # three-valued comparisons, and `is_not_distinct` (NULL equals NULL)
        *_named("eq ne lt le gt ge", Traits(2, 2)),
        ("is_not_distinct", Traits(2, 2, strict=False)),
        # three-valued logic; `is_null` is never NULL
        *_named("and or", Traits(1, None, strict=False)),
        ("not", Traits(1, 1)),
        ("is_null", Traits(1, 1, strict=False)),
        # `in`: first argument against the others; `case`: when, then, when, then, ..., else
        ("in", Traits(2, None, strict=False)),
        *_named("case coalesce greatest least", Traits(1, None, strict=False)),
        (
            "single_row",
            Traits(2, 2, strict=False),
        ),  # (value, rows of a scalar subquery): an error for more than one
        ("cast", Traits(1, 1, total=False)),
        ("try_cast", Traits(1, 1, total=False)),
        # `like` takes a pattern with %, _ and the escape \
        ("like", Traits(2, 2)),
        *_named("upper lower initcap length reverse soundex ascii octet_length bit_length", Traits(1, 1)),
        ("concat", Traits(1, None)),
        ("concat_ws", Traits(1, None, strict=False)),  # (separator, strings); NULLs are left out
        ("substring", Traits(2, 3)),  # (string or binary, start from 1, length)
        *_named("trim ltrim rtrim", Traits(1, 2)),  # (string, the characters to take away)
        *_named("replace lpad rpad translate split_part substring_index", Traits(3, 3)),
        *_named("starts_with ends_with contains repeat find_in_set levenshtein", Traits(2, 2)),
        ("locate", Traits(3, 3)),  # (what, where, from which position)
        ("overlay", Traits(4, 4)),
        *_named("chr hex md5 sha1 crc32 base64 bin", Traits(1, 1)),
        *_named("unhex factorial", Traits(1, 1, total=False)),
        ("format_number", Traits(2, 2, total=False)),
        ("width_bucket", Traits(4, 4, total=False)),
        ("make_date", Traits(3, 3)),
        # the seconds in microseconds
        ("make_timestamp", Traits(6, 6)),
        ("try_make_timestamp", Traits(6, 6, total=False)),
        ("sha2", Traits(2, 2, total=False)),
        *_named("hash xxhash64", Traits(1, None, strict=False)),
        *_named("json_text json_value", Traits(2, 2, total=False)),  # (text, literal steps)
        # arrays, structs and maps: `get_field` takes a literal position, `get_item` counts from 0
        *_named("get_field get_item map_get array_contains", Traits(2, 2, total=False)),
        ("required_item", Traits(2, 2, total=False)),
        # a row of each element of an array, in the columns of a map stage only; positions count
        # from 0
        *_named("explode explode_outer explode_position explode_position_outer", Traits(1, 1, strict=False)),
        *_named("size map_keys map_values", Traits(1, 1)),
        *_named("array_distinct array_sort array_compact array_reverse cast_array", Traits(1, 1)),
        *_named("array_max array_min flatten", Traits(1, 1, total=False)),
        *_named("sort_array array_union array_intersect array_except array_remove array_position", Traits(2, 2)),
        ("arrays_overlap", Traits(2, 2, total=False)),
        *_named("array_append array_prepend array_repeat", Traits(2, 2, strict=False)),
        ("array_join", Traits(2, 3)),  # (array of strings, delimiter, what stands for NULL)
        ("array_concat", Traits(1, None)),
        ("split", Traits(2, 2)),
        ("slice", Traits(3, 3)),
        ("sequence", Traits(4, 4)),  # (first, last, months, step)
        *_named("make_array make_struct make_map", Traits(0, None, strict=False)),
        # (the literal JSON of the inner function's body, arrays, what it reads from the row); see
        # `crown.sql.scalar.lambdas`
        *_named("transform array_filter array_exists array_forall", Traits(2, None, strict=False)),
        # `reduce` has the start before the array
        *_named("zip_with reduce", Traits(3, None, strict=False)),
        # regular expressions and time patterns are literals
        ("rlike", Traits(2, 2)),
        *_named("regexp_extract regexp_replace", Traits(3, 3)),
        *_named("date_format to_timestamp", Traits(2, 2)),
        # `round` and `bround` take a literal number of digits; `floor` and `ceil` of a float are
        # int64
        *_named("round bround", Traits(2, 2)),
        *_named("floor ceil", Traits(1, 1)),
        # of float64; a logarithm is NULL where there is none
        *_named("sqrt cbrt exp expm1 rint sign degrees radians is_nan", Traits(1, 1)),
        *_named("sin cos tan asin acos atan sinh cosh tanh", Traits(1, 1)),
        *_named("power atan2 hypot", Traits(2, 2)),
        *_named("ln log2 log10 log1p", Traits(1, 1, total=False)),
        ("log", Traits(2, 2, total=False)),
        # of integers of one type; shifts take an int32 or int64 and an int32
        *_named("div pmod bit_and bit_or bit_xor shiftleft shiftright shiftrightunsigned", Traits(2, 2)),
        *_named("bit_not bit_count", Traits(1, 1)),
        # parts of a date or timestamp, as int32; `dayofweek` is 1 for Sunday, `weekday` 0 for
        # Monday
        *_named("year quarter month day dayofweek weekday dayofyear weekofyear yearofweek", Traits(1, 1)),
        *_named("hour minute second", Traits(1, 1)),
        ("extract_second", Traits(1, 1)),  # with its fraction, as decimal(8,6)
        # (date, int32 days), (date, date) to int32 days, (literal unit, date or timestamp); weeks
        # begin on Monday
        *_named("date_add date_diff date_trunc", Traits(2, 2)),
        *_named("add_months add_microseconds next_day complete_months", Traits(2, 2)),
        ("months_between", Traits(3, 3)),
        # an interval's months or microseconds as an integer, and the other way round
        *_named("length_of_interval interval_of_length", Traits(1, 1)),
        *_named("last_day unix_date date_from_unix_date unix_seconds unix_millis unix_micros", Traits(1, 1)),
    ]
)


# A function that the user declares is called by its name after one of these; the first is NULL for
# a NULL argument.
CALL = "call:"
CALL_WITH_NULLS = "call_with_nulls:"


@dataclass(frozen=True)
class Declared:
    """A function of the user: how a query calls it, and what the kernel calls for the values of many rows."""

    name: str
    arguments: tuple[DataType, ...]
    returns: DataType
    strict: bool  # NULL for a NULL argument
    evaluate: Callable[[Any], Any]  # a stream of Arrow columns to one of their values

    @property
    def function(self) -> str:
        """The function name in expressions that call it."""
        return f"{CALL if self.strict else CALL_WITH_NULLS}{self.name}"


def declared_name(function: str) -> str | None:
    """Return the name of the user's function; None for one of the kernel's.

    >>> declared_name("call:score"), declared_name("abs")
    ('score', None)
    """
    prefix, colon, name = function.partition(":")
    return name if prefix + colon in (CALL, CALL_WITH_NULLS) else None


def is_strict(function: str) -> bool:
    """Whether a call is NULL when one of its arguments is."""
    if function.startswith(CALL):
        return True
    known = FUNCTIONS.get(function)
    return known is not None and known.strict


def is_total(function: str) -> bool:
    """Whether a call is NULL only when one of its arguments is."""
    known = FUNCTIONS.get(function)
    return known is not None and known.strict and known.total
