-- schema
CREATE TABLE title (id INT NOT NULL PRIMARY KEY, title STRING, kind_id INT, production_year INT);
CREATE TABLE kind_type (id INT NOT NULL PRIMARY KEY, kind STRING);
CREATE TABLE company_name (id INT NOT NULL PRIMARY KEY, name STRING, country_code STRING);
CREATE TABLE company_type (id INT NOT NULL PRIMARY KEY, kind STRING);
CREATE TABLE movie_companies (id INT NOT NULL PRIMARY KEY, movie_id INT, company_id INT, company_type_id INT, note STRING);
CREATE TABLE keyword (id INT NOT NULL PRIMARY KEY, keyword STRING);
CREATE TABLE movie_keyword (id INT NOT NULL PRIMARY KEY, movie_id INT, keyword_id INT);
CREATE TABLE name (id INT NOT NULL PRIMARY KEY, name STRING, gender STRING);
CREATE TABLE cast_info (id INT NOT NULL PRIMARY KEY, movie_id INT, person_id INT, role_id INT, note STRING);
CREATE TABLE info_type (id INT NOT NULL PRIMARY KEY, info STRING);
CREATE TABLE movie_info (id INT NOT NULL PRIMARY KEY, movie_id INT, info_type_id INT, info STRING);
CREATE TABLE movie_link (id INT NOT NULL PRIMARY KEY, movie_id INT, linked_movie_id INT);

-- 1a
SELECT MIN(mc.note) AS production_note, MIN(t.title) AS movie_title, MIN(t.production_year) AS movie_year
FROM company_type ct, info_type it, movie_companies mc, movie_info mi, title t
WHERE ct.kind = 'a' AND it.info = 'b' AND ct.id = mc.company_type_id AND t.id = mc.movie_id AND t.id = mi.movie_id AND mc.movie_id = mi.movie_id AND it.id = mi.info_type_id

-- 2a
SELECT MIN(t.title) AS movie_title FROM company_name cn, keyword k, movie_companies mc, movie_keyword mk, title t
WHERE cn.country_code = 'a' AND k.keyword = 'b' AND cn.id = mc.company_id AND mc.movie_id = t.id AND t.id = mk.movie_id AND mk.keyword_id = k.id AND mc.movie_id = mk.movie_id

-- 3b
SELECT MIN(t.title) AS movie_title FROM keyword k, movie_info mi, movie_keyword mk, title t
WHERE k.keyword LIKE '%a%' AND mi.info IN ('a', 'b') AND t.production_year > 2000 AND t.id = mi.movie_id AND t.id = mk.movie_id AND mk.movie_id = mi.movie_id AND k.id = mk.keyword_id

-- 6a
SELECT MIN(k.keyword) AS movie_keyword, MIN(n.name) AS actor_name, MIN(t.title) AS title FROM cast_info ci, keyword k, movie_keyword mk, name n, title t
WHERE n.name LIKE '%a%' AND t.production_year > 2000 AND k.id = mk.keyword_id AND t.id = mk.movie_id AND t.id = ci.movie_id AND ci.movie_id = mk.movie_id AND n.id = ci.person_id

-- 11-links
SELECT MIN(t1.title) AS first_movie, MAX(t2.title) AS linked_movie, COUNT(*) AS links FROM movie_link ml, title t1, title t2, movie_keyword mk, keyword k
WHERE t1.id = ml.movie_id AND t2.id = ml.linked_movie_id AND mk.movie_id = t1.id AND k.id = mk.keyword_id AND t1.production_year < t2.production_year

-- 17-wide
SELECT n.gender, MIN(n.name) AS member, COUNT(DISTINCT t.id) AS movies FROM cast_info ci, company_name cn, keyword k, movie_companies mc, movie_keyword mk, name n, title t
WHERE n.id = ci.person_id AND ci.movie_id = t.id AND t.id = mk.movie_id AND mk.keyword_id = k.id AND t.id = mc.movie_id AND mc.company_id = cn.id GROUP BY n.gender

-- kinds-without-keyword
SELECT kt.kind, COUNT(*) AS movies FROM title t JOIN kind_type kt ON kt.id = t.kind_id WHERE NOT EXISTS (SELECT 1 FROM movie_keyword mk JOIN keyword k ON k.id = mk.keyword_id WHERE mk.movie_id = t.id AND k.keyword = 'a') GROUP BY kt.kind

-- movies-and-companies
SELECT t.title, cn.name FROM title t LEFT JOIN movie_companies mc ON mc.movie_id = t.id LEFT JOIN company_name cn ON cn.id = mc.company_id
