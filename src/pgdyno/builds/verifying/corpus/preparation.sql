-- The data of the queries. Each number is computed from integers by one exact or one rounded operation.

SELECT setseed(0.25);

CREATE TABLE number AS
SELECT i,
       (i * 2654435761 % 1000003)::float8 / 7919 - 60 AS x,
       (i * 40503 % 65537)::float8 / 257 - 120 AS y,
       ((i * 2654435761 % 1000003)::float8 / 1000003)::float8 AS part,
       (i * 48271 % 2147483647)::float4 / 97::float4 AS short,
       (i * 7919 % 1000003)::numeric / 1009 AS exact
FROM generate_series(1::bigint, 5000) AS i;

CREATE INDEX number_expression ON number ((sin(x) * y + x));

CREATE INDEX number_place ON number USING gist (point(x, y));

CREATE STATISTICS number_together ON (x * y + part), (round(x)), short FROM number;

ALTER TABLE number ALTER x SET STATISTICS 1000;

ANALYZE number;

CREATE TABLE words AS SELECT i, to_tsvector('simple', md5(i::text) || ' ' || md5((i % 7)::text) || ' pg')
       AS t
FROM generate_series(1, 500) AS i;
