SELECT DISTINCT G4.src, G4.dst
FROM G G1, G G2, G G3, G G4, G G5, G G6, G G7
WHERE G1.dst = G2.src AND G2.dst = G3.src AND G3.dst = G1.src
  AND G5.dst = G6.src AND G6.dst = G7.src AND G7.dst = G5.src
  AND G4.src = G3.dst AND G4.dst = G5.src
