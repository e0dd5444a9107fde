"""How changes flow through Spark: dispatch, stateful cells, deltas."""
