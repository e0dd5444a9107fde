"""WITH RECURSIVE.

- `recursion`: binds the base, then the step; `self_reference`: where a recursive query may read itself
"""
