"""How changes flow through Spark: dispatch, stateful cells, deltas.

- `streaming`: `maintain`; `topology`, `canonical`, `meaning`: the operators that a query needs, regardless of the names
  in it; `maintained`: the DataFrame it returns; `batch`: the same over bounded input
- `operators`: the interface between a query and the runtime of its operators. `jvm`: inside Spark's executors;
  `python`: in Python workers (`dispatch`, `netting`, `processor`, `chunks`, `unpack`); `choice` picks one; `realtime`:
  real-time mode
- `cells`, `selection`: which partition a cell gets, and which rows it needs at all
- `state`, `identity`, `handover`: a checkpoint, what it was made with, and who may continue it
- `rejects`: rejected changes
"""
