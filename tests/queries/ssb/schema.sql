CREATE TABLE lineorder (
  lo_orderkey BIGINT NOT NULL, lo_linenumber INT NOT NULL, lo_custkey INT NOT NULL, lo_partkey INT NOT NULL,
  lo_suppkey INT NOT NULL, lo_orderdate INT NOT NULL, lo_quantity INT NOT NULL, lo_extendedprice BIGINT NOT NULL,
  lo_discount INT NOT NULL, lo_revenue BIGINT NOT NULL, lo_supplycost BIGINT NOT NULL,
  PRIMARY KEY (lo_orderkey, lo_linenumber));
CREATE TABLE dates (
  d_datekey INT NOT NULL PRIMARY KEY, d_year INT NOT NULL, d_yearmonthnum INT NOT NULL, d_yearmonth STRING NOT NULL,
  d_weeknuminyear INT NOT NULL);
CREATE TABLE customer (
  c_custkey INT NOT NULL PRIMARY KEY, c_city STRING NOT NULL, c_nation STRING NOT NULL, c_region STRING NOT NULL);
CREATE TABLE supplier (
  s_suppkey INT NOT NULL PRIMARY KEY, s_city STRING NOT NULL, s_nation STRING NOT NULL, s_region STRING NOT NULL);
CREATE TABLE part (
  p_partkey INT NOT NULL PRIMARY KEY, p_mfgr STRING NOT NULL, p_category STRING NOT NULL, p_brand1 STRING NOT NULL);
