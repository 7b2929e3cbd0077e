"""The address of a cell's server: its own, and one that other hosts reach."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.model.cells.cell import CellHost, HostRole
from pgdyno.remote.cells.own_address import is_this_machine, own_address, require_address


def server(address: str | None) -> CellHost:
    return CellHost("db", HostRole.SERVER, "db", address=address)


def test_an_address_that_is_missing_is_asked_for_in_its_table() -> None:
    assert not is_this_machine(server(None))
    with pytest.raises(UsageError) as caught:
        require_address(server(None))
    assert str(caught.value) == (
        "hosts.toml has no address of db for load hosts\n"
        "DETAIL:  servers under test listen on it for load hosts\n"
        "HINT:  add it to [hosts.db]: address = …"
    )


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_loopback_address_is_this_machine_and_out_of_reach_for_others(address: str) -> None:
    with pytest.raises(UsageError) as caught:
        own_address(server(address))
    assert caught.value.message == f"other hosts cannot reach db at {address}"
    assert caught.value.detail == "it is a loopback address"
    assert caught.value.hint == "set a routable address in [hosts.db]: address = …"
    assert is_this_machine(server("127.0.0.1"))


def test_the_address_of_another_machine_is_refused() -> None:
    another = "192.0.2.1"  # of RFC 5737: no machine has it
    assert not is_this_machine(server(another))
    with pytest.raises(UsageError) as caught:
        own_address(server(another))
    assert caught.value.message == "db (192.0.2.1) is not this machine"
    assert caught.value.hint == "correct address in [hosts.db]: it must belong to the server's host"
