"""The demonstration: a social network as a stream of changes, a view over it, and Spark's batch SQL as its judge.

`network` generates the stream and the final tables; `crown.cli.demo` runs it and shows what happens.
"""
