"""The recursive grammar: SELECT and its clauses, set operations, subqueries.

- `queries`: WITH, set operations, parentheses; `grammar`: the context of every rule; `bound`: the result of binding
- `select`: one SELECT, from its `from_clause` and `where` over `grouping` and `windows` to its `result`
- `subqueries`: EXISTS, IN, quantified comparisons and scalar subqueries; `recursion`: WITH RECURSIVE
- `rewrites`: constructs that are rewritten as other SQL before anything is bound
- `misplaced`: where aggregates, subqueries and window functions are not allowed
"""
