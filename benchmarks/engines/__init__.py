"""Who answers. Each module has `run(job) -> Outcome`; one that cannot run here says why in the outcome's status."""

TITLES = {
    "crown": "Crown's `View` in one thread: one net delta for each batch, or one for each update",
    "crown, linked deltas off": "the same tree without what deltas need; the whole result is pulled at each refresh",
    "pairwise": "the paper's old plan on Crown's own kernel tables: a chain of change-propagating joins, each view "
    "between them kept. It is written for full joins, so DISTINCT and aggregates are not asked of it",
    "duckdb": "DuckDB, one thread unless it says more: takes the changes, recomputes the query at each refresh",
    "differential": "differential dataflow (Rust), plans written by hand as its users would",
    "dbsp": "DBSP (Rust), the engine under Feldera, plans written by hand as its users would",
    "flink": "Flink SQL with the query as it is, changelog source, heap state, parallelism 1 unless it says more",
    "pathway": "Pathway (Python over a Rust engine)",
    "spark_join": "Spark's own stream-stream join, which takes insertions only",
    "..., rewritten by hand": "with the semi-join or pre-aggregation that a careful user of that engine would write",
}
BUILT_IN = ("crown", "crown_pulled", "pairwise", "duckdb")
PEERS = ("differential", "dbsp", "flink", "pathway", "spark_join")
ALL = BUILT_IN + PEERS
