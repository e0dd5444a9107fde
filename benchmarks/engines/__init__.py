"""Who answers. Each module has `run(job) -> Outcome`; one that cannot run here says why in the outcome's status."""

TITLES = {
    "crown": "Crown's `View` in one thread: one net delta per batch, or one per update",
    "crown, linked deltas off": "the same tree without support for deltas; the whole result is read at each refresh",
    "pairwise": "the conventional plan on Crown's own kernel tables: a chain of change-propagating joins that "
    "stores each intermediate view. It only supports full joins, without DISTINCT and aggregates",
    "duckdb": "DuckDB, one thread unless stated otherwise: applies the changes, recomputes the query at each refresh",
    "differential": "differential dataflow (Rust), plans written by hand as its users would",
    "dbsp": "DBSP (Rust), the engine under Feldera, plans written by hand as its users would",
    "flink": "Flink SQL with the unchanged query, changelog source, heap state, parallelism 1 unless stated otherwise",
    "pathway": "Pathway (Python over a Rust engine)",
    "spark_join": "Spark's own stream-stream join, which only supports insertions",
    "..., rewritten by hand": "with the semi-join or pre-aggregation that a careful user of that engine would write",
}
BUILT_IN = ("crown", "crown_pulled", "pairwise", "duckdb")
PEERS = ("differential", "dbsp", "flink", "pathway", "spark_join")
ALL = BUILT_IN + PEERS
