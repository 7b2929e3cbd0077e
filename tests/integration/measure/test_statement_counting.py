"""Counting statements on a real server that goes away meanwhile."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.fix_servers import running_server

from pgdyno.base.errors import ServerCrashedError
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.attached_server import AttachedServer
from pgdyno.measure.statement_counting import StatementCounting
from pgdyno.model.variants.variant import Variant

pytestmark = pytest.mark.server


def test_a_server_that_ends_the_counting_session_has_crashed(pg18_bin: Path) -> None:
    with (
        running_server(pg18_bin, "shared_preload_libraries = 'pg_stat_statements'") as server,
        ExitStack() as stack,
    ):
        attached = AttachedServer(
            server.dsn, str(server.socket_directory), server.port, "postgres", server.pid
        )
        arm = Arm(Variant("default"), attached, "postgres")
        counting = StatementCounting.of(stack, arm, lambda _: "named")
        begun = counting.begin()
        server.execute("SELECT 1")
        counts = counting.end(begun)
        assert counts is not None
        assert counts["named"].calls >= 1
        server.execute(f"SELECT pg_terminate_backend({counting.session.info.backend_pid})")
        for count in (counting.begin, lambda: counting.end(begun), counting.read):
            with pytest.raises(ServerCrashedError) as caught:
                count()
            assert caught.value.message == "the server of default closed its connection"
