"""The recursive grammar: SELECT and its clauses, set operations, subqueries.

- `queries`: WITH, set operations, parentheses; `grammar`: what every rule is given; `definitions`, `bound`: what a name
  in FROM stands for, and what binding a query returns
- `select`: one SELECT, from its `from_clause` and `where` to what is `shown`: `distinct_on`, `order_by`,
  `limit`, and `top`, which applies both
- `grouped`: GROUP BY, `grouping_sets`, `aggregates` and HAVING; `window_functions`, `windowed`: window functions
- `subqueries`: those that a clause meets. `inner` binds one with what it reads of the outer row, and it becomes a
  condition (`where`), a mark (`marks`), a group (`decorrelate`) or the first rows of a key (`chosen`, `first_rows`),
  which `attach` joins with FROM; `domain` has the outer values where nothing simpler will do; `derived` is LATERAL;
  `correlates` tells from the text whether a query reads the outer row
- `rewrites`: `time_windows`, `asof` joins and the `clock`, written out in other words of SQL before anything is bound
- `values`: rows that are written in the query; `table_options`: WINDOW and PROFILE; `unique`: what has one row at most;
  `misplaced`: where aggregates, subqueries and window functions are not allowed
"""
