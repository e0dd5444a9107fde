SELECT G1.src AS A, G2.src AS B, G3.src AS C, G3.dst AS D, G4.dst AS E
FROM G G1, G G2, G G3, G G4
WHERE G1.dst = G2.src AND G2.dst = G3.src AND G3.dst = G4.src AND G4.dst % 100 = 0
