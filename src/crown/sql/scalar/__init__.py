"""Scalar expressions: sqlglot nodes to typed `crown.ir` expressions.

- `binder`: the rules for operators and for the functions that sqlglot knows; `binding`: what rules see of it
- `functions`: the others, by their Spark names; `declared`: those of the user; `catalogue`: all of them by family
- `rounding`, `bits`, `strings`, `patterns`, `nested`, `date_parts`, `date_functions`: the rules of one family each
- `intervals`: dates and timestamps plus or minus an interval or days
- `coerce`: casts; `literals`, `constants`, `fold`: what is known before any row is read
"""
