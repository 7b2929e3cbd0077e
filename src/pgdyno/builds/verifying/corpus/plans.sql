-- Queries for comparing plans, with all costs and sizes computed by the planner.

SELECT * FROM number WHERE x BETWEEN 1.5 AND 3.25 ORDER BY y;

SELECT a.i FROM number a JOIN number b ON a.i = b.i + 1 WHERE a.x * a.y + a.part > 12;

SELECT round(x), count(*), sum(y) FROM number GROUP BY round(x) HAVING sum(y) > 3 ORDER BY 2;

SELECT * FROM number a WHERE EXISTS (SELECT FROM number b WHERE b.short = a.short AND b.y < a.x);

SELECT * FROM words a, number b WHERE a.i = b.i AND a.t @@ 'pg'::tsquery;
