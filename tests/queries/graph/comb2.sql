SELECT G1.src AS A, G2.src AS B, G3.src AS C, G3.dst AS D
FROM G G1, G G2, G G3, V1, V2
WHERE G1.dst = G2.src AND G2.dst = G3.src AND V1.v = G1.src AND V2.v = G3.dst
