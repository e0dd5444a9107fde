"""How changes flow through Spark: dispatch, stateful cells, deltas.

- `streaming`: `maintain`; `topology`, `canonical`, `meaning`: what a query needs, whatever its author calls things;
  `maintained`: the DataFrame it returns; `batch`: the same over bounded input
- `operators`: the seam between a query and who runs it. `jvm`: inside Spark's executors; `python`: in Python workers
  (`dispatch`, `netting`, `processor`, `chunks`, `unpack`); `choice` picks one; `realtime`: real-time mode
- `cells`, `selection`: which partition a cell gets, and which rows it needs at all
- `state`, `identity`, `handover`: a checkpoint, what it was made with, and who may go on with it
- `rejects`: changes that were set aside
"""
