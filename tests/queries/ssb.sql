-- schema
CREATE TABLE date_dim (d_datekey INT NOT NULL PRIMARY KEY, d_year INT, d_yearmonthnum INT, d_weeknuminyear INT);
CREATE TABLE customer (c_custkey INT NOT NULL PRIMARY KEY, c_city STRING, c_nation STRING, c_region STRING);
CREATE TABLE supplier (s_suppkey INT NOT NULL PRIMARY KEY, s_city STRING, s_nation STRING, s_region STRING);
CREATE TABLE part (p_partkey INT NOT NULL PRIMARY KEY, p_mfgr STRING, p_category STRING, p_brand STRING);
CREATE TABLE lineorder (lo_orderkey INT NOT NULL, lo_linenumber INT NOT NULL, lo_custkey INT NOT NULL, lo_partkey INT NOT NULL, lo_suppkey INT NOT NULL, lo_orderdate INT NOT NULL, lo_quantity INT, lo_extendedprice INT, lo_discount INT, lo_revenue INT, lo_supplycost INT, PRIMARY KEY (lo_orderkey, lo_linenumber));

-- q1.1
SELECT SUM(lo_extendedprice * lo_discount) AS revenue FROM lineorder, date_dim WHERE lo_orderdate = d_datekey AND d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25

-- q1.2
SELECT SUM(lo_extendedprice * lo_discount) AS revenue FROM lineorder, date_dim WHERE lo_orderdate = d_datekey AND d_yearmonthnum = 199301 AND lo_discount BETWEEN 1 AND 6

-- q1.3
SELECT SUM(lo_extendedprice * lo_discount) AS revenue FROM lineorder, date_dim WHERE lo_orderdate = d_datekey AND d_weeknuminyear = 1 AND d_year = 1993 AND lo_quantity BETWEEN 2 AND 35

-- q2.1
SELECT SUM(lo_revenue) AS revenue, d_year, p_brand FROM lineorder, date_dim, part, supplier WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey AND p_category = 'MFGR#12' AND s_region = 'AMERICA' GROUP BY d_year, p_brand

-- q2.2
SELECT SUM(lo_revenue) AS revenue, d_year, p_brand FROM lineorder, date_dim, part, supplier WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey AND p_brand BETWEEN 'MFGR#1' AND 'MFGR#2' AND s_region = 'ASIA' GROUP BY d_year, p_brand

-- q2.3
SELECT SUM(lo_revenue) AS revenue, d_year, p_brand FROM lineorder, date_dim, part, supplier WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey AND p_brand = 'MFGR#2' AND s_region = 'ASIA' GROUP BY d_year, p_brand

-- q3.1
SELECT c_nation, s_nation, d_year, SUM(lo_revenue) AS revenue FROM customer, lineorder, supplier, date_dim WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey AND c_region = 'ASIA' AND s_region = 'ASIA' GROUP BY c_nation, s_nation, d_year

-- q3.2
SELECT c_city, s_city, d_year, SUM(lo_revenue) AS revenue FROM customer, lineorder, supplier, date_dim WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey AND c_nation = 'CHINA' AND s_nation = 'CHINA' GROUP BY c_city, s_city, d_year

-- q3.3
SELECT c_city, s_city, d_year, SUM(lo_revenue) AS revenue FROM customer, lineorder, supplier, date_dim WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey AND (c_city = 'A' OR c_city = 'B') AND (s_city = 'A' OR s_city = 'B') GROUP BY c_city, s_city, d_year

-- q3.4
SELECT c_city, s_city, d_year, SUM(lo_revenue) AS revenue FROM customer, lineorder, supplier, date_dim WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey AND c_city IN ('A', 'B') AND d_yearmonthnum = 199301 GROUP BY c_city, s_city, d_year

-- q4.1
SELECT d_year, c_nation, SUM(lo_revenue - lo_supplycost) AS profit FROM date_dim, customer, supplier, part, lineorder WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey AND c_region = 'AMERICA' AND s_region = 'AMERICA' AND (p_mfgr = 'M1' OR p_mfgr = 'M2') GROUP BY d_year, c_nation

-- q4.2
SELECT d_year, s_nation, p_category, SUM(lo_revenue - lo_supplycost) AS profit FROM date_dim, customer, supplier, part, lineorder WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey AND c_region = 'AMERICA' AND s_region = 'AMERICA' AND (d_year = 1993 OR d_year = 1994) GROUP BY d_year, s_nation, p_category

-- q4.3
SELECT d_year, s_city, p_brand, SUM(lo_revenue - lo_supplycost) AS profit FROM date_dim, customer, supplier, part, lineorder WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey AND s_nation = 'CHINA' AND p_category = 'MFGR#12' GROUP BY d_year, s_city, p_brand
