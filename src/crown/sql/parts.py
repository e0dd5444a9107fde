"""Every part of a query is used or rejected: the arguments that Crown uses of each kind of node.

A sqlglot node has arguments by name, and a parser of some dialect may fill any of them. An argument that Crown does not
read would be dropped silently, so each one that is filled must be listed here: in `READ`, because the code that handles
the node reads it (or rejects it with a better message), or in `HARMLESS`, because it does not change results. All
others are rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from crown.sql.words import words

_QUERY = words("with_ order limit offset")

READ: Mapping[type[exp.Expr], frozenset[str]] = {
    kind: frozenset(names)
    for kind, names in {
        exp.Select: (
            *_QUERY,
            *words("expressions distinct from_ joins laterals where group having qualify windows"),
        ),
        exp.Union: (*_QUERY, *words("this expression distinct by_name")),
        exp.Except: (*_QUERY, *words("this expression distinct")),
        exp.Intersect: (*_QUERY, *words("this expression distinct")),
        exp.Subquery: (*_QUERY, *words("this alias joins pivots")),
        exp.With: words("expressions recursive"),
        exp.CTE: words("this alias"),
        exp.TableAlias: words("this columns"),
        exp.From: words("this"),
        exp.Table: words("this alias db catalog joins pivots"),
        exp.PivotAlias: words("this alias"),
        exp.ExplodingGenerateSeries: words("start end step"),
        exp.Pivot: words("this expressions fields unpivot columns alias group using default_on_null include_nulls"),
        exp.Join: words("this on side kind using method"),
        exp.Values: words("expressions alias"),
        exp.Unnest: words("expressions alias offset"),
        exp.Explode: words("this"),
        exp.Posexplode: words("this"),
        exp.ToChar: words("this format"),
        exp.ToNumber: words("this format precision scale safe"),
        exp.Array: words("expressions value_constructor"),
        exp.ArraySort: words("this asc nulls_first"),
        exp.ArrayToString: words("this expression null"),
        exp.GenerateSeries: words("start end step is_end_exclusive"),
        exp.Var: words("this"),
        exp.Where: words("this"),
        exp.Group: words("expressions grouping_sets cube rollup totals all"),
        exp.Having: words("this"),
        exp.Order: words("this expressions"),
        exp.Ordered: words("this desc nulls_first with_fill"),
        exp.Limit: words("expression limit_options expressions"),
        exp.Fetch: words("count limit_options"),
        exp.LimitOptions: words("percent with_ties"),
        exp.Offset: words("expression"),
        exp.Distinct: words("expressions on"),
        exp.Identifier: words("this"),
        exp.Alias: words("this alias"),
        # Expressions
        exp.Column: words("this table db catalog"),
        exp.Star: words("except_ replace rename"),
        exp.CurrentTimestamp: words("this"),
        exp.CurrentTimestampLTZ: (),
        exp.CurrentDate: words("this"),
        exp.CurrentDatetime: words("this"),
        exp.Localtimestamp: words("this"),
        exp.Dot: words("this expression"),
        exp.Kwarg: words("this expression"),
        exp.PropertyEQ: words("this expression"),
        exp.Literal: words("this is_string"),
        exp.Boolean: words("this"),
        exp.Null: (),
        exp.Paren: words("this"),
        exp.Tuple: words("expressions"),
        exp.Div: words("this expression typed safe"),
        exp.In: words("this expressions query unnest field"),
        exp.Exists: words("this expression"),
        exp.Reduce: words("this initial merge finish"),
        exp.Lambda: words("this expressions"),
        exp.Any: words("this"),
        exp.All: words("this"),
        exp.Case: words("this ifs default"),
        exp.If: words("this true false"),
        exp.Between: words("this low high symmetric"),
        exp.Is: words("this expression negate"),
        exp.Like: words("this expression negate"),
        exp.ILike: words("this expression negate"),
        exp.Coalesce: words("this expressions"),
        exp.Greatest: words("this expressions ignore_nulls"),
        exp.Least: words("this expressions ignore_nulls"),
        exp.Concat: words("expressions coalesce"),
        exp.Substring: words("this start length"),
        exp.Trim: words("this expression position collation"),
        exp.Pad: words("this expression fill_pattern is_left"),
        exp.Cast: words("this to format safe"),
        exp.TryCast: words("this to format safe"),
        exp.DataType: words("this expressions"),
        exp.Interval: words("this unit"),
        exp.IntervalSpan: words("this expression"),
        exp.Round: words("this decimals truncate"),
        exp.Floor: words("this decimals to"),
        exp.Ceil: words("this decimals to"),
        exp.Replace: words("this expression replacement"),
        exp.Nvl2: words("this true false"),
        exp.TsOrDsToDate: words("this format"),
        exp.StrToDate: words("this format"),
        exp.StrToTime: words("this format"),
        exp.TimeToStr: words("this format"),
        exp.TsOrDsAdd: words("this expression unit"),
        exp.DateDiff: words("this expression unit"),
        exp.DateAdd: words("this expression unit"),
        exp.DateSub: words("this expression unit"),
        exp.TimestampAdd: words("this expression unit"),
        exp.TimestampDiff: words("this expression unit"),
        exp.TimestampTrunc: words("this unit zone"),
        exp.DateTrunc: words("this unit zone"),
        # Aggregates
        exp.Filter: words("this expression"),
        exp.Count: words("this expressions"),
        exp.CountIf: words("this"),
        exp.ArrayAgg: words("this nulls_excluded"),
        exp.ArrayUniqueAgg: words("this"),
        exp.Bracket: words("this expressions offset safe"),
        exp.Array: words("expressions"),
        exp.Skewness: words("this"),
        exp.Kurtosis: words("this"),
        exp.Sum: words("this"),
        exp.Avg: words("this"),
        exp.LogicalAnd: words("this"),
        exp.LogicalOr: words("this"),
        exp.Min: words("this expressions"),
        exp.Max: words("this expressions"),
        exp.GroupConcat: words("this separator"),
        exp.Stddev: words("this"),
        exp.StddevPop: words("this"),
        exp.StddevSamp: words("this"),
        exp.Variance: words("this"),
        exp.VariancePop: words("this"),
        exp.BitwiseAndAgg: words("this"),
        exp.BitwiseOrAgg: words("this"),
        exp.BitwiseXorAgg: words("this"),
        exp.Median: words("this"),
        exp.CovarPop: words("this expression"),
        exp.CovarSamp: words("this expression"),
        exp.Corr: words("this expression"),
        exp.RegrCount: words("this expression"),
        exp.RegrAvgx: words("this expression"),
        exp.RegrAvgy: words("this expression"),
        exp.RegrSxx: words("this expression"),
        exp.RegrSyy: words("this expression"),
        exp.RegrSxy: words("this expression"),
        exp.RegrSlope: words("this expression"),
        exp.RegrIntercept: words("this expression"),
        exp.RegrR2: words("this expression"),
        exp.PercentileCont: words("this expression"),
        exp.PercentileDisc: words("this expression"),
        exp.Quantile: words("this quantile"),
        exp.Grouping: words("expressions"),
        exp.GroupingId: words("expressions"),
        exp.ArgMax: words("this expression"),
        exp.ArgMin: words("this expression"),
        exp.First: words("this"),
        exp.Last: words("this"),
        exp.FirstValue: words("this"),
        exp.LastValue: words("this"),
        exp.AnyValue: words("this"),
        exp.ApproxQuantile: words("this quantile accuracy"),
        exp.ApproxDistinct: words("this accuracy"),
        exp.Mode: words("this"),
        exp.WithinGroup: words("this expression"),
        exp.Qualify: words("this"),
        exp.Window: words("this partition_by order spec alias over"),
        exp.WindowSpec: words("kind start start_side end end_side exclude"),
        exp.IgnoreNulls: words("this"),
        exp.RespectNulls: words("this"),
        exp.Lag: words("this offset default"),
        exp.Lead: words("this offset default"),
        exp.NthValue: words("this offset"),
        exp.Ntile: words("this"),
        exp.RowNumber: (),
        exp.Rank: words("expressions"),
        exp.DenseRank: words("expressions"),
        exp.PercentRank: words("expressions"),
        exp.CumeDist: words("expressions"),
        exp.Var: words("this"),
        # Rejected as a whole, whatever they contain, or handled by GROUP BY
        exp.Lateral: words("this view outer alias cross_apply ordinality"),
        exp.Rollup: words("expressions"),
        exp.Cube: words("expressions"),
        exp.GroupingSets: words("expressions"),
    }.items()
}

HARMLESS: Mapping[type[exp.Expr], frozenset[str]] = {
    kind: frozenset(names)
    for kind, names in {
        # Advice to an optimizer
        exp.Select: words("hint"),
        exp.Table: words("hints indexed"),
        exp.Join: words("hint global_ directed"),
        exp.In: words("is_global"),
        exp.CTE: words("materialized"),
        # Alternative spellings
        exp.Fetch: words("direction"),
        exp.LimitOptions: words("rows"),
        exp.Identifier: words("quoted"),
        exp.Coalesce: words("is_nvl is_null"),
        exp.Count: words("big_int"),
        exp.CountIf: words("zero_on_all_null"),
        exp.Array: words("bracket_notation value_constructor"),
        exp.JSONExtract: words("only_json_types variant_extract requires_json"),
        exp.JSONExtractScalar: words("only_json_types scalar_only json_type"),
        exp.ArrayContains: words("check_null ensure_variant"),
        exp.Interval: words("fraction_in_string"),
        exp.Pivot: words("identify_pivot_strings prefixed_pivot_columns pivot_column_naming value_columns_first"),
        # What Crown does in any dialect: || and CONCAT make strings of what they get, a value may
        # be NULL
        exp.Concat: words("safe"),
        exp.DPipe: words("safe"),
        exp.DataType: words("nested nullable"),
        exp.TsOrDsToDate: words("safe"),
        exp.TsOrDsAdd: words("return_type"),
        exp.DateDiff: words("big_int date_part_boundary"),
        exp.TimestampTrunc: words("input_type_preserved"),
        exp.DateTrunc: words("input_type_preserved"),
        exp.Round: words("casts_non_integer_decimals"),
        exp.Left: words("negative_length_returns_empty"),
        exp.Right: words("negative_length_returns_empty"),
    }.items()
}

_ANY_FUNCTION = frozenset({"this", "expression", "expressions"})


def read_of(kind: type[exp.Expr]) -> frozenset[str]:
    """Return the arguments of a node that Crown accepts.

    A kind that isn't listed is one of the many functions: its required arguments, and the usual places of the others.
    """
    read = READ.get(kind)
    if read is None:
        read = _ANY_FUNCTION | {name for name, required in kind.arg_types.items() if required}
    return read | HARMLESS.get(kind, frozenset())


def unread(node: exp.Expr) -> Iterable[tuple[str, object]]:
    """Return the arguments of the node that are filled and that Crown does not read."""
    read = read_of(type(node))
    return [(name, value) for name, value in node.args.items() if name not in read and _is_filled(value)]


def _is_filled(value: object) -> bool:
    return value is not None and value is not False and value != [] and value != ""
