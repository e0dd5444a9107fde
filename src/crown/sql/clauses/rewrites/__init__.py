"""What is rewritten as other SQL before a query is bound.

- `check_and_rewrite`: the order of the rewrites
- `time_windows`: TUMBLE, HOP and `window`; `asof`: ASOF JOIN; `clock`: `now()` and its synonyms;
  `spellings`: what some dialects write in fewer words
"""
