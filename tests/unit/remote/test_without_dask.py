"""Workers of Dask: without its package, and without its scheduler."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pgdyno.model.errors import RemoteHostError, UsageError
from pgdyno.model.fleets.fleet_order import TrialOrder
from pgdyno.remote.dask_workers import dask_workers


def test_without_distributed_the_way_to_get_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError) as caught, dask_workers("tcp://127.0.0.1:8786"):
        pytest.fail("there are no workers")
    assert caught.value.message == (
        "workers on other machines take the package distributed, which is not installed"
    )
    assert caught.value.hint == "pip install 'pgdyno[fleet]', here and on the machines"


@pytest.fixture
def _gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a client whose scheduler is gone."""
    gone = SimpleNamespace(status="connecting", close=lambda **_: None)
    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(Client=lambda *_, **__: gone))


@pytest.mark.usefixtures("_gone")
def test_who_only_looks_does_not_wait_for_a_scheduler() -> None:
    with pytest.raises(RemoteHostError) as caught, dask_workers("tcp://db1:8786") as workers:
        workers.beats()
    assert caught.value.message == "the Dask scheduler at tcp://db1:8786 does not answer"
    assert caught.value.hint == "see whether it runs; if not, start it and its workers again"


@pytest.mark.usefixtures("_gone")
def test_a_trial_that_cannot_be_asked_for_is_given_back() -> None:
    with dask_workers("tcp://db1:8786") as workers:
        asked = workers.submit("db1", lambda _: b"", TrialOrder("f-db1-1", ("compare",), 60.0))
    assert asked.cancelled()
