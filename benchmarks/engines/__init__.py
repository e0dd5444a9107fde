"""Who answers. Each module has `run(job) -> Outcome`; `available(name)` says whether it can run here.

| engine | what it is |
|---|---|
| crown | `crown.View` with deltas |
| crown_full | `crown.View` without deltas, the full result every tenth of the stream |
| pairwise | the paper's "old plan" on Crown's own kernel tables: a chain of change-propagating joins |
| duckdb | DuckDB, recomputing the query at each refresh |
| dbsp, differential | Rust programs under `benchmarks/peers` |
| flink | Flink SQL through PyFlink, changelog source |
| pathway | Pathway |
| spark_join | Spark's own stream-stream join, insertions only |
"""

BUILT_IN = ("crown", "crown_full", "pairwise", "duckdb")
PEERS = ("dbsp", "differential", "flink", "pathway", "spark_join")
ALL = BUILT_IN + PEERS
