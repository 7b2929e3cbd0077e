/*
 * parameters.c: reads the parameters of a call, and draws values from ranges.
 *
 * The random numbers are SplitMix64 (Steele, Lea, Flood 2014). The server has a generator only since version
 * 15, and equal seeds must give equal keys in all versions.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/rangetypes.h"
#include "utils/typcache.h"

#include "parameters.h"

static uint64
next(uint64 *state)
{
	uint64		mixed = (*state += UINT64CONST(0x9E3779B97F4A7C15));

	mixed = (mixed ^ (mixed >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	mixed = (mixed ^ (mixed >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return mixed ^ (mixed >> 31);
}

/* Draws uniformly: redraws numbers in the incomplete last multiple of count, which would favour low values. */
int64
draw_one(uint64 *state, const Drawn *from)
{
	uint64		number = next(state);

	if (from->count == 0)
		return (int64) number;
	while (number >= PG_UINT64_MAX - PG_UINT64_MAX % from->count)
		number = next(state);
	return (int64) ((uint64) from->lowest + number % from->count);
}

/* Draws new values for all parameters that are ranges. */
void
draw(Parameters *parameters)
{
	for (int i = 0; i < parameters->count; i++)
	{
		const Drawn *from = &parameters->drawn[i];
		int64		value;

		if (!from->is_drawn)
			continue;
		value = draw_one(&parameters->state, from);
		parameters->values[i] = from->is_wide ? Int64GetDatum(value) : Int32GetDatum((int32) value);
	}
}

/* Reads a range of integers. Its canonical form excludes the upper bound. */
static Drawn
range_of(Datum value, Oid type, int position)
{
	RangeType  *range = DatumGetRangeTypeP(value);
	RangeBound	lower,
				upper;
	bool		is_empty;
	Drawn		drawn = {.is_drawn = true, .is_wide = type == INT8RANGEOID};
	int64		end;

	range_deserialize(lookup_type_cache(type, TYPECACHE_RANGE_INFO), range, &lower, &upper, &is_empty);
	if (is_empty || lower.infinite || upper.infinite)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("parameter $%d cannot be drawn from %s range", position,
						is_empty ? "an empty" : "an unbounded"),
				 errhint("For example int4range(1, 100000, '[]').")));
	drawn.lowest = drawn.is_wide ? DatumGetInt64(lower.val) : DatumGetInt32(lower.val);
	end = drawn.is_wide ? DatumGetInt64(upper.val) : DatumGetInt32(upper.val);
	drawn.count = (uint64) end - (uint64) drawn.lowest;
	return drawn;
}

/* Returns the type of values drawn from a range type; any other type unchanged. */
static Oid
seen_type(Oid type)
{
	return type == INT4RANGEOID ? INT4OID : type == INT8RANGEOID ? INT8OID : type;
}

/* Reads the parameters of a call, starting with argument number first; there may be none. */
Parameters *
read_parameters(FunctionCallInfo fcinfo, int first, uint64 seed)
{
	Parameters *parameters = palloc0(sizeof(Parameters));
	bool	   *are_null = NULL;

	parameters->state = seed;
	if (PG_NARGS() <= first)
		return parameters;
	parameters->count = extract_variadic_args(fcinfo, first, true, &parameters->values, &parameters->types,
											  &are_null);
	if (parameters->count < 0)	/* VARIADIC NULL */
		parameters->count = 0;
	parameters->nulls = palloc0(parameters->count + 1);
	parameters->drawn = palloc0(sizeof(Drawn) * (parameters->count + 1));
	for (int i = 0; i < parameters->count; i++)
	{
		Oid			type = parameters->types[i];

		parameters->types[i] = seen_type(type);
		parameters->nulls[i] = are_null[i] ? 'n' : ' ';
		if (parameters->types[i] != type && !are_null[i])
			parameters->drawn[i] = range_of(parameters->values[i], type, i + 1);
	}
	return parameters;
}
