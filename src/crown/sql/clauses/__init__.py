"""The recursive grammar: SELECT and its clauses, set operations, subqueries.

- `queries`: WITH, set operations, parentheses; `grammar`: what every rule is given; `bound`: what binding
  returns
- `select`: one SELECT, from its `from_clause` and `where` over `grouping` and `windows` to its `result`
- `subqueries`: EXISTS, IN, quantified comparisons and scalar subqueries; `recursion`: WITH RECURSIVE
- `rewrites`: what is rewritten as other SQL before anything is bound
- `misplaced`: where aggregates, subqueries and window functions are not allowed
"""
