-- amounts are stored in cents
select id as payment_id, order_id, payment_method, cast(amount / 100 as decimal(12, 2)) as amount
from "jaffle_shop"."main"."raw_payments"
