\echo Use "CREATE EXTENSION pgdyno_loop" to load this file. \quit

CREATE FUNCTION exec_query_in_loop(
    query text, n bigint,
    OUT executions bigint, OUT rows bigint, OUT elapsed_ms double precision, OUT cpu_ms double precision)
AS 'MODULE_PATHNAME', 'exec_query_in_loop' LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION exec_query_in_loop(
    query text, n bigint, VARIADIC args "any",
    OUT executions bigint, OUT rows bigint, OUT elapsed_ms double precision, OUT cpu_ms double precision)
AS 'MODULE_PATHNAME', 'exec_query_in_loop' LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION exec_query_in_loop(text, bigint, "any") IS
    'prepares a query once and executes it n times; an argument that is a range is drawn from it anew each time';

-- One indexed read of pgbench's accounts, n times, as in the study of 2020 on two machines.
CREATE FUNCTION exec_query_in_loop(
    n bigint,
    OUT executions bigint, OUT rows bigint, OUT elapsed_ms double precision, OUT cpu_ms double precision)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
BEGIN
    SELECT looped.* INTO executions, rows, elapsed_ms, cpu_ms
    FROM (SELECT max(aid) AS last FROM pgbench_accounts) AS accounts,
         @extschema@.exec_query_in_loop('SELECT abalance FROM pgbench_accounts WHERE aid = $1', exec_query_in_loop.n,
                            int4range(1, accounts.last, '[]')) AS looped;
END $$;

-- The same in PL/pgSQL, over an array of keys drawn in advance.
CREATE FUNCTION exec_query_in_loop_plpgsql(
    n bigint,
    OUT executions bigint, OUT rows bigint, OUT elapsed_ms double precision, OUT cpu_ms double precision)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
DECLARE
    keys integer[];
    key integer;
    balance integer;
    began record;
    ended record;
BEGIN
    keys := @extschema@.loop_keys(n, (SELECT max(aid) FROM pgbench_accounts));
    executions := 0;
    rows := 0;
    began := @extschema@.loop_clock();
    FOREACH key IN ARRAY keys LOOP
        SELECT abalance INTO balance FROM pgbench_accounts WHERE aid = key;
        executions := executions + 1;
        IF FOUND THEN
            rows := rows + 1;
        END IF;
    END LOOP;
    ended := @extschema@.loop_clock();
    elapsed_ms := ended.elapsed_ms - began.elapsed_ms;
    cpu_ms := ended.cpu_ms - began.cpu_ms;
END $$;

-- A sum over the thousand accounts that follow a drawn one, n times.
CREATE FUNCTION exec_aggregate_in_loop(
    n bigint,
    OUT executions bigint, OUT rows bigint, OUT elapsed_ms double precision, OUT cpu_ms double precision)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
BEGIN
    SELECT looped.* INTO executions, rows, elapsed_ms, cpu_ms
    FROM (SELECT max(aid) - 999 AS last FROM pgbench_accounts) AS accounts,
         @extschema@.exec_query_in_loop('SELECT sum(abalance) FROM (SELECT abalance FROM pgbench_accounts '
                            'WHERE aid >= $1 ORDER BY aid LIMIT 1000) AS following', exec_aggregate_in_loop.n,
                            int4range(1, accounts.last, '[]')) AS looped;
END $$;

-- The same in PL/pgSQL.
CREATE FUNCTION exec_aggregate_in_loop_plpgsql(
    n bigint,
    OUT executions bigint, OUT rows bigint, OUT elapsed_ms double precision, OUT cpu_ms double precision)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
DECLARE
    keys integer[];
    key integer;
    total bigint;
    began record;
    ended record;
BEGIN
    keys := @extschema@.loop_keys(n, (SELECT max(aid) - 999 FROM pgbench_accounts));
    executions := 0;
    rows := 0;
    began := @extschema@.loop_clock();
    FOREACH key IN ARRAY keys LOOP
        SELECT sum(abalance) INTO total
        FROM (SELECT abalance FROM pgbench_accounts WHERE aid >= key ORDER BY aid LIMIT 1000) AS following;
        executions := executions + 1;
        IF FOUND THEN
            rows := rows + 1;
        END IF;
    END LOOP;
    ended := @extschema@.loop_clock();
    elapsed_ms := ended.elapsed_ms - began.elapsed_ms;
    cpu_ms := ended.cpu_ms - began.cpu_ms;
END $$;

-- The loop of exec_query_in_loop without a query: one draw from a range, one check for interrupts.
CREATE FUNCTION empty_loop(
    n bigint,
    OUT executions bigint, OUT rows bigint, OUT elapsed_ms double precision, OUT cpu_ms double precision)
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION loop_keys(n bigint, last integer) RETURNS integer[]
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION loop_clock(OUT elapsed_ms double precision, OUT cpu_ms double precision)
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;

-- Each of these functions can keep a CPU busy for any length of time.
REVOKE EXECUTE ON FUNCTION
    exec_query_in_loop(text, bigint), exec_query_in_loop(text, bigint, "any"), exec_query_in_loop(bigint),
    exec_query_in_loop_plpgsql(bigint), exec_aggregate_in_loop(bigint), exec_aggregate_in_loop_plpgsql(bigint),
    empty_loop(bigint), loop_keys(bigint, integer), loop_clock()
FROM PUBLIC;
