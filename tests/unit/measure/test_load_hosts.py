"""The load hosts that go on after one was lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest
from tests.fix_progress import Remembered
from tests.unit.measure.arenas.test_on_load_hosts import ENTRANCE, HERE, OTHER, THERE

from pgdyno.base.errors import LoadHostLostError, RemoteHostError
from pgdyno.measure.arenas.on_load_hosts import OnLoadHosts, placed_on
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.measure.load_hosts import AfterLostHost
from pgdyno.model.cells.cell import CellHost, CellHosts, HostRole
from pgdyno.remote.cells.reach import ReachedLoadHost, sent_driver

CELL = CellHosts(CellHost("db1", HostRole.SERVER, "db1"), (THERE.host, OTHER.host))
LOST = LoadHostLostError("pgdyno-driver on client1 failed", host="client1")


def arena_on(*hosts: ReachedLoadHost) -> ScratchArena:
    nothing = cast("Any", None)
    loads = placed_on(HERE, hosts, ENTRANCE, [1] * len(hosts))
    return ScratchArena(
        nothing, nothing, {}, nothing, nothing, Path(), loads, nothing, nothing, entrance=ENTRANCE
    )


def after_loss(wait: Callable[..., ReachedLoadHost], *, allows_fewer: bool) -> AfterLostHost:
    return AfterLostHost(CELL, sent_driver(Path("pgdyno-driver")), 4, allows_fewer, Remembered(), wait)


def never(*_: object) -> NoReturn:
    raise RemoteHostError("client1: it does not answer (Connection timed out)")


def test_the_others_have_all_clients_if_that_is_allowed() -> None:
    found = after_loss(never, allows_fewer=True)(arena_on(THERE, OTHER), LOST)
    assert (found.hosts, found.how) == (("client2",), "the other hosts took over its clients")
    placement = found.arena.loads.placement
    assert isinstance(placement, OnLoadHosts)
    assert (placement.load_hosts, placement.threads) == ([OTHER], [2])  # it has two CPUs
    assert found.arena.loads.split.load_host_threads == (2,)


@pytest.mark.parametrize("allows_fewer", [False, True])
def test_the_last_host_is_waited_for(*, allows_fewer: bool) -> None:
    back = replace(THERE, boot_id="another")
    found = after_loss(lambda *_: back, allows_fewer=allows_fewer)(arena_on(THERE), LOST)
    assert (found.hosts, found.how) == (("client1",), "it was back after 0\N{NO-BREAK SPACE}s")
    assert cast("OnLoadHosts", found.arena.loads.placement).load_hosts == [back]


@pytest.mark.parametrize(
    ("hosts", "way"), [((THERE, OTHER), "with --allow-fewer the others continue at once; "), ((THERE,), "")]
)
def test_a_host_that_does_not_come_back_ends_the_experiment(
    hosts: tuple[ReachedLoadHost, ...], way: str
) -> None:
    with pytest.raises(LoadHostLostError) as caught:
        after_loss(never, allows_fewer=False)(arena_on(*hosts), LOST)
    assert caught.value.message == "load host client1 was lost and not back within 10\N{NO-BREAK SPACE}min"
    assert caught.value.detail == "client1: it does not answer (Connection timed out)"
    assert caught.value.hint == f"{way}before you resume, bring client1 back or remove it from hosts.toml"
