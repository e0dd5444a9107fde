"""Window functions.

- `window_functions`: those of a SELECT, each distinct one once; `windowed`: the SELECT around them
"""
