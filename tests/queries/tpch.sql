-- schema
CREATE TABLE region (r_regionkey INT NOT NULL PRIMARY KEY, r_name STRING NOT NULL);
CREATE TABLE nation (n_nationkey INT NOT NULL PRIMARY KEY, n_name STRING NOT NULL, n_regionkey INT NOT NULL);
CREATE TABLE supplier (s_suppkey INT NOT NULL PRIMARY KEY, s_name STRING NOT NULL, s_nationkey INT NOT NULL, s_comment STRING);
CREATE TABLE customer (c_custkey INT NOT NULL PRIMARY KEY, c_name STRING NOT NULL, c_nationkey INT NOT NULL, c_acctbal DECIMAL(15,2), c_mktsegment STRING);
CREATE TABLE part (p_partkey INT NOT NULL PRIMARY KEY, p_name STRING, p_brand STRING, p_type STRING, p_size INT, p_container STRING);
CREATE TABLE partsupp (ps_partkey INT NOT NULL, ps_suppkey INT NOT NULL, ps_availqty INT, ps_supplycost DECIMAL(15,2), PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE orders (o_orderkey INT NOT NULL PRIMARY KEY, o_custkey INT NOT NULL, o_orderstatus STRING, o_totalprice DECIMAL(15,2), o_orderdate DATE, o_orderpriority STRING, o_shippriority INT);
CREATE TABLE lineitem (l_orderkey INT NOT NULL, l_partkey INT NOT NULL, l_suppkey INT NOT NULL, l_linenumber INT NOT NULL, l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipmode STRING, PRIMARY KEY (l_orderkey, l_linenumber));

-- q1
SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price, AVG(l_quantity) AS avg_qty, COUNT(*) AS count_order
FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus

-- q3
SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10

-- q4
SELECT o_orderpriority, COUNT(*) AS order_count FROM orders
WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1995-10-01'
  AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority

-- q5
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
  AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA' AND o_orderdate >= DATE '1993-01-01'
GROUP BY n_name

-- q6
SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem
WHERE l_shipdate >= DATE '1994-01-01' AND l_discount BETWEEN 0.02 AND 0.07 AND l_quantity < 24

-- q7
SELECT supp_nation, cust_nation, l_year, SUM(volume) AS revenue
FROM (SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, YEAR(l_shipdate) AS l_year, l_extendedprice * (1 - l_discount) AS volume
      FROM supplier, lineitem, orders, customer, nation n1, nation n2
      WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey
        AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))) AS shipping
GROUP BY supp_nation, cust_nation, l_year

-- q8
SELECT YEAR(o_orderdate) AS o_year, SUM(CASE WHEN n2.n_name = 'FRANCE' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) AS ours, SUM(l_extendedprice * (1 - l_discount)) AS volume
FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey AND c_nationkey = n1.n_nationkey
  AND n1.n_regionkey = r_regionkey AND s_nationkey = n2.n_nationkey AND p_type LIKE '%STEEL'
GROUP BY YEAR(o_orderdate)

-- q9
SELECT n_name, YEAR(o_orderdate) AS o_year, SUM(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) AS sum_profit
FROM part, supplier, lineitem, partsupp, orders, nation
WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey AND o_orderkey = l_orderkey
  AND s_nationkey = n_nationkey AND p_name LIKE '%green%'
GROUP BY n_name, YEAR(o_orderdate)

-- q10
SELECT c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name
FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R' AND c_nationkey = n_nationkey
GROUP BY c_custkey, c_name, c_acctbal, n_name ORDER BY revenue DESC, c_custkey LIMIT 20

-- q12
SELECT l_shipmode, SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count,
       SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low_line_count
FROM orders, lineitem
WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
GROUP BY l_shipmode

-- q13
SELECT c_count, COUNT(*) AS custdist
FROM (SELECT c_custkey, COUNT(o_orderkey) AS c_count FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_orderpriority <> '1-URGENT' GROUP BY c_custkey) AS c_orders
GROUP BY c_count

-- q14
SELECT SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) AS promo, SUM(l_extendedprice * (1 - l_discount)) AS total
FROM lineitem, part WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1994-09-01'

-- q16
SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt
FROM partsupp, part
WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#1' AND p_size IN (1, 2, 3)
  AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Complaints%')
GROUP BY p_brand, p_type, p_size

-- q18
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity) AS quantity
FROM customer, orders, lineitem
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 50) AND c_custkey = o_custkey AND o_orderkey = l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice

-- q19
SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM lineitem, part
WHERE p_partkey = l_partkey AND ((p_brand = 'Brand#1' AND p_container = 'SM BOX' AND l_quantity <= 20) OR (p_brand = 'Brand#2' AND p_container = 'LG BOX' AND l_quantity >= 10))

-- q21
SELECT s_name, COUNT(*) AS numwait
FROM supplier, lineitem l1, orders, nation
WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate AND s_nationkey = n_nationkey
GROUP BY s_name

-- q2, its correlated minimum as a join
SELECT s_name, n_name, p_partkey, ps_supplycost
FROM part, supplier, partsupp, nation, (SELECT ps_partkey AS cheapest_part, MIN(ps_supplycost) AS cheapest FROM partsupp GROUP BY ps_partkey) AS best
WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND cheapest_part = p_partkey AND ps_supplycost = cheapest AND p_type LIKE '%STEEL'

-- q11, its HAVING over a scalar subquery as WHERE
SELECT part, value FROM (SELECT ps_partkey AS part, SUM(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation
                         WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey GROUP BY ps_partkey) AS stock
WHERE value > (SELECT SUM(ps_supplycost * ps_availqty) * 0.10 FROM partsupp)

-- q15
WITH revenue AS (SELECT l_suppkey AS supplier_no, SUM(l_extendedprice * (1 - l_discount)) AS total_revenue FROM lineitem GROUP BY l_suppkey)
SELECT s_suppkey, s_name, total_revenue FROM supplier, revenue WHERE s_suppkey = supplier_no AND total_revenue = (SELECT MAX(total_revenue) FROM revenue)

-- q17, its correlated average as a join
SELECT SUM(l_extendedprice) AS total FROM lineitem, part, (SELECT l_partkey AS agg_partkey, 0.8 * AVG(l_quantity) AS avg_quantity FROM lineitem GROUP BY l_partkey) AS part_agg
WHERE p_partkey = l_partkey AND agg_partkey = l_partkey AND l_quantity < avg_quantity

-- q22
SELECT c_nationkey, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal FROM customer
WHERE c_acctbal > (SELECT AVG(c_acctbal) FROM customer WHERE c_acctbal > 0.00) AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey) GROUP BY c_nationkey
