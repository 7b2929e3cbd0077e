"""Makes and drops workload databases, and kills itself at one of its statements.

Arguments: the server's DSN, a directory for records, the number of the statement, "before" or "after".
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg.sql import Composed

from pgdyno.apply.session.session import LOADING, take
from pgdyno.postgres.process.workload_databases import WorkloadDatabases


class Killer:
    """Counts statements about databases; at one of them the process dies as by the OOM killer."""

    def __init__(self, at: int, when: str) -> None:
        """Kill at a statement, counted from 1."""
        self.left, self.when = at, when
        self.execute = psycopg.Connection.execute

    def __call__(self, connection: Any, statement: Any, *arguments: Any, **options: Any) -> Any:
        """Run a statement."""
        self.left -= isinstance(statement, Composed)
        is_it = isinstance(statement, Composed) and self.left == 0
        if is_it:
            sys.stdout.write(statement.as_string(None))
            sys.stdout.flush()
        if is_it and self.when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = self.execute(connection, statement, *arguments, **options)
        if is_it:
            os.kill(os.getpid(), signal.SIGKILL)
        return result


def main(dsn: str, records: str, at: str, when: str) -> None:
    """Make three databases one after the other, and drop them."""
    killer = Killer(int(at), when)
    databases = WorkloadDatabases(dsn, Path(records), partial(take, lock=LOADING))

    def execute(connection: Any, *given: Any, **options: Any) -> Any:
        return killer(connection, *given, **options)

    psycopg.Connection.execute = execute  # type: ignore[assignment, method-assign]
    with databases.held():
        template = databases.create("template_0")
        databases.copy(template, "seat_0_0")
        databases.copy(template, "seat_0_0")
        databases.drop_all()
    sys.stdout.write("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
