"""A fleet's trials on disk: each result once, and clear words when the file is not what it was."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.golden.synthetic_fleet import on_machine

from pgdyno.experiments.fleets.found import found_in
from pgdyno.experiments.fleets.trial_leases import answered, leased
from pgdyno.model.errors import StorageError
from pgdyno.model.fleets.finding import FleetFinding
from pgdyno.model.fleets.fleet_order import FleetOrder, OrderedMachine
from pgdyno.model.fleets.fleet_trial import FleetTrial, FleetTrialState
from pgdyno.model.fleets.trial_store import FleetEvent
from pgdyno.store.fleets.fleet_trials import FleetStore
from pgdyno.store.fleets.stored_finding import finding_text

ORDER = FleetOrder("f", ("compare", "a", "b"), (OrderedMachine("db1", 2), OrderedMachine("db2", 1)), 60.0)
AT = "2026-11-26T10:00:00.000+00:00"
LATER = "2026-11-26T10:00:30.000+00:00"


@pytest.fixture(scope="module")
def finding() -> FleetFinding:
    return found_in(on_machine(1, 1.19, 1.0))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FleetStore]:
    with closing(FleetStore(tmp_path / "f.sqlite")) as opened:
        opened.begin(ORDER, "f-1")
        yield opened


def done(store: FleetStore, trial: FleetTrial, finding: FleetFinding) -> bool:
    mine = leased(trial)
    assert store.write(trial, mine, FleetEvent(AT, "leased"))
    after = answered(mine, mine.lease, finding.experiment)
    assert after is not None
    return store.write(mine, after, FleetEvent(LATER, "done"), finding)


def test_trials_are_there_once_and_the_fleet_keeps_its_id(store: FleetStore) -> None:
    more = replace(ORDER, machines=(OrderedMachine("db1", 3), OrderedMachine("db3", 1)))
    assert store.begin(more, "f-2") == "f-1"
    assert [one.place for one in store.trials()] == [
        ("db1", 1), ("db1", 2), ("db1", 3), ("db2", 1), ("db3", 1),
    ]  # fmt: skip


def test_another_command_is_another_fleet(store: FleetStore) -> None:
    with pytest.raises(StorageError) as caught:
        store.begin(replace(ORDER, command=("compare", "a", "c")), "f-2")
    assert caught.value.message == 'the fleet "f" was begun with another command'
    assert caught.value.detail == "pgdyno compare a b"
    assert caught.value.hint == "give the file another name: that makes another fleet"


def test_a_result_is_read_back_whole_with_its_machine_and_time(
    store: FleetStore, finding: FleetFinding
) -> None:
    done(store, store.trials()[0], finding)
    assert [*store.findings()] == [("db1", finding)]
    ((machine, seconds),) = store.seconds()
    assert machine == "db1"
    assert seconds == pytest.approx(30.0, abs=0.01)
    assert store.events() == {"leased": 1, "done": 1}


def test_no_two_trials_have_one_result_and_nothing_is_written_then(
    store: FleetStore, finding: FleetFinding
) -> None:
    first, second, _ = store.trials()
    done(store, first, finding)
    copy = replace(finding, experiment="copy")  # the same figures under another name
    assert store.answered_with(copy) == answered(leased(first), 1, finding.experiment)
    assert not done(store, second, copy)
    assert store.trials()[1] == FleetTrial("db1", 2, FleetTrialState.LEASED, lease=1)
    assert store.events() == {"leased": 2, "done": 1}


def test_a_figure_that_is_no_number_is_not_stored(finding: FleetFinding) -> None:
    with pytest.raises(StorageError) as caught:
        finding_text(replace(finding, level=math.nan))
    assert (caught.value.message, caught.value.detail) == (
        "the finding cannot be stored",
        "level: input should be a valid number",
    )


def test_a_store_that_is_taken_away_or_replaced_is_told(store: FleetStore, tmp_path: Path) -> None:
    path = tmp_path / "f.sqlite"
    moved = path.rename(tmp_path / "g.sqlite")
    with pytest.raises(StorageError) as caught:
        store.write(store.trials()[0], leased(store.trials()[0]), FleetEvent(AT, "leased"))
    assert caught.value.message == f'could not write to the fleet\'s store "{path}"'
    assert "No such file or directory" in (caught.value.detail or "")
    assert caught.value.hint == ("mend it, and start pgdyno fleet run again: it goes on from what is stored")
    path.write_bytes(moved.read_bytes())
    with pytest.raises(StorageError) as caught:
        store.write(store.trials()[0], leased(store.trials()[0]), FleetEvent(AT, "leased"))
    assert caught.value.detail == "another file is in its place"


def test_a_file_that_is_none_of_ours_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(b"SQLite format 4" * 100)
    with pytest.raises(StorageError) as caught:
        FleetStore(path)
    assert caught.value.detail == "file is not a database"


def test_a_newer_store_and_a_result_of_it_are_not_guessed_at(tmp_path: Path, finding: FleetFinding) -> None:
    path = tmp_path / "f.sqlite"
    with closing(FleetStore(path)) as store:
        store.begin(ORDER, "f-1")
        done(store, store.trials()[0], finding)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE result SET finding = '{}'")
    with closing(FleetStore(path)) as store, pytest.raises(StorageError) as caught:
        [*store.findings()]
    assert caught.value.message == f'a result in the fleet\'s store "{path}" cannot be read'
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA user_version = 2")
    with pytest.raises(StorageError) as caught:
        FleetStore(path)
    assert caught.value.detail == "its version is 2, this pgdyno reads up to 1"
