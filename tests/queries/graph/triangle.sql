SELECT G1.src AS A, G2.src AS B, G3.src AS C
FROM G G1 JOIN G G2 ON G1.dst = G2.src JOIN G G3 ON G2.dst = G3.src AND G3.dst = G1.src
