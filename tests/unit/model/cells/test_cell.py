"""A cell's hosts, and what a forwarded command knows of the place where it was typed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pgdyno.model.cells.cell import (
    MOST_CHATTER,
    CellHost,
    CellHosts,
    HostRole,
    TypedAt,
    await_greeting,
    typed_at,
)


def test_the_servers_host_comes_before_those_that_load_it() -> None:
    server = CellHost("db", HostRole.SERVER, "db.example")
    loads = tuple(CellHost(name, HostRole.LOAD, name) for name in ("a", "b"))
    assert CellHosts(server, loads).all == (server, *loads)


def test_where_a_command_was_typed_goes_through_its_environment() -> None:
    typed = TypedAt("hosts.toml", "ssh db pgdyno")
    assert typed_at({"PATH": "/bin", **typed.variables()}) == typed
    assert typed_at({"PATH": "/bin"}) is None
    assert typed_at({"PGDYNO_CARRIED": "1", "PGDYNO_TYPED_CELL": "hosts.toml"}) is None


@pytest.mark.parametrize(("chatter", "found"), [(0, True), (MOST_CHATTER - 1, True), (MOST_CHATTER, False)])
def test_the_greeting_is_awaited_through_what_a_login_prints(chatter: int, *, found: bool) -> None:
    lines: Iterator[bytes] = iter([*[b"motd\n"] * chatter, b" ready\r\n", b"first\n"])
    assert await_greeting(lambda: next(lines), "ready") is found
    assert next(lines) == (b"first\n" if found else b" ready\r\n")
