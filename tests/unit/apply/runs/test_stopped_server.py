"""A server that takes no connections is recognised by its address or its files, and by nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.unit.apply.data_directory import data_directory, give_to_owner
from tests.unit.apply.receipts import TARGET, receipt

from pgdyno.apply.ledger.log import Contents
from pgdyno.apply.runs.stopped_server import find_stopped
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.target import this_machine
from pgdyno.base.errors import ConnectionFailedError, DataDirectoryError, StillChangedError, UsageError
from pgdyno.model.plans.journal import Receipt
from pgdyno.postgres.inspection.inspection import inspect_server

DOWN = ConnectionFailedError("could not connect to the server", detail="Connection refused")
HERE, THERE = "host=/run port=5432", "host=/run port=5433"


def changed(path: Path, address: str = HERE, *, number: int = 1, is_machine_known: bool = True) -> Receipt:
    """A receipt for a server on this machine."""
    machine = this_machine() if is_machine_known else None
    target = replace(TARGET, data_directory=str(path), machine=machine, address=address)
    return replace(receipt(number=number), target=target)


def access(*addresses: str, data_directory: Path | None = None) -> ServerAccess:
    unused = cast("Any", None)
    return ServerAccess(
        unused,
        unused,
        inspect_server,
        data_directory=data_directory,
        addresses=addresses,
        revert_command="pgdyno revert --dsn x",
    )


def test_of_two_servers_in_the_journal_the_named_one_is_found(tmp_path: Path) -> None:
    one, other = data_directory(tmp_path / "one"), data_directory(tmp_path / "other")
    contents = Contents((changed(one), changed(other, THERE), changed(one, number=2)), ())
    found = find_stopped(access(HERE), contents, DOWN)
    assert found.files.path == one
    assert [receipt.id[-2:] for receipt in found.receipts] == ["02", "01"]
    assert find_stopped(access(THERE), contents, DOWN).files.path == other


def test_a_server_is_found_by_its_files_however_it_was_reached(tmp_path: Path) -> None:
    one, other = data_directory(tmp_path / "one"), data_directory(tmp_path / "other")
    contents = Contents((changed(one), changed(other, THERE)), ())
    found = find_stopped(access(data_directory=other), contents, DOWN)
    assert (found.target.address, found.files.path, len(found.receipts)) == (THERE, other, 1)


def test_a_named_directory_that_is_no_servers_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryError, match=f'data directory "{tmp_path}"'):
        find_stopped(access(data_directory=tmp_path), Contents((changed(tmp_path),), ()), DOWN)


def test_changes_of_another_server_are_not_touched_and_not_shown_as_its_own(tmp_path: Path) -> None:
    contents = Contents((changed(data_directory(tmp_path / "one")),), ())
    with pytest.raises(ConnectionFailedError) as caught:
        find_stopped(access(THERE), contents, DOWN)
    assert caught.value.message == DOWN.message
    assert caught.value.hint == (
        "the journal has changes of the server at host=/run port=5432: use exactly this address in --dsn, or "
        "name its files with --pgdata DIR if it is down"
    )


def test_without_any_changes_it_is_just_unreachable() -> None:
    with pytest.raises(ConnectionFailedError) as caught:
        find_stopped(access(HERE), Contents((), ()), DOWN)
    assert caught.value is DOWN


def test_what_could_be_one_of_several_servers_is_asked_for(tmp_path: Path) -> None:
    one, other = data_directory(tmp_path / "one"), data_directory(tmp_path / "other")
    contents = Contents((changed(one), changed(other, THERE)), ())
    with pytest.raises(UsageError) as caught:
        find_stopped(access(HERE, THERE), contents, DOWN)
    assert caught.value.detail == (f"{THERE}, data directory {other}; {HERE}, data directory {one}")
    assert caught.value.hint is not None
    assert "--pgdata DIR" in caught.value.hint


def test_a_primary_elsewhere_is_not_mistaken_for_its_standby_here(tmp_path: Path) -> None:
    """Identifier and path are the same; the role could not see the machine."""
    path = data_directory(tmp_path / "main")
    contents = Contents((changed(path, "host=db1 port=5432", is_machine_known=False),), ())
    with pytest.raises(StillChangedError) as caught:
        find_stopped(access("host=db1 port=5432"), contents, DOWN)
    assert caught.value.hint == (
        "pgdyno revert --dsn x, or pgdyno revert --pgdata DIR on the host with its files; by hand, in "
        f"{path}/postgresql.auto.conf: delete the line work_mem = '8MB'; then start the server"
    )


def test_a_server_that_runs_and_lets_nobody_in_is_mended_with_sql(tmp_path: Path) -> None:
    path = data_directory(tmp_path / "main")
    (path / "postmaster.pid").write_text("1\n")  # a process that is always there
    give_to_owner(path / "postmaster.pid")
    with pytest.raises(StillChangedError) as caught:
        find_stopped(access(HERE), Contents((changed(path),), ()), DOWN)
    assert caught.value.hint == (
        "pgdyno revert --dsn x; by hand: ALTER SYSTEM RESET work_mem; then SELECT pg_reload_conf(); "
        "or restart"
    )
