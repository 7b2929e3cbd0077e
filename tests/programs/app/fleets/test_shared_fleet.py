"""Controllers with a store in a real PostgreSQL: several at once, one that is killed, a server that stops."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.fix_servers import RealServer, wait_until
from tests.golden.synthetic_fleet import fleet
from tests.onlookers import Onlooker
from tests.programs.app.fleets.made_trials import Made

from pgdyno.app.fleets.run_fleet import run_fleet
from pgdyno.app.fleets.trial_stores import begun_trials
from pgdyno.app.fleets.worker_here import WorkerHere
from pgdyno.app.results.bundle import export_bundle
from pgdyno.cli.main import main
from pgdyno.model.errors import StorageError
from pgdyno.model.fleets.fleet_order import FleetOrder, OrderedMachine, TrialOrder
from pgdyno.model.fleets.fleet_trial import FleetTrial, FleetTrialState
from pgdyno.store.fleets import store_session

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("own_home")]

TRIALS = 5
CONTROLLER = """
import sys
from pathlib import Path
from tests.onlookers import Onlooker
from tests.programs.app.fleets.made_trials import Made
from tests.programs.app.fleets.test_shared_fleet import order_in
from pgdyno.app.fleets.run_fleet import run_fleet
from pgdyno.app.fleets.worker_here import WorkerHere
run_fleet(order_in(sys.argv[1]), WorkerHere("db1"), Onlooker(), make=Made(Path(sys.argv[2])), turn_s=0.02)
"""


def order_in(dsn: str) -> FleetOrder:
    return FleetOrder("f", ("compare", "a", "b"), (OrderedMachine("db1", TRIALS),), 60.0, dsn)


@pytest.fixture
def order(pg18: RealServer) -> Iterator[FleetOrder]:
    """Provide an order whose store is a database of its own."""
    pg18.execute("CREATE DATABASE fleets")
    yield order_in(pg18.dsn_for("postgres", "fleets"))
    pg18.execute("DROP DATABASE fleets WITH (FORCE)")


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Provide trials that have all been answered but the last one."""
    directory = tmp_path / "made"
    directory.mkdir()
    for number, one in enumerate(fleet(TRIALS - 1), 1):
        export_bundle(one, directory / f"db1-{number}.zip")
    return Made(directory)


def answer_last(made: Made) -> None:
    hidden = made.directory / "last.zip"
    export_bundle(fleet(TRIALS)[-1], hidden)
    hidden.rename(made.directory / f"db1-{TRIALS}.zip")


def attempts(made: Made) -> list[int]:
    files = [made.directory / f"db1-{number}.attempts" for number in range(1, TRIALS + 1)]
    return [len(one.read_text().split()) if one.exists() else 0 for one in files]


def stored(order: FleetOrder) -> list[FleetTrial]:
    store = begun_trials(order)
    assert store is not None
    with ExitStack() as stack:
        stack.callback(store.close)
        assert len([*store.findings()]) == sum(one.experiment is not None for one in store.trials())
        return store.trials()


def all_done(trials: list[FleetTrial]) -> bool:
    return {one.state for one in trials} == {FleetTrialState.DONE} and len(
        {one.experiment for one in trials}
    ) == TRIALS


def started(order: FleetOrder, made: Made, home: Path) -> subprocess.Popen[bytes]:
    home.mkdir()
    assert order.store is not None
    argv = [sys.executable, "-c", CONTROLLER, order.store, str(made.directory)]
    return subprocess.Popen(argv, env={**os.environ, "PGDYNO_HOME": str(home)})


def test_two_controllers_make_each_trial_once_and_one_goes_on_for_a_killed_one(
    order: FleetOrder, made: Made, tmp_path: Path
) -> None:
    """The last trial is not answered before the controller that has it is killed."""
    controllers = [started(order, made, tmp_path / name) for name in ("first", "second")]
    try:
        wait_until(lambda: attempts(made) == [1] * TRIALS)
        notes = (made.directory / f"db1-{TRIALS}.attempts").read_text()
        (holder,) = [one for one in controllers if one.pid == int(notes)]
        holder.kill()
        holder.wait()
        wait_until(lambda: attempts(made)[-1] == 2)
        answer_last(made)
        (other,) = [one for one in controllers if one is not holder]
        assert other.wait(120) == 0
    finally:
        for one in controllers:
            one.kill()
            one.wait()
    assert all_done(stored(order))
    assert Counter(one.lease for one in stored(order)) == {1: TRIALS - 1, 2: 1}
    assert attempts(made) == [1] * (TRIALS - 1) + [2]


def stopping(server: RealServer, made: Made) -> Callable[[TrialOrder], bytes]:
    """Return trials that are made as usual, the third one while the server is stopped."""

    def make(order: TrialOrder) -> bytes:
        if order.key.endswith("-3") and server.process is not None and not attempts(made)[2]:
            server.stop()
        return made(order)

    return make


def test_a_store_that_goes_away_is_waited_for_and_no_trial_is_made_twice(
    scratch_pg18: RealServer, made: Made
) -> None:
    answer_last(made)
    order = order_in(scratch_pg18.dsn)

    class Starting(Onlooker):
        def say(self, what: str) -> None:
            super().say(what)
            if scratch_pg18.process is None:
                scratch_pg18.start()

    onlooker = Starting()
    run_fleet(order, WorkerHere("db1"), onlooker, make=stopping(scratch_pg18, made), turn_s=0.02)
    first, second = (re.sub('".*"', "…", said) for said in onlooker.said)
    assert first.startswith("the fleet's store … is waited for, up to 2\N{NO-BREAK SPACE}min: ")
    assert second == "the fleet's store … is there again"
    assert all_done(stored(order))
    assert {one.lease for one in stored(order)} == {1}
    assert attempts(made) == [1] * TRIALS


def test_a_store_that_stays_away_ends_the_run_and_the_next_one_goes_on(
    scratch_pg18: RealServer, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_last(made)
    order = order_in(scratch_pg18.dsn)
    monkeypatch.setattr(store_session, "PATIENCE_S", 1.5)
    with pytest.raises(StorageError) as caught:
        run_fleet(order, WorkerHere("db1"), Onlooker(), make=stopping(scratch_pg18, made), turn_s=0.02)
    assert re.sub('".*"', "…", caught.value.message) == (
        "the fleet's store … did not answer for 1.5\N{NO-BREAK SPACE}s"
    )
    assert caught.value.hint == (
        "when it is there again, start pgdyno fleet run again: it goes on from what is stored"
    )
    with pytest.raises(StorageError, match="could not open the fleet's store"):
        begun_trials(order)
    scratch_pg18.start()
    run_fleet(order, WorkerHere("db1"), Onlooker(), make=made, turn_s=0.02)
    assert all_done(stored(order))
    assert [one.lease for one in stored(order)] == [1, 1, 2, 1, 1]


def test_a_store_is_named_without_its_password(
    tmp_path: Path, pg18: RealServer, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.toml"
    said = {
        f"postgresql://postgres:se%20cret@127.0.0.1:{pg18.port}/postgres": "is named with a password",
        "host=db password='se cret": "is no connection string",
        f"postgresql://postgres@127.0.0.1:{pg18.port}/postgres": "could not open the fleet's store",
    }
    for store, words in said.items():
        file.write_text(f'store = "{store}"\ncommand = "compare a b --embedded"\n[machines.db1]\n')
        with pytest.raises(SystemExit):
            main(["fleet", "status", str(file)])
        error = capsys.readouterr().err
        assert words in error
        assert "cret" not in error
