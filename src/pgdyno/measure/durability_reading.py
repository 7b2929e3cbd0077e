"""Read the durability of an arm's server, from a session like its load's and its postmaster."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psycopg

from pgdyno.host.files.tree import Tree
from pgdyno.host.processes.loaded_libraries import LoadedLibraries, inspect_libraries
from pgdyno.measure.arenas.arm import Arm
from pgdyno.model.variants.durability_reading import READ_BACK, SYNC_FUNCTIONS, DurabilityReading

_SETTINGS = """
    SELECT pg_catalog.lower(name), pg_catalog.current_setting(name)
      FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) OPERATOR(pg_catalog.=) ANY (%s)"""
_ELSEWHERE = LoadedLibraries(unknown=("the postmaster is not on this host",))


def read_durability(arm: Arm) -> DurabilityReading:
    """Return the durability of an arm's server as the server shows it.

    Raises: ServerCrashedError, with the server's log, if it has gone; ServerError if it does not answer.
    """
    try:
        with closing(arm.connect_like_its_load()) as connection:
            rows = connection.execute(_SETTINGS, (list(READ_BACK),)).fetchall()
    except psycopg.OperationalError as error:
        raise arm.lost(error) from error
    pid = arm.server.pid
    libraries = _ELSEWHERE if pid is None else inspect_libraries(Tree(Path("/")), pid, SYNC_FUNCTIONS)
    return DurabilityReading(
        arm.variant.name, dict(rows), libraries.loader, libraries.replaced, "; ".join(libraries.unknown)
    )
