"""GROUP BY, grouping sets, aggregates and HAVING.

- `grouped`: the groups of a SELECT; `group_by`: what is grouped by; `grouping_sets`: ROLLUP, CUBE and GROUPING SETS
- `aggregates`: the aggregate functions of a SELECT
"""
