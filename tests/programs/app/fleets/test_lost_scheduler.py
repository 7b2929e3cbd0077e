"""A fleet's controller whose connection to Dask's scheduler is lost: killed schedulers, and a cut link."""

from __future__ import annotations

import gc
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cut_link import CutLink, link_to
from tests.dask_cluster import NO_DASK, dask_cluster, dask_scheduler, dask_worker
from tests.fix_servers import free_port, wait_until
from tests.onlookers import Onlooker
from tests.programs.app.fleets.made_trials import Made

from pgdyno.app.fleets.run_fleet import run_fleet
from pgdyno.app.fleets.trial_stores import fleet_path
from pgdyno.app.local_machine import open_store
from pgdyno.model.errors import RemoteHostError
from pgdyno.model.fleets.fleet_order import FleetOrder, OrderedMachine, TrialOrder
from pgdyno.model.fleets.fleet_trial import FleetTrial, FleetTrialState
from pgdyno.remote import dask_workers as workers_of_dask
from pgdyno.remote.dask_workers import Waiting, dask_workers
from pgdyno.store.fleets.fleet_trials import FleetStore

pytest.importorskip("distributed", reason=NO_DASK)
pytestmark = [
    pytest.mark.usefixtures("own_home"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Dask leaves a broken connection to Python
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ORDER = FleetOrder("f", ("compare", "a", "b"), (OrderedMachine("db1", 1), OrderedMachine("db2", 1)), 60.0)
AGAIN = "pgdyno fleet run f.toml"
DONE = FleetTrialState.DONE
MOST_LEASES = 5  # of a trial whose scheduler was lost once: Dask may notice that later than we do


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Close what Dask has left, so that it is no other test's."""
    yield
    gc.collect()


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Provide trials of which the first machine's is answered."""
    directory = tmp_path / "made"
    directory.mkdir()
    trials = Made(directory)
    trials.answer("db1-1", 0)
    return trials


def stored() -> list[FleetTrial]:
    with closing(FleetStore(fleet_path(ORDER))) as store:
        return store.trials()


def happened() -> dict[str, int]:
    with closing(FleetStore(fleet_path(ORDER))) as store:
        return store.events()


def experiments() -> list[str]:
    with closing(open_store()) as store:
        return sorted(store.ids())


def is_half_done(made: Made) -> bool:
    """Whether the first trial is done, and the second one is being made, for the first time."""
    return stored()[0].state is DONE and len(made.attempts("db2-1")) == 1


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def ended(processes: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    """End processes: workers at once, since trials that nobody answers take a minute."""
    try:
        yield
    finally:
        for one in processes:
            one.kill()
            one.wait()


def test_a_scheduler_that_is_started_again_gets_the_trials_that_were_not_done(made: Made) -> None:
    port = free_port()
    running = [dask_scheduler(port), *(dask_worker(port, name) for name in ("db1", "db2"))]

    def look() -> None:
        if len(running) == 3 and is_half_done(made):
            running[0].kill()
            running[0].wait()
            running.extend([dask_scheduler(port), dask_worker(port, "db2")])
        if len(made.attempts("db2-1")) == 2 and stored()[1].state is not DONE:
            made.answer("db2-1", 1)

    address, onlooker = f"tcp://127.0.0.1:{port}", Onlooker(look)
    with ended(running):
        wait_until(lambda: listens(port))
        with dask_workers(address, Waiting(onlooker.say, AGAIN)) as workers:
            run_fleet(ORDER, workers, onlooker, make=made, turn_s=0.05)
    first, second = stored()
    assert (first.lease, first.experiment, len(made.attempts("db1-1"))) == (1, "on-1", 1)
    assert (second.attempts, second.experiment) == (0, "on-2")
    assert 2 <= second.lease <= MOST_LEASES
    assert experiments() == ["on-1", "on-2"]
    assert happened() == {"leased": 1 + second.lease, "done": 2, "given back": second.lease - 1}
    assert onlooker.said == [
        f"the Dask scheduler at {address} does not answer: it is waited for, up to 10\N{NO-BREAK SPACE}min",
        f"the Dask scheduler at {address} answers again",
    ]


def test_a_link_that_is_cut_leaves_workers_alone_and_each_trial_counts_once(made: Made) -> None:
    """The worker ends its trial while nobody hears it; asked again, it has the same answer."""
    with ExitStack() as stack:
        cluster = stack.enter_context(dask_cluster(["db1", "db2"]))
        link = stack.enter_context(link_to(int(cluster.scheduler_address.rpartition(":")[2])))
        cuts: list[CutLink] = []

        def look() -> None:
            if not cuts and is_half_done(made):
                cuts.append(link)
                link.cut()
                made.answer("db2-1", 1)
                link.mend()

        onlooker = Onlooker(look)
        waiting = Waiting(onlooker.say, AGAIN)
        workers = stack.enter_context(dask_workers(f"tcp://127.0.0.1:{link.port}", waiting))
        run_fleet(ORDER, workers, onlooker, make=made, turn_s=0.05)
    assert [(one.attempts, one.experiment) for one in stored()] == [(0, "on-1"), (0, "on-2")]
    assert happened()["leased"] - 2 == happened()["given back"] >= 1
    assert len(set(made.attempts("db2-1"))) == 1
    assert experiments() == ["on-1", "on-2"]


def test_trials_of_a_scheduler_that_another_one_replaced_are_given_back(made: Made) -> None:
    """Dask has connected to the other one by itself, and shows that nowhere but in its id."""
    onlooker, order = Onlooker(), TrialOrder("f-db1-1", ORDER.command, 60.0)
    with dask_cluster(["db1"]) as cluster:
        address = cluster.scheduler_address
        with dask_workers(address, Waiting(onlooker.say, AGAIN)) as workers:
            wait_until(lambda: "db1" in workers.beats())
            before = workers.submit("db1", made, replace(order, key="f-db1-9"))  # has no answer
            workers._scheduler = "the one before"
            assert "db1" in workers.beats()
            assert before.cancelled()
            made.answer("db1-9", 1)  # the worker is at it still
            assert (
                workers.submit("db1", made, order).result(60.0) == (made.directory / "db1-1.zip").read_bytes()
            )
    assert [one.partition(address)[2].partition(":")[0] for one in onlooker.said] == [
        " does not answer", " answers again",
    ]  # fmt: skip


def test_a_scheduler_that_does_not_come_back_ends_the_run_with_all_that_is_done(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers_of_dask, "AWAITED_S", 1.0)
    with dask_cluster(["db1", "db2"]) as cluster:
        address = cluster.scheduler_address
        onlooker = Onlooker(lambda: cluster.close() if is_half_done(made) else None)
        with (
            pytest.raises(RemoteHostError) as caught,
            dask_workers(address, Waiting(onlooker.say, AGAIN)) as workers,
        ):
            run_fleet(ORDER, workers, onlooker, make=made, turn_s=0.05)
    assert str(caught.value).splitlines() == [
        f"the Dask scheduler at {address} did not come back within 1\N{NO-BREAK SPACE}s",
        "DETAIL:  all answers that came before are stored",
        f"HINT:  start it and its workers again, then: {AGAIN}",
    ]
    assert stored()[0].state is DONE
    assert experiments() == ["on-1"]
