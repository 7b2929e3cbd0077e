"""Five settings: standbys first when raised, the primary first when lowered (manual, "Hot Standby")."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise
from typing import Any, cast

import pytest

from pgdyno.apply.configuration.standby_order import check_standby_order
from pgdyno.base.errors import RefusedError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import STANDBY_FIRST_SETTINGS, Server, Standby

ONE: Fact[tuple[Standby, ...]] = Fact((Standby("replica1", "streaming", "async"),), "pg_stat_replication")
NONE: Fact[tuple[Standby, ...]] = Fact((), "pg_stat_replication")
HIDDEN: Fact[tuple[Standby, ...]] = Fact(Unknown("the role may not see them"), "pg_stat_replication")


def server(standbys: Fact[tuple[Standby, ...]], *, is_in_recovery: bool = False) -> Server:
    """A server that has 100 of everything."""
    gucs = {
        name: Guc(name, "100", None, "integer", "postmaster", "default", "100", "100", "0", "1000")
        for name in STANDBY_FIRST_SETTINGS
    }
    unused = cast("Any", None)
    return Server(
        version_num=180000, version="18.0", settings=gucs, capabilities=unused, overrides=unused,
        databases_bytes=unused, standbys=standbys, is_in_recovery=is_in_recovery, data_directory=unused,
        is_superuser=True, hidden=(), is_colocated=unused,
    )  # fmt: skip


@pytest.mark.parametrize("name", STANDBY_FIRST_SETTINGS)
def test_a_primary_with_standbys_is_not_raised_first(name: str) -> None:
    with pytest.raises(RefusedError) as caught:
        check_standby_order(server(ONE), {name: "101"})
    assert caught.value.message == f"{name} must be raised on the standbys first"
    assert caught.value.detail is not None
    assert caught.value.detail.startswith("standbys: replica1; ")
    assert caught.value.hint == (
        "raise them on every standby and restart it, then repeat this command with --standbys-done"
    )
    check_standby_order(server(ONE), {name: "101"}, is_order_kept=True)


@pytest.mark.parametrize("name", STANDBY_FIRST_SETTINGS)
def test_a_standby_is_not_lowered_first(name: str) -> None:
    with pytest.raises(RefusedError) as caught:
        check_standby_order(server(NONE, is_in_recovery=True), {name: "99"})
    assert caught.value.message == f"{name} must be lowered on the primary first"
    assert caught.value.hint == (
        "lower them on the primary and restart it, then repeat this command with --standbys-done"
    )
    check_standby_order(server(NONE, is_in_recovery=True), {name: "99"}, is_order_kept=True)


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (server(NONE), "101"),  # nobody follows
        (server(ONE), "99"),  # a primary goes down first
        (server(ONE), "100"),  # no change
        (server(NONE, is_in_recovery=True), "101"),  # a standby goes up first
    ],
)
def test_the_right_order_is_let_through(found: Server, value: str) -> None:
    with does_not_raise():
        check_standby_order(found, {"max_connections": value})


def test_a_standby_with_standbys_of_its_own_is_raised_after_them() -> None:
    with pytest.raises(RefusedError, match="must be raised on the standbys first"):
        check_standby_order(server(ONE, is_in_recovery=True), {"max_connections": "101"})


def test_whoever_may_not_see_standbys_has_to_say_that_there_are_none() -> None:
    with pytest.raises(RefusedError) as caught:
        check_standby_order(server(HIDDEN), {"max_connections": "101"})
    assert caught.value.detail is not None
    assert caught.value.detail.startswith("it is unknown whether this server has standbys: the role may not")


def test_other_settings_have_no_order() -> None:
    with does_not_raise():
        check_standby_order(server(ONE), {"work_mem": "8MB"})
