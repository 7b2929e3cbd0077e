"""A fleet's trials in a real PostgreSQL: each lease and each result once, whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial

import pytest
from tests.fix_servers import RealServer, wait_until
from tests.golden.synthetic_fleet import on_machine

from pgdyno.experiments.fleets.found import found_in
from pgdyno.experiments.fleets.trial_leases import answered, given_back, leased
from pgdyno.model.errors import StorageError
from pgdyno.model.fleets.finding import FleetFinding
from pgdyno.model.fleets.fleet_order import FleetOrder, OrderedMachine
from pgdyno.model.fleets.fleet_trial import FleetTrial, FleetTrialState
from pgdyno.model.fleets.trial_store import FleetEvent
from pgdyno.server.connection.connection import connect_to_change
from pgdyno.store.fleets.shared_trials import SharedFleetStore
from pgdyno.store.fleets.store_session import StoreSession

pytestmark = pytest.mark.server

ORDER = FleetOrder("f", ("compare", "a", "b"), (OrderedMachine("db1", 2), OrderedMachine("Db2", 1)), 60.0)
AT = "2026-11-26T10:00:00.000+00:00"
LATER = "2026-11-26T10:00:30.000+00:00"
Open = Callable[[], SharedFleetStore]


def opened(server: RealServer, database: str, role: str = "fleet") -> SharedFleetStore:
    dsn = server.dsn_for(role, database)
    return SharedFleetStore(StoreSession(partial(connect_to_change, dsn), "the store", None), "f")


@pytest.fixture
def database(pg18: RealServer) -> Iterator[str]:
    """Provide a database of an ordinary role."""
    pg18.execute("CREATE ROLE fleet LOGIN")
    pg18.execute("CREATE DATABASE fleets OWNER fleet")
    yield "fleets"
    pg18.execute("DROP DATABASE fleets WITH (FORCE)")
    pg18.execute("DROP ROLE fleet")


@pytest.fixture
def open_store(pg18: RealServer, database: str) -> Iterator[Open]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(opened(pg18, database)))


@pytest.fixture(scope="module")
def finding() -> FleetFinding:
    return found_in(on_machine(1, 1.19, 1.0))


def leased_in(store: SharedFleetStore, trial: FleetTrial) -> FleetTrial | None:
    return leased(trial) if store.write(trial, leased(trial), FleetEvent(AT, "leased")) else None


def done_in(store: SharedFleetStore, mine: FleetTrial, finding: FleetFinding) -> bool:
    after = answered(mine, mine.lease, finding.experiment)
    assert after is not None
    return store.write(mine, after, FleetEvent(LATER, "done"), finding)


def test_a_fleet_is_begun_once_whoever_begins_it(open_store: Open) -> None:
    first, second = open_store(), open_store()
    assert not second.is_begun()
    assert first.begin(ORDER, "f-1") == "f-1"
    more = replace(ORDER, machines=(OrderedMachine("db1", 3),))
    assert second.begin(more, "f-2") == "f-1"
    assert second.is_begun()
    places = [("Db2", 1), ("db1", 1), ("db1", 2), ("db1", 3)]
    assert [one.place for one in first.trials()] == places
    with pytest.raises(StorageError, match='the fleet "f" was begun with another command'):
        second.begin(replace(ORDER, command=("compare", "a", "c")), "f-3")


def test_of_two_controllers_one_has_the_lease_and_a_machine_one_trial(open_store: Open) -> None:
    first, second = open_store(), open_store()
    first.begin(ORDER, "f-1")
    second.begin(ORDER, "f-1")
    _, one, two = second.trials()
    mine = leased_in(first, one)
    assert mine is not None
    assert leased_in(second, one) is None
    assert leased_in(second, two) is None  # of the same machine
    assert leased_in(first, one) == mine  # again, as after an answer that was lost
    assert first.events() == {"leased": 1}
    assert second.abandoned() == []
    first.close()
    wait_until(lambda: second.abandoned() == [mine])  # the server ends a session in its own time
    assert second.write(mine, replace(mine, state=FleetTrialState.WAITING), FleetEvent(AT, "given back"))
    assert leased_in(second, second.trials()[1]) == replace(mine, lease=2)


def test_a_result_is_stored_once_and_read_back_whole(open_store: Open, finding: FleetFinding) -> None:
    first, second = open_store(), open_store()
    first.begin(ORDER, "f-1")
    second.begin(ORDER, "f-1")
    other, one, _ = first.trials()
    mine, theirs = leased_in(first, one), leased_in(second, other)
    assert mine is not None
    assert theirs is not None
    assert done_in(first, mine, finding)
    assert done_in(first, mine, finding)  # the worker, or we, do it twice
    copy = replace(finding, experiment="copy")  # the same figures under another name
    assert not done_in(second, theirs, copy)
    assert second.answered_with(copy) == answered(mine, 1, finding.experiment)
    back = given_back(theirs, theirs.lease)
    assert back is not None
    assert second.write(theirs, back, FleetEvent(LATER, "given back"))
    assert not done_in(second, theirs, replace(copy, blocks_sha256="other"))  # its lease has ended
    assert [*second.findings()] == [("db1", finding)]
    assert [*second.seconds()] == [("db1", 30.0)]
    assert second.events() == {"leased": 2, "done": 1, "given back": 1}


def test_a_role_that_may_not_make_the_tables_learns_who_may(pg18: RealServer, database: str) -> None:
    pg18.execute("CREATE ROLE other LOGIN")
    try:
        with closing(opened(pg18, database, "other")) as store, pytest.raises(StorageError) as caught:
            store.begin(ORDER, "f-1")
        assert caught.value.message == "the store has no tables of pgdyno, and the role may not make them"
        assert caught.value.detail == "permission denied for database fleets"
        assert caught.value.hint == 'as the owner of the database: CREATE SCHEMA pgdyno AUTHORIZATION "other"'
        pg18.execute('CREATE SCHEMA pgdyno AUTHORIZATION "other"', database)
        with closing(opened(pg18, database, "other")) as store:
            assert store.begin(ORDER, "f-1") == "f-1"
    finally:
        pg18.execute("DROP SCHEMA pgdyno CASCADE", database)
        pg18.execute("DROP ROLE other")


def test_a_newer_store_is_not_guessed_at(open_store: Open, pg18: RealServer, database: str) -> None:
    open_store().begin(ORDER, "f-1")
    pg18.execute("UPDATE pgdyno.store_version SET version = 2", database)
    for ask in (lambda: open_store().is_begun(), lambda: open_store().begin(ORDER, "f-1")):
        with pytest.raises(StorageError) as caught:
            ask()
        assert caught.value.message == "the store was written by a newer pgdyno"
        assert caught.value.detail == "its version is 2, this pgdyno reads up to 1"


def test_a_database_that_has_not_all_characters_is_refused(pg18: RealServer) -> None:
    pg18.execute("CREATE DATABASE old ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    try:
        with closing(opened(pg18, "old", "postgres")) as store, pytest.raises(StorageError) as caught:
            store.begin(ORDER, "f-1")
        assert caught.value.message == "the store is encoded as LATIN1"
    finally:
        pg18.execute("DROP DATABASE old")


def test_the_oldest_server_tried_here_holds_a_store(pg15: RealServer, finding: FleetFinding) -> None:
    pg15.execute("CREATE DATABASE fleets ENCODING 'UTF8' TEMPLATE template0")
    try:
        with closing(opened(pg15, "fleets", "postgres")) as store:
            store.begin(ORDER, "f-1")
            mine = leased_in(store, store.trials()[1])
            assert mine is not None
            assert done_in(store, mine, finding)
            assert (store.abandoned(), [*store.findings()]) == ([], [("db1", finding)])
    finally:
        pg15.execute("DROP DATABASE fleets")
