CREATE TABLE region (r_regionkey INT NOT NULL PRIMARY KEY, r_name STRING NOT NULL);
CREATE TABLE nation (n_nationkey INT NOT NULL PRIMARY KEY, n_name STRING NOT NULL, n_regionkey INT NOT NULL);
CREATE TABLE supplier (
  s_suppkey INT NOT NULL PRIMARY KEY, s_name STRING NOT NULL, s_address STRING NOT NULL, s_nationkey INT NOT NULL,
  s_phone STRING NOT NULL, s_acctbal DECIMAL(12,2) NOT NULL, s_comment STRING NOT NULL);
CREATE TABLE customer (
  c_custkey INT NOT NULL PRIMARY KEY, c_name STRING NOT NULL, c_address STRING NOT NULL, c_nationkey INT NOT NULL,
  c_phone STRING NOT NULL, c_acctbal DECIMAL(12,2) NOT NULL, c_mktsegment STRING NOT NULL, c_comment STRING NOT NULL);
CREATE TABLE part (
  p_partkey INT NOT NULL PRIMARY KEY, p_name STRING NOT NULL, p_mfgr STRING NOT NULL, p_brand STRING NOT NULL,
  p_type STRING NOT NULL, p_size INT NOT NULL, p_container STRING NOT NULL, p_retailprice DECIMAL(12,2) NOT NULL);
CREATE TABLE partsupp (
  ps_partkey INT NOT NULL, ps_suppkey INT NOT NULL, ps_availqty INT NOT NULL, ps_supplycost DECIMAL(12,2) NOT NULL,
  PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE orders (
  o_orderkey BIGINT NOT NULL PRIMARY KEY, o_custkey INT NOT NULL, o_orderstatus STRING NOT NULL,
  o_totalprice DECIMAL(12,2) NOT NULL, o_orderdate DATE NOT NULL, o_orderpriority STRING NOT NULL,
  o_clerk STRING NOT NULL, o_shippriority INT NOT NULL, o_comment STRING NOT NULL);
CREATE TABLE lineitem (
  l_orderkey BIGINT NOT NULL, l_partkey INT NOT NULL, l_suppkey INT NOT NULL, l_linenumber INT NOT NULL,
  l_quantity DECIMAL(12,2) NOT NULL, l_extendedprice DECIMAL(12,2) NOT NULL, l_discount DECIMAL(12,2) NOT NULL,
  l_tax DECIMAL(12,2) NOT NULL, l_returnflag STRING NOT NULL, l_linestatus STRING NOT NULL, l_shipdate DATE NOT NULL,
  l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL, l_shipinstruct STRING NOT NULL, l_shipmode STRING NOT NULL,
  PRIMARY KEY (l_orderkey, l_linenumber));
