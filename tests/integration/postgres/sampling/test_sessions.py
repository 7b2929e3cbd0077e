"""Which sessions of a real server count as the application's."""

from __future__ import annotations

from contextlib import ExitStack, closing

import psycopg
import pytest
from tests.fix_servers import RealServer

from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.sampling.sessions import watch_sessions

pytestmark = pytest.mark.server


def test_pgdynos_own_sessions_are_not_the_applications(pg18: RealServer) -> None:
    names = ("shop", "pgdyno", "pgdyno, process 1 on db1", "")
    with ExitStack() as stack:
        for name in names:
            dsn = psycopg.conninfo.make_conninfo(pg18.dsn, application_name=name)
            session = stack.enter_context(psycopg.connect(dsn))
            session.execute("SELECT 1")  # and stays in its transaction
        reading = stack.enter_context(closing(connect(pg18.dsn)))
        seen = watch_sessions(reading, 0.01, lambda _passed_s: None)
    assert seen.looks >= 1
    assert seen.mean_in_transactions == 2
    assert seen.connected.mean(seen.looks) == 2
