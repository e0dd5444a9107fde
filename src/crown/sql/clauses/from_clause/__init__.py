"""FROM: tables, views, CTEs and subqueries become one relation.

- `joins`: the tables of FROM and how they are joined; `table_options`: WINDOW and PROFILE after a table
- `definitions`: what a name stands for: WITH, and views
- `derived`: LATERAL, and derived tables that read the outer query; `values`: rows that are written in the query;
  `pivots`: PIVOT and UNPIVOT
- `matches`: outer joins whose ON has subqueries
"""
