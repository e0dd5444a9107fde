"""Rewrites of a query as simpler SQL before it is bound.

- `check_and_rewrite`: the order of the rewrites
- `time_windows`: TUMBLE, HOP and `window`; `asof`: ASOF JOIN; `clock`: `now()` and its synonyms;
  `precedence`: operators without parentheses; `sessions`: SESSION windows; `spellings`: shorthands of some dialects
"""
