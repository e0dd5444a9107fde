SELECT G1.src, COUNT(*) AS n
FROM G G1, G G2, G G3, G G4
WHERE G1.src = G2.src AND G1.src = G3.src AND G1.src = G4.src
GROUP BY G1.src
