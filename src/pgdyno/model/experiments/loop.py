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

AGGREGATE = "aggregate"  # each execution is a sum over many rows


def load_name(issuer: str, *words: str) -> str:
    """Return the name of a load: its issuer, and words on its statement and tables."""
    return ", ".join((issuer, *words))


def issuer_and_words(load: str) -> tuple[str, str]:
    """Return the issuer of a load, and the words on its statement and tables; none: the usual ones."""
    issuer, _, words = load.partition(", ")
    return issuer, words
