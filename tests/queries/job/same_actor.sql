SELECT DISTINCT n.name, t1.title AS first_title, t2.title AS second_title
FROM name n JOIN cast_info c1 ON c1.person_id = n.id JOIN cast_info c2 ON c2.person_id = n.id
  JOIN title t1 ON t1.id = c1.movie_id JOIN title t2 ON t2.id = c2.movie_id
WHERE t1.production_year < t2.production_year AND n.gender = 'f'
