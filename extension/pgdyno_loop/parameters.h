/*
 * parameters.h: the parameters of each execution. For a range of integers, each execution draws a new value;
 * any other parameter is passed unchanged.
 */
#ifndef PGDYNO_LOOP_PARAMETERS_H
#define PGDYNO_LOOP_PARAMETERS_H

#include "fmgr.h"

typedef struct Drawn
{
	bool		is_drawn;
	bool		is_wide;		/* int8, else int4 */
	int64		lowest;
	uint64		count;			/* number of possible values; 0: all 64-bit integers */
} Drawn;

typedef struct Parameters
{
	int			count;
	Oid		   *types;			/* as seen by the query: int4 for an int4range */
	Datum	   *values;
	char	   *nulls;			/* as SPI takes them: 'n' or ' ' */
	Drawn	   *drawn;
	uint64		state;			/* of the random number generator */
} Parameters;

extern Parameters *read_parameters(FunctionCallInfo fcinfo, int first, uint64 seed);
extern void draw(Parameters *parameters);
extern int64 draw_one(uint64 *state, const Drawn *from);

#endif
