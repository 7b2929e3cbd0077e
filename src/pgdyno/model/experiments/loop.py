"""pgdyno_loop: the loads of its study, and where its functions are."""

from __future__ import annotations

SCHEMA = "pgdyno_loop"  # of the functions, in databases that have them

CLIENT = "client"
C_LOOP = "C loop"
PLPGSQL_LOOP = "PL/pgSQL loop"
CURVES = (CLIENT, C_LOOP, PLPGSQL_LOOP)  # by numbers of clients

EMPTY_LOOP = "empty loop"  # of the loop in C
ONE_QUERY = "one query"  # that has all the rows, so that the executor starts once
BESIDE = (EMPTY_LOOP, ONE_QUERY)  # at one client, for comparison
