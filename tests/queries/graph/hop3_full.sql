SELECT G1.src AS A, G2.src AS B, G3.src AS C, G3.dst AS D
FROM G G1, G G2, G G3
WHERE G1.dst = G2.src AND G2.dst = G3.src AND G3.dst % 10 = 0
