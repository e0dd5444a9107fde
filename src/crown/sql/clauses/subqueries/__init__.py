"""Subqueries that are values or conditions: EXISTS, IN, quantified comparisons, scalar subqueries.

- `subqueries`: the subqueries of a clause; `inner` binds one with what it reads of the outer row
- It becomes a condition (`clauses.where`, with the NULL rules of NOT IN), a mark (`marks`), a group (`decorrelate`) or
  the first rows of a key (`chosen`, `first_rows`), which `attach` joins with FROM
- `domain`: the outer values, if nothing simpler works; `correlates`: whether a query reads the outer row;
  `unique`: which joins have at most one row
"""
