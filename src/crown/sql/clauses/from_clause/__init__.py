"""FROM: tables, views, CTEs and subqueries become one relation.

- `joins`: the tables of FROM and how they are joined; `table_options`: WINDOW and PROFILE after a table
- `definitions`: the names that WITH and views define
- `derived`: LATERAL, and derived tables that read the outer query; `values`: literal rows;
  `pivots`: PIVOT and UNPIVOT
- `matches`: outer joins whose ON has subqueries
"""
