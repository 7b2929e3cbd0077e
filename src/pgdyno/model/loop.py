"""pgdyno_loop: the loads of its study, and where its functions are."""

from __future__ import annotations

SCHEMA = "pgdyno_loop"  # of the functions, in databases that have them

CLIENT = "client"
C_LOOP = "C loop"
PLPGSQL_LOOP = "PL/pgSQL loop"
EMPTY_LOOP = "empty loop"
