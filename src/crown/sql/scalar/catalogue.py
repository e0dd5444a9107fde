"""The functions that a query may call, by family: what docs/sql.md lists, and tests compare with Spark."""

from __future__ import annotations

from crown.sql.words import words

FAMILIES: dict[str, tuple[str, ...]] = {
    "conditions": words(
        "case coalesce decode equal_null greatest if ifnull isnan isnotnull isnull least nanvl nullif "
        "nullifzero nvl nvl2 typeof zeroifnull"
    ),
    "numbers": words(
        "abs acos asin atan atan2 atanh bin bit_count bround cbrt ceil ceiling cos cosh cot csc "
        "degrees div e exp expm1 factorial floor format_number hypot ln log log10 log1p log2 mod negative pi "
        "pmod positive pow power radians rint round sec shiftleft shiftright shiftrightunsigned sign signum "
        "sin sinh sqrt tan tanh try_add try_divide try_multiply try_subtract width_bucket"
    ),
    "strings": words(
        "ascii bit_length btrim char char_length character_length chr concat concat_ws contains elt endswith "
        "find_in_set initcap instr lcase left len length levenshtein locate lower lpad ltrim octet_length "
        "overlay position regexp_count regexp_extract regexp_like regexp_replace repeat replace reverse right "
        "rlike rpad rtrim soundex space split split_part startswith substr substring substring_index "
        "translate trim ucase upper"
    ),
    "digests": words("base64 crc32 hash hex md5 sha sha1 sha2 unhex xxhash64"),
    "arrays": words(
        "aggregate array_append array_compact array_distinct array_except array_insert array_intersect "
        "array_join array_max array_min array_position array_prepend array_remove array_repeat array_sort "
        "array_union arrays_overlap arrays_zip exists filter flatten forall reduce sequence slice sort_array "
        "transform zip_with"
    ),
    "dates and times": words(
        "add_months date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd "
        "datediff day dayname dayofmonth dayofweek dayofyear extract from_unixtime hour last_day make_date "
        "make_dt_interval make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval "
        "minute month monthname months_between next_day quarter second timestamp_micros timestamp_millis "
        "timestamp_seconds timestampadd timestampdiff to_date to_timestamp trunc try_make_timestamp "
        "try_make_timestamp_ltz try_make_timestamp_ntz unix_date unix_micros "
        "unix_millis unix_seconds unix_timestamp weekday weekofyear year"
    ),
    "casts": words("bigint binary boolean cast date double float int smallint string timestamp tinyint try_cast"),
}
