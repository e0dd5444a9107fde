"""The result of a SELECT.

- `shown`: outputs, DISTINCT, ORDER BY and LIMIT together; `distinct_on`; `order_by`; `limit`
- `top`: applies an order and a limit; `aliases`: output names in WHERE
"""
