"""A session stays with the server that it began with, wherever its connection string leads later."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.unit.apply.receipts import TARGET

from pgdyno.apply.session.target import bound_to, is_on_this_machine, this_machine
from pgdyno.base.errors import ConnectionFailedError
from pgdyno.model.plans.journal import Target


@dataclass
class Leading:
    """A connection string that leads to some server, and the connection to it."""

    now: Target
    closed: list[Target] = field(default_factory=list)

    def __call__(self) -> Any:
        return self

    def close(self) -> None:
        self.closed.append(self.now)


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.apply.session.target.read_target", lambda connection: connection.now)


def reached(target: Target, leading: Leading, *, by_address: bool = True) -> Any:
    return bound_to(target, leading, by_address=by_address)()


def test_the_same_server_is_reached_again() -> None:
    leading = Leading(replace(TARGET, address="host=another port=5432"))
    assert reached(TARGET, leading) is leading
    assert leading.closed == []


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"identity": "1"}, "its system identifier is 1, not 7710499856251902124"),
        ({"machine": "another"}, "its machine is another, not 4c1bd8b7d08dc8b6"),
        ({"data_directory": "/data"}, "its data directory is /data, not /var/lib/postgresql/18/main"),
    ],
)
def test_another_server_is_left_alone(change: dict[str, str], detail: str) -> None:
    leading = Leading(replace(TARGET, **change))
    with pytest.raises(ConnectionFailedError) as caught:
        bound_to(TARGET, leading)()
    assert caught.value.message == "a different server answers at host=/run"
    assert caught.value.detail == detail
    assert caught.value.hint == "name one server, by its own address: --dsn 'host=… port=…'"
    assert leading.closed == [leading.now]


def test_where_the_role_cannot_tell_primary_and_standby_apart_the_address_has_to_be_the_same() -> None:
    hidden = replace(TARGET, machine=None, address="host=primary port=5432")
    standby = Leading(replace(hidden, address="host=standby port=5432"))
    with pytest.raises(ConnectionFailedError) as caught:
        bound_to(hidden, standby)()
    assert caught.value.detail == "its address is host=standby port=5432, not host=primary port=5432"
    assert reached(hidden, standby, by_address=False) is standby
    assert bound_to(hidden, Leading(hidden))()


def test_a_server_reached_over_a_socket_or_with_this_machines_id_is_here() -> None:
    assert is_on_this_machine(replace(TARGET, machine=None, address="host=/run port=5432"))
    assert is_on_this_machine(replace(TARGET, machine=this_machine(), address="host=db1 port=5432"))
    assert not is_on_this_machine(replace(TARGET, machine=None, address="host=db1 port=5432"))
    assert not is_on_this_machine(replace(TARGET, machine="another", address="host=db1 port=5432"))
