SELECT COUNT(*) AS n
FROM G G1, G G2, G G3, G G4
WHERE G1.dst = G2.src AND G2.dst = G3.src AND G3.dst = G4.src AND G4.dst = G1.src
