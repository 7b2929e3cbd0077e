/*
 * pgdyno_loop.c: runs a query in a loop inside the server, without the overhead of a client and a network.
 *
 * The query is prepared once. Each execution does the same work as a client's statement, with a new snapshot
 * and the start and end of the executor, but without the protocol and a separate transaction: all executions
 * run in one transaction. It is meant for short queries: their result rows are kept until the end of the
 * execution, and they are planned without parallel workers. Concurrent sessions, and all calls in a session,
 * draw the same values if they have the same pgdyno_loop.seed, other than 0.
 */
#include "postgres.h"

#include <limits.h>
#include <sys/resource.h>

#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/plancache.h"
#include "catalog/pg_type.h"

#include "parameters.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(exec_query_in_loop);
PG_FUNCTION_INFO_V1(empty_loop);
PG_FUNCTION_INFO_V1(loop_keys);
PG_FUNCTION_INFO_V1(loop_clock);

void		_PG_init(void);

static int	seed = 1;

typedef struct Clock
{
	double		elapsed_ms;
	double		cpu_ms;
} Clock;

void
_PG_init(void)
{
	DefineCustomIntVariable("pgdyno_loop.seed", "Sets the seed of the values drawn from ranges.",
							"0 uses a new random seed for every call.", &seed, 1, 0, INT_MAX, PGC_USERSET, 0, NULL, NULL,
							NULL);
#if PG_VERSION_NUM >= 150000
	MarkGUCPrefixReserved("pgdyno_loop");
#else
	EmitWarningsOnPlaceholders("pgdyno_loop");
#endif
}

static uint64
seed_of_call(void)
{
	uint64		any;

	if (seed != 0)
		return seed;
	if (!pg_strong_random(&any, sizeof(any)))
		ereport(ERROR, (errmsg("could not generate a random seed")));
	return any;
}

static double
milliseconds(const struct timeval *time)
{
	return time->tv_sec * 1e3 + time->tv_usec / 1e3;
}

/* Reads the wall clock and the CPU time of this process, in user and kernel mode. */
static Clock
read_clock(void)
{
	instr_time	now;
	struct rusage usage;

	INSTR_TIME_SET_CURRENT(now);
	if (getrusage(RUSAGE_SELF, &usage) != 0)
		ereport(ERROR, (errmsg("could not read the CPU time of this process: %m")));
	return (Clock) {INSTR_TIME_GET_MILLISEC(now), milliseconds(&usage.ru_utime) + milliseconds(&usage.ru_stime)};
}

static Datum
result(FunctionCallInfo fcinfo, int64 executions, int64 rows, Clock began)
{
	Clock		ended = read_clock();
	Datum		values[4];
	bool		nulls[4] = {false};
	TupleDesc	type;

	if (get_call_result_type(fcinfo, NULL, &type) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "the function must return a row");
	values[0] = Int64GetDatum(executions);
	values[1] = Int64GetDatum(rows);
	values[2] = Float8GetDatum(ended.elapsed_ms - began.elapsed_ms);
	values[3] = Float8GetDatum(ended.cpu_ms - began.cpu_ms);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(type), values, nulls));
}

static int64
checked_count(int64 n)
{
	if (n < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a query cannot be executed %lld times", (long long) n)));
	return n;
}

/* Prepares exactly one statement. */
static SPIPlanPtr
prepare(const char *query, Parameters *parameters)
{
	SPIPlanPtr	plan = SPI_prepare(query, parameters->count, parameters->types);
	int			statements;

	if (plan == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the query cannot be prepared: %s", SPI_result_code_string(SPI_result))));
	statements = list_length(SPI_plan_get_plan_sources(plan));
	if (statements != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the query has %d statements", statements),
				 errhint("Pass exactly one statement.")));
	return plan;
}

/* exec_query_in_loop(query text, n bigint [, VARIADIC args "any"]) */
Datum
exec_query_in_loop(PG_FUNCTION_ARGS)
{
	const char *query;
	int64		n,
				rows = 0;
	Parameters *parameters;
	SPIPlanPtr	plan;
	Clock		began;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the query and the number of its executions must not be null")));
	query = text_to_cstring(PG_GETARG_TEXT_PP(0));
	n = checked_count(PG_GETARG_INT64(1));
	parameters = read_parameters(fcinfo, 2, seed_of_call());
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to the executor");
	plan = prepare(query, parameters);
	began = read_clock();
	for (int64 i = 0; i < n; i++)
	{
		int			status;

		CHECK_FOR_INTERRUPTS();
		draw(parameters);
		status = SPI_execute_plan(plan, parameters->values, parameters->nulls, false, 0);
		if (status < 0)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("the query cannot be executed in a loop: %s", SPI_result_code_string(status))));
		rows += SPI_processed;
		SPI_freetuptable(SPI_tuptable);
	}
	SPI_finish();
	return result(fcinfo, n, rows, began);
}

/* empty_loop(n bigint): measures the overhead of the loop. */
Datum
empty_loop(PG_FUNCTION_ARGS)
{
	int64		n = checked_count(PG_GETARG_INT64(0));
	uint64		state = seed_of_call();
	Drawn		any = {.is_drawn = true, .lowest = 1, .count = 100000};
	volatile int64 kept = 0;	/* keeps the compiler from removing the loop */
	Clock		began = read_clock();

	for (int64 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		kept = draw_one(&state, &any);
	}
	(void) kept;
	return result(fcinfo, n, 0, began);
}

/* loop_keys(n bigint, last integer): n keys from 1 to last, as exec_query_in_loop draws them. */
Datum
loop_keys(PG_FUNCTION_ARGS)
{
	int64		n = checked_count(PG_GETARG_INT64(0));
	int32		last = PG_GETARG_INT32(1);
	uint64		state = seed_of_call();
	Drawn		keys = {.is_drawn = true, .lowest = 1, .count = last};
	Datum	   *values;

	if (last < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("there are no keys from 1 to %d", last)));
	if ((uint64) n >= MaxAllocSize / sizeof(Datum))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("an array of %lld keys is too large", (long long) n)));
	values = palloc(sizeof(Datum) * (n + 1));
	for (int64 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		values[i] = Int32GetDatum((int32) draw_one(&state, &keys));
	}
	PG_RETURN_ARRAYTYPE_P(construct_array(values, (int) n, INT4OID, sizeof(int32), true, TYPALIGN_INT));
}

/* loop_clock(): the wall clock and this process's CPU time. */
Datum
loop_clock(PG_FUNCTION_ARGS)
{
	Clock		now = read_clock();
	Datum		values[2] = {Float8GetDatum(now.elapsed_ms), Float8GetDatum(now.cpu_ms)};
	bool		nulls[2] = {false};
	TupleDesc	type;

	if (get_call_result_type(fcinfo, NULL, &type) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "the function must return a row");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(type), values, nulls));
}
