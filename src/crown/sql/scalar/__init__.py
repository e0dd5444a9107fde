"""Scalar expressions: sqlglot nodes to typed `crown.ir` expressions."""
