CREATE EXTENSION pgdyno_loop;
CREATE TABLE pgbench_accounts (aid integer PRIMARY KEY, abalance integer NOT NULL);
INSERT INTO pgbench_accounts SELECT aid, 0 FROM generate_series(1, 1000) AS aid;

-- n executions, and the rows they return
SELECT executions, rows, elapsed_ms > 0 AS took_time, cpu_ms >= 0 AS took_cpu
FROM exec_query_in_loop('SELECT 1', 100);
SELECT executions, rows FROM exec_query_in_loop('SELECT aid FROM pgbench_accounts WHERE aid <= $1', 10, 3);
SELECT executions, rows FROM exec_query_in_loop('SELECT 1', 0);
SELECT executions, rows FROM exec_query_in_loop(500);
SELECT executions, rows FROM exec_query_in_loop_plpgsql(500);
SELECT executions, rows FROM exec_aggregate_in_loop(5);
SELECT executions, rows FROM exec_aggregate_in_loop_plpgsql(5);
SELECT executions, rows FROM empty_loop(1000);

-- each execution draws a new value from a range, uniformly, within its bounds
CREATE TABLE drawn (small integer, large bigint, same text);
SELECT executions FROM exec_query_in_loop('INSERT INTO drawn VALUES ($1, $2, $3)', 10000,
                                          int4range(1, 10, '[]'), int8range(-5000000000, 5000000000), 'x');
SELECT min(small), max(small), count(*), min(times) > 850 AND max(times) < 1150 AS even
FROM (SELECT small, count(*) AS times FROM drawn GROUP BY small) AS counted;
SELECT count(*) FROM drawn WHERE large NOT BETWEEN -5000000000 AND 4999999999;
SELECT count(DISTINCT large) > 9990 AS differ, count(DISTINCT same) FROM drawn;

-- equal seeds, equal keys
SET pgdyno_loop.seed = 7;
SELECT loop_keys(5, 1000) = loop_keys(5, 1000) AS equal;
SELECT loop_keys(5, 1000) AS seven \gset
SET pgdyno_loop.seed = 8;
SELECT loop_keys(5, 1000) = :'seven'::integer[] AS equal;
SET pgdyno_loop.seed = 0;
SELECT loop_keys(5, 1000000) = loop_keys(5, 1000000) AS equal;
RESET pgdyno_loop.seed;

-- writes happen once per execution
SELECT executions, rows FROM exec_query_in_loop(
    'UPDATE pgbench_accounts SET abalance = abalance + $2 WHERE aid = $1', 50, int4range(1, 1001), 2);
SELECT sum(abalance) FROM pgbench_accounts;
SELECT executions, rows FROM exec_query_in_loop('SELECT 1 WHERE $1::integer IS NULL', 5, NULL::integer);

-- invalid calls
SELECT exec_query_in_loop('SELECT 1', -1);
SELECT exec_query_in_loop('SELECT 1; SELECT 2', 1);
SELECT exec_query_in_loop('', 1);
SELECT exec_query_in_loop(NULL, 1);
SELECT exec_query_in_loop('SELECT 1', NULL);
SELECT exec_query_in_loop('SELECT nothing', 1);
SELECT exec_query_in_loop('SELECT $1', 1, int4range(1, 1));
SELECT exec_query_in_loop('SELECT $1', 1, int8range(1, NULL));
SELECT exec_query_in_loop('COMMIT', 1);
SELECT exec_query_in_loop('SELECT 1 / (500 - aid) FROM pgbench_accounts WHERE aid = $1', 1, 500);
SELECT loop_keys(5, 0);
CREATE ROLE regress_loop_nobody;
SET ROLE regress_loop_nobody;
SELECT exec_query_in_loop('SELECT 1', 1);
SELECT exec_query_in_loop(1::bigint);
SELECT exec_aggregate_in_loop(1);
SELECT exec_aggregate_in_loop_plpgsql(1);
SELECT empty_loop(1);
RESET ROLE;
GRANT EXECUTE ON FUNCTION empty_loop(bigint) TO regress_loop_nobody;
SET ROLE regress_loop_nobody;
SELECT executions FROM empty_loop(1);
RESET ROLE;
REVOKE EXECUTE ON FUNCTION empty_loop(bigint) FROM regress_loop_nobody;
DROP ROLE regress_loop_nobody;

-- a loop is canceled during a query or between two
\set SHOW_CONTEXT never
SET statement_timeout = '50ms';
SELECT empty_loop(9000000000000);
SELECT exec_query_in_loop('SELECT 1', 9000000000000);
RESET statement_timeout;
