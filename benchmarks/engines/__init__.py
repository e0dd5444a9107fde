"""Who answers. Each module has `run(job) -> Outcome`; one that cannot run here says why in the outcome's status.

| engine | what it is |
|---|---|
| crown | `crown.View` with deltas |
| crown_pulled | `crown.View` with linked deltas off: no deltas, the whole result is pulled at each refresh |
| pairwise | the paper's "old plan" on Crown's own kernel tables: a chain of change-propagating joins; full joins only |
| duckdb | DuckDB, recomputing the query at each refresh |
| dbsp, differential | Rust programs under `benchmarks/peers` |
| flink | Flink SQL through PyFlink, changelog source |
| pathway | Pathway |
| spark_join | Spark's own stream-stream join, insertions only |
"""

BUILT_IN = ("crown", "crown_pulled", "pairwise", "duckdb")
PEERS = ("dbsp", "differential", "flink", "pathway", "spark_join")
ALL = BUILT_IN + PEERS
