"""Cells that are refused before any host is asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_progress import Remembered

from pgdyno.app.cells.reach import reach_load_host
from pgdyno.model.cells.cell import CellHost, CellHosts, HostRole
from pgdyno.model.errors import UsageError

SERVER = CellHost("db1", HostRole.SERVER, "db1")
LOAD = CellHost("client1", HostRole.LOAD, "client1")


def refused(*loads: CellHost, address: str | None = "198.51.100.7") -> UsageError:
    cell = CellHosts(replace(SERVER, address=address), loads)
    with pytest.raises(UsageError) as caught:
        reach_load_host(cell, Path("pgdyno-driver"), Remembered())
    return caught.value


def test_load_comes_from_one_host() -> None:
    error = refused(LOAD, replace(LOAD, name="client2"))
    assert error.message == "load comes from one host for now"
    assert error.detail == "the cell has 2 load hosts: client1, client2"
    assert error.hint == "keep one of them in the file, or name another file with --cell"


def test_a_server_on_another_machine_is_refused() -> None:
    error = refused(LOAD)
    assert error.message == "db1 (198.51.100.7) is not this machine"
    assert error.detail == "the controller has to run on the server's host for now"
    assert error.hint == "run this command on db1, or correct address in [hosts.db1]"


def test_the_servers_address_has_to_be_named() -> None:
    error = refused(LOAD, address=None)
    assert error.message == "hosts.toml does not say where the load host reaches db1"
    assert error.hint == "give [hosts.db1] this machine's address: address = …"


def test_an_address_that_no_other_host_reaches_is_refused() -> None:
    assert refused(LOAD, address="127.0.1.1").message == "no other host reaches db1 at 127.0.1.1"


def test_a_name_that_is_unknown_is_refused() -> None:
    assert refused(LOAD, address="no-such-name.invalid").message.startswith(
        "db1 (no-such-name.invalid) is no address that can be listened on: "
    )
