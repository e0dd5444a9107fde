"""The recursive grammar: SELECT and its clauses, set operations, subqueries."""
