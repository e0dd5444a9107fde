"""The data model that every layer shares: expressions, tables, `Query`, `Plan` and their JSON. No algorithms."""
