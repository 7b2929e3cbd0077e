/*
 * parameters.h: what each execution is given. A parameter that is a range of integers is drawn from it anew for each
 * execution; any other is passed as it is.
 */
#ifndef PGDYNO_LOOP_PARAMETERS_H
#define PGDYNO_LOOP_PARAMETERS_H

#include "fmgr.h"

typedef struct Drawn
{
	bool		is_drawn;
	bool		is_wide;		/* int8, else int4 */
	int64		lowest;
	uint64		count;			/* of the values that may be drawn; 0: all of them */
} Drawn;

typedef struct Parameters
{
	int			count;
	Oid		   *types;			/* of what the query sees: int4 for an int4range */
	Datum	   *values;
	char	   *nulls;			/* as SPI takes them: 'n' or ' ' */
	Drawn	   *drawn;
	uint64		state;			/* of the random numbers */
} Parameters;

extern Parameters *read_parameters(FunctionCallInfo fcinfo, int first, uint64 seed);
extern void draw(Parameters *parameters);
extern int64 draw_one(uint64 *state, const Drawn *from);

#endif
