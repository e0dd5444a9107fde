with order_payments as (
    select
        order_id,
        sum(case when payment_method = 'coupon' then amount else 0 end) as coupon_amount,
        sum(amount) as total_amount
    from "jaffle_shop"."main"."stg_payments"
    group by order_id
)

select
    orders.order_id,
    orders.customer_id,
    orders.order_date,
    orders.status,
    order_payments.coupon_amount,
    order_payments.total_amount
from "jaffle_shop"."main"."stg_orders" as orders
left join order_payments on order_payments.order_id = orders.order_id
