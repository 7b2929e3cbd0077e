"""A fleet on Dask workers in processes of their own, which are killed, as their controller is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.dask_cluster import NO_DASK, dask_cluster
from tests.onlookers import Onlooker
from tests.programs.app.fleets.made_trials import Made

from pgdyno.app.fleets.run_fleet import run_fleet
from pgdyno.app.fleets.trial_stores import fleet_path
from pgdyno.app.local_machine import open_store
from pgdyno.model.errors import RemoteHostError
from pgdyno.model.fleets.fleet_order import FleetOrder, OrderedMachine
from pgdyno.model.fleets.fleet_trial import FleetTrial, FleetTrialState
from pgdyno.remote.dask_workers import dask_workers
from pgdyno.store.fleets.fleet_trials import FleetStore

pytest.importorskip("distributed", reason=NO_DASK)
pytestmark = pytest.mark.usefixtures("own_home")

ORDER = FleetOrder("f", ("compare", "a", "b"), (OrderedMachine("db1", 1), OrderedMachine("db2", 1)), 60.0)
CONTROLLER = """
import sys
from pathlib import Path
from tests.programs.app.fleets.made_trials import Made
from tests.programs.app.fleets.test_fleet_on_dask import ORDER
from pgdyno.app.fleets.run_fleet import run_fleet
from tests.onlookers import Onlooker
from pgdyno.remote.dask_workers import dask_workers
with dask_workers(sys.argv[1]) as workers:
    run_fleet(ORDER, workers, Onlooker(), make=Made(Path(sys.argv[2])), turn_s=0.05)
"""


@pytest.fixture
def made(tmp_path: Path) -> Made:
    directory = tmp_path / "made"
    directory.mkdir()
    return Made(directory)


def wait_for(condition: Callable[[], object]) -> None:
    ends_s = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < ends_s, "waited in vain"
        time.sleep(0.05)


def stored() -> list[FleetTrial]:
    with closing(FleetStore(fleet_path(ORDER))) as store:
        return store.trials()


def experiments() -> list[str]:
    with closing(open_store()) as store:
        return sorted(store.ids())


def test_trials_go_to_the_worker_of_their_machine_alone(made: Made) -> None:
    made.answer("db1-1", 0)
    made.answer("db2-1", 1)
    with dask_cluster(["db1", "db2"]) as cluster, dask_workers(cluster.scheduler_address) as workers:
        run_fleet(ORDER, workers, Onlooker(), make=made, turn_s=0.05)
        assert sorted(workers.beats()) == ["db1", "db2"]
    assert [(one.machine, one.state, one.experiment) for one in stored()] == [
        ("db1", FleetTrialState.DONE, "on-1"),
        ("db2", FleetTrialState.DONE, "on-2"),
    ]
    assert len({*made.attempts("db1-1"), *made.attempts("db2-1")}) == 2
    assert os.getpid() not in made.attempts("db1-1")


def test_a_trial_whose_worker_is_killed_is_made_again_and_stored_once(made: Made) -> None:
    made.answer("db1-1", 0)

    def look() -> None:
        if len(made.attempts("db2-1")) == 1 and not (made.directory / "killed").exists():
            (made.directory / "killed").touch()
            os.kill(made.attempts("db2-1")[0], signal.SIGKILL)
        if len(made.attempts("db2-1")) == 2 and not (made.directory / "db2-1.zip").exists():
            made.answer("db2-1", 1)

    with dask_cluster(["db1", "db2"]) as cluster, dask_workers(cluster.scheduler_address) as workers:
        run_fleet(ORDER, workers, Onlooker(look), make=made, turn_s=0.05)
    assert [one.experiment for one in stored()] == ["on-1", "on-2"]
    first, second = made.attempts("db2-1")
    assert first != second
    assert (stored()[1].lease, stored()[1].attempts) == (2, 1)
    assert experiments() == ["on-1", "on-2"]


def test_a_controller_that_was_killed_goes_on_where_it_was(made: Made) -> None:
    made.answer("db1-1", 0)
    with dask_cluster(["db1", "db2"]) as cluster:
        argv = [sys.executable, "-c", CONTROLLER, cluster.scheduler_address, str(made.directory)]
        first = subprocess.Popen(argv)
        try:
            wait_for(lambda: fleet_path(ORDER).exists() and made.attempts("db2-1"))
            wait_for(lambda: stored()[0].state is FleetTrialState.DONE)
        finally:
            first.kill()
            first.wait()
        assert stored()[1].state is FleetTrialState.LEASED
        made.answer("db2-1", 1)
        with dask_workers(cluster.scheduler_address) as workers:
            run_fleet(ORDER, workers, Onlooker(), make=made, turn_s=0.05)
    done, again = stored()
    assert (done.lease, done.experiment) == (1, "on-1")
    assert (again.lease, again.attempts, again.experiment) == (2, 0, "on-2")
    assert len(made.attempts("db1-1")) == 1
    assert experiments() == ["on-1", "on-2"]


def test_an_address_at_which_no_scheduler_answers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.remote.dask_workers._CONNECT_S", 0.5)
    with pytest.raises(RemoteHostError) as caught, dask_workers("tcp://127.0.0.1:1"):
        pytest.fail("there is no scheduler")
    assert caught.value.message == "no Dask scheduler answers at tcp://127.0.0.1:1"
    assert caught.value.hint == ("start one: dask scheduler; it prints its address, like tcp://10.0.0.1:8786")
