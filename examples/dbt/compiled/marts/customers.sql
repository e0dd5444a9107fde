with customer_orders as (
    select customer_id, min(order_date) as first_order, max(order_date) as last_order, count(*) as number_of_orders
    from "jaffle_shop"."main"."stg_orders"
    group by customer_id
),

customer_payments as (
    select orders.customer_id, sum(payments.amount) as lifetime_value
    from "jaffle_shop"."main"."stg_payments" as payments
    join "jaffle_shop"."main"."stg_orders" as orders on orders.order_id = payments.order_id
    group by orders.customer_id
)

select
    customers.customer_id,
    customers.first_name,
    customers.last_name,
    customer_orders.first_order,
    customer_orders.last_order,
    customer_orders.number_of_orders,
    customer_payments.lifetime_value
from "jaffle_shop"."main"."stg_customers" as customers
left join customer_orders on customer_orders.customer_id = customers.customer_id
left join customer_payments on customer_payments.customer_id = customers.customer_id
