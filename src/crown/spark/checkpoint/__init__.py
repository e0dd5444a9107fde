"""Checkpoints: their contents, and whether a stream may continue from one.

- `identity`: what it was made with, compared at each start of the stream; `meaning` and `canonical`: recognise two
  texts of one view as the same query
- `state`: the state of each operator, read as of a committed batch; `handover`: switches a checkpoint between engines
"""
