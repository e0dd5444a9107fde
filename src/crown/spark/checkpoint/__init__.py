"""What a checkpoint holds, and whether a stream may continue it.

- `identity`: what it was made with, compared whenever the stream starts; `meaning` and `canonical`: two texts of
  one view are the same query
- `state`: the state of each operator, read as of a committed batch; `handover`: from one engine to the other
"""
