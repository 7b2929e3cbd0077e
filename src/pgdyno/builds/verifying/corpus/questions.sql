-- Queries with results that depend on every single floating-point operation.

SELECT i, x + y, x - y, x * y, x / nullif(y, 0), x * y + part, x * x - y * y, x * y + y * part - x / 3
FROM number ORDER BY i;

SELECT i, sqrt(abs(x)), cbrt(y), exp(x), ln(abs(x) + 1), log(abs(y) + 1), power(abs(x), part)
FROM number ORDER BY i;

SELECT i, sin(x), cos(x), tan(x), cot(x), asin(part), acos(part), atan(x), atan2(x, y)
FROM number ORDER BY i;

SELECT i, sind(x), cosd(x), tand(x), asind(part), acosd(part), atand(x), degrees(x), radians(y)
FROM number ORDER BY i;

SELECT i, sinh(part), cosh(part), tanh(x), asinh(x), acosh(abs(x) + 1), atanh(part)
FROM number ORDER BY i;

SELECT i, short * short, short / 3, short + x, short::float8 * y, x::float4 * y::float4
FROM number ORDER BY i;

SELECT i, round(x), trunc(y), ceil(x), floor(y), x::int, y::bigint, x::numeric, part::float4
FROM number ORDER BY i;

SELECT i, encode(float8send(x * y + part), 'hex'), encode(float4send(short * 1.1::float4), 'hex')
FROM number ORDER BY i;

SELECT i % 13, count(*), sum(x), avg(x), stddev(x), var_pop(y), sum(short), avg(short), stddev_pop(short)
FROM number GROUP BY 1 ORDER BY 1;

SELECT i % 11, corr(x, y), covar_pop(x, y), covar_samp(x, y), regr_slope(x, y), regr_intercept(x, y),
       regr_r2(x, y), regr_sxy(x, y)
FROM number GROUP BY 1 ORDER BY 1;

SELECT percentile_cont(ARRAY[0.01, 0.333, 0.5, 0.97]) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP
       (ORDER BY y)
FROM number;

SELECT i, sum(x * y) OVER w, avg(part) OVER w, stddev_samp(y) OVER w
FROM number
WINDOW w AS (ORDER BY i ROWS BETWEEN 7 PRECEDING AND CURRENT ROW) ORDER BY i;

SELECT i, ln(exact + 1), exp(part::numeric), power(exact + 1, 0.37), sqrt(exact), exact / 7
FROM number WHERE i <= 300 ORDER BY i;

SELECT i, point(x, y) <-> point(y, x), point(x, y) * point(y, part), point(x, y) / point(y, x + 0.5),
       point(part, 1) ## lseg(point(x, y), point(y, x)), slope(point(x, y), point(part, y))
FROM number ORDER BY i;

SELECT i, area(circle(point(x, y), abs(part))), polygon(8, circle(point(x, y), abs(y))), @-@
       path(polygon(5, circle(point(x, y), 2))), box(point(x, y), point(y, x)) # box(point(0, 0),
       point(9, 9)), lseg(point(x, y), point(y, x)) # lseg(point(0, 0), point(9, 8))
FROM number WHERE i <= 1000 ORDER BY i;

SELECT i FROM number WHERE sin(x) * y + x BETWEEN -1 AND 1 ORDER BY sin(x) * y + x, i;

SELECT i, point(x, y) <-> point(1, 2) FROM number ORDER BY point(x, y) <-> point(1, 2), i LIMIT 500;

SELECT attname, null_frac, avg_width, n_distinct, most_common_vals::text, most_common_freqs,
       histogram_bounds::text, correlation FROM pg_stats
WHERE tablename = 'number' ORDER BY attname;

SELECT i, ts_rank(t, 'pg'::tsquery), ts_rank_cd(t, 'pg'::tsquery, 2) FROM words ORDER BY i;

SELECT i, width_bucket(x, -60, 60, 17), interval '1 day 3 hours' * x, extract(epoch FROM interval '1 s' *
       y), to_char(x, 'FM9990.0000000'), to_timestamp(y * 1e6) AT TIME ZONE 'UTC'
FROM number ORDER BY i;

SELECT setseed(0.5)::text UNION ALL SELECT random()::text FROM generate_series(1, 500);

SELECT i FROM number TABLESAMPLE BERNOULLI (7.5) REPEATABLE (42) ORDER BY i;

SELECT i, hashfloat8(x), hashfloat4(short), x::text::jsonb, to_json(y) FROM number ORDER BY i;
