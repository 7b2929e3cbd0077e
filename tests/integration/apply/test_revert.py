"""revert and status on a real server: order, drift, locks, a server that is down."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, running_server, wait_until
from tests.integration.journal_support import (
    access_to,
    auto_conf,
    pg_ctl_restart,
    plan_of,
    snapshot,
    under_pg_ctl,
)

from pgdyno.apply.apply_plan import ApplyRequest, apply_plan
from pgdyno.apply.journal_text import apply_text, revert_text, status_text
from pgdyno.apply.ledger.log import _line, read_journal
from pgdyno.apply.revert import RevertRequest, preview_revert, revert
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.server_files import ServerFiles
from pgdyno.apply.session.session import locked_session
from pgdyno.apply.status import journal_status, server_status
from pgdyno.base.errors import ConnectionFailedError, StillChangedError, UsageError
from pgdyno.builds.switching.server_access import server_access
from pgdyno.host.files.directory import Directory
from pgdyno.model.plans.journal import Drift, OnDrift, ReceiptState
from pgdyno.postgres.connection.connection import addresses, connect, connect_to_change
from pgdyno.postgres.inspection.inspection import inspect_server
from pgdyno.postgres.process.workspace import JOURNAL_FILE

pytestmark = pytest.mark.server

ALL = RevertRequest(is_all=True, allow_restart=True)


@pytest.fixture(autouse=True)
def _nothing_is_left(server: RealServer) -> Iterator[None]:
    before = snapshot(server)
    yield
    assert snapshot(server) - before == []


def apply(access: ServerAccess, **settings: str) -> None:
    apply_plan(access, ApplyRequest(plan_of(**settings), allow_restart=True))


def test_nothing_to_revert_is_no_error(access: ServerAccess) -> None:
    result = revert(access, ALL)
    assert (result.outcomes, result.is_complete) == ((), True)
    assert revert_text(result).startswith("Nothing to revert on host=")


def test_one_apply_is_reverted_by_its_name_under_a_later_one(
    server: RealServer, access: ServerAccess
) -> None:
    first = ApplyRequest(plan_of(work_mem="8MB"))
    apply_plan(access, first)
    apply(access, random_page_cost="2")
    result = revert(access, RevertRequest(apply_id=first.apply_id))
    assert [one.key for one in result.outcomes] == ["work_mem"]
    assert server.execute("SHOW work_mem") == [("4MB",)]
    assert server.execute("SHOW random_page_cost") == [("2",)]
    assert revert(access, RevertRequest(apply_id=first.apply_id)).outcomes == ()
    assert [one.key for one in revert(access, ALL).outcomes] == ["random_page_cost"]


def test_reverting_twice_is_reverting_once(server: RealServer, access: ServerAccess) -> None:
    apply(access, work_mem="8MB")
    assert len(revert(access, ALL).outcomes) == 1
    assert revert(access, ALL).outcomes == ()
    assert server.execute("SHOW work_mem") == [("4MB",)]


def test_revert_goes_back_one_apply_and_all_goes_back_to_the_beginning(
    server: RealServer, access: ServerAccess
) -> None:
    apply(access, work_mem="8MB")
    apply(access, work_mem="16MB", random_page_cost="1.1")
    assert [one.key for one in revert(access, RevertRequest()).outcomes] == ["random_page_cost", "work_mem"]
    assert server.execute("SHOW work_mem") == [("8MB",)]
    apply(access, work_mem="32MB")
    assert [one.wanted for one in revert(access, ALL).outcomes] == ["32MB", "8MB"]
    assert server.execute("SHOW work_mem") == [("4MB",)]


def test_revert_restores_a_value_set_by_alter_system(server: RealServer, access: ServerAccess) -> None:
    server.execute("ALTER SYSTEM SET work_mem = '6MB'")
    server.execute("SELECT pg_reload_conf()")
    before = auto_conf(server).read_bytes()
    apply(access, work_mem="8MB")
    assert revert(access, ALL).is_complete
    assert auto_conf(server).read_bytes() == before
    assert server.execute("SHOW work_mem") == [("6MB",)]
    server.execute("ALTER SYSTEM RESET work_mem")
    server.execute("SELECT pg_reload_conf()")


def test_a_password_of_somebody_elses_entry_is_not_logged_for_the_order(
    server: RealServer, tmp_path: Path
) -> None:
    """Over a connection alone, entries get their order back by being set again."""
    conninfo = "host=192.0.2.7 password=s3cret"  # RFC 5737: no address of anybody's
    entries = {"work_mem": "5MB", "primary_conninfo": conninfo, "log_statement": "ddl"}
    for name, value in entries.items():
        server.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    server.execute("SELECT pg_reload_conf()")
    log, access = server.directory / "pg_ctl.log", access_to(server, tmp_path / "journal", has_files=False)
    wait_until(lambda: server.execute("SHOW log_statement") == [("ddl",)])
    before = log.read_text().count("s3cret")
    apply(access, work_mem="8MB")
    assert revert(access, ALL).is_complete
    said = log.read_text()
    assert "SET work_mem = '5MB'" in said.replace('"', "")
    assert said.count("s3cret") == before
    assert server.execute("SHOW work_mem") == [("5MB",)]
    for name in entries:
        server.execute(f"ALTER SYSTEM RESET {name}")
    server.execute("SELECT pg_reload_conf()")


def test_a_preview_changes_nothing(server: RealServer, access: ServerAccess) -> None:
    apply(access, work_mem="8MB", shared_buffers="96MB")
    result = preview_revert(access, RevertRequest())
    assert result.statements == ("ALTER SYSTEM RESET shared_buffers;", "ALTER SYSTEM RESET work_mem;")
    assert (result.restarts, result.is_dry_run) == (1, True)
    assert server.execute("SHOW work_mem") == [("8MB",)]
    revert(access, ALL)


def test_without_permission_to_restart_the_former_value_waits_and_the_revert_is_incomplete(
    server: RealServer, access: ServerAccess
) -> None:
    apply(access, work_mem="8MB", shared_buffers="96MB")
    result = revert(access, RevertRequest())
    assert (result.pending_restart, result.is_complete) == (("shared_buffers",), False)
    assert server.execute("SHOW shared_buffers") == [("96MB",)]
    assert server.execute("SHOW work_mem") == [("4MB",)]
    assert "Waiting for a restart: shared_buffers" in revert_text(result)
    assert [receipt.key for receipt in read_journal(access.journal_directory).open] == ["shared_buffers"]
    assert revert(access, RevertRequest(allow_restart=True)).is_complete


def test_what_somebody_else_changed_since_is_left_alone(server: RealServer, access: ServerAccess) -> None:
    apply(access, work_mem="8MB", random_page_cost="1.1")
    server.execute("ALTER SYSTEM SET work_mem = '5MB'")
    result = revert(access, ALL)
    assert result.drifted == (Drift("work_mem", found=None, wanted="8MB", now="5MB"),)
    assert result.is_complete is False
    assert server.execute("SHOW random_page_cost") == [("4",)]
    assert server.execute("SHOW work_mem") == [("5MB",)]
    left_alone = "Left alone: work_mem: someone else set it to 5MB after pgdyno changed it to 8MB"
    assert left_alone in revert_text(result)
    revert(access, replace(ALL, on_drift=OnDrift.OVERWRITE))


def test_what_somebody_else_changed_is_overwritten_if_the_user_says_so(
    server: RealServer, access: ServerAccess
) -> None:
    apply(access, work_mem="8MB")
    server.execute("ALTER SYSTEM SET work_mem = '5MB'")
    assert revert(access, replace(ALL, on_drift=OnDrift.OVERWRITE)).is_complete
    assert server.execute("SHOW work_mem") == [("4MB",)]


def test_what_somebody_else_changed_is_theirs_if_the_user_says_so(
    server: RealServer, access: ServerAccess
) -> None:
    apply(access, work_mem="8MB")
    server.execute("ALTER SYSTEM SET work_mem = '5MB'")
    assert revert(access, replace(ALL, on_drift=OnDrift.KEEP)).is_complete
    assert read_journal(access.journal_directory).receipts[0].state is ReceiptState.RELEASED
    assert auto_conf(server).read_text().endswith("work_mem = '5MB'\n")
    server.execute("ALTER SYSTEM RESET work_mem")
    server.execute("SELECT pg_reload_conf()")


def test_the_same_value_in_other_words_is_no_drift(server: RealServer, access: ServerAccess) -> None:
    apply(access, work_mem="8MB")
    server.execute("ALTER SYSTEM SET work_mem = '8192kB'")
    assert revert(access, ALL).drifted == ()


def test_settings_that_others_added_meanwhile_stay(server: RealServer, access: ServerAccess) -> None:
    apply(access, work_mem="8MB")
    server.execute("ALTER SYSTEM SET temp_buffers = '9MB'")
    assert revert(access, ALL).is_complete
    assert auto_conf(server).read_text().endswith("temp_buffers = '9MB'\n")
    server.execute("ALTER SYSTEM RESET temp_buffers")
    server.execute("SELECT pg_reload_conf()")


def test_receipts_of_another_server_are_left_alone(
    server: RealServer, access: ServerAccess, pg18: RealServer
) -> None:
    apply(access, work_mem="8MB")
    other = ServerAccess(lambda: connect_to_change(pg18.dsn), access.journal_directory, inspect_server)
    result = revert(other, ALL)
    assert result.outcomes == ()
    assert result.notes == ("1 changes on other servers stay applied: pgdyno status",)
    assert server.execute("SHOW work_mem") == [("8MB",)]
    revert(access, ALL)


def test_a_server_that_is_down_is_restored_through_its_files(
    server: RealServer, access: ServerAccess
) -> None:
    before = auto_conf(server).read_bytes()
    apply(access, work_mem="8MB", shared_buffers="96MB")
    server.run("pg_ctl", "stop", "-D", str(server.data_directory), "-m", "fast")
    result = revert(access, RevertRequest())
    assert auto_conf(server).read_bytes() == before
    assert (result.is_complete, result.pending_restart) == (False, ("shared_buffers", "work_mem"))
    assert result.notes == (
        "the server is down: its files are restored; start it, then run pgdyno revert again",
    )
    result = revert(access, RevertRequest(allow_restart=True))
    assert (result.is_complete, result.restarts) == (True, 1)


def test_a_server_that_is_down_and_out_of_reach_is_mended_by_hand(
    server: RealServer, access: ServerAccess
) -> None:
    apply(access, work_mem="8MB")
    hidden = replace(access, data_directory=Path("/nonexistent"))
    server.run("pg_ctl", "stop", "-D", str(server.data_directory), "-m", "fast")
    with pytest.raises(StillChangedError) as caught:
        revert(hidden, RevertRequest())
    assert caught.value.message.startswith("could not connect to the server")
    assert caught.value.hint == (
        "pgdyno revert, or pgdyno revert --pgdata DIR on the host with its files; by hand, in "
        f"{auto_conf(server)}: delete the line work_mem = '8MB'; then start the server"
    )
    assert revert(access, ALL).is_complete


def test_of_two_servers_that_are_down_the_named_one_is_restored(
    server: RealServer, access: ServerAccess, pg18_bin: Path
) -> None:
    with running_server(pg18_bin) as second, under_pg_ctl(second):
        other = access_to(second, access.journal_directory)
        apply(access, work_mem="8MB")
        apply(other, work_mem="9MB")
        for one in (server, second):
            one.run("pg_ctl", "stop", "-D", str(one.data_directory), "-m", "fast")
        theirs = auto_conf(second).read_bytes()
        assert revert(access, ALL).is_complete
        assert auto_conf(second).read_bytes() == theirs
        by_files = replace(other, addresses=(), data_directory=second.data_directory)
        assert revert(by_files, ALL).is_complete
        assert second.execute("SHOW work_mem") == server.execute("SHOW work_mem") == [("4MB",)]


def test_a_server_that_is_down_and_not_named_is_left_alone(
    server: RealServer, access: ServerAccess, tmp_path: Path
) -> None:
    apply(access, work_mem="8MB")
    server.run("pg_ctl", "stop", "-D", str(server.data_directory), "-m", "fast")
    changed = auto_conf(server).read_bytes()
    dsn = f"host={tmp_path} port={server.port}"
    elsewhere = replace(access, connect=lambda: connect(dsn), addresses=addresses(dsn))
    with pytest.raises(ConnectionFailedError) as caught:
        revert(elsewhere, ALL)
    assert caught.value.hint is not None
    assert f"changes of the server at host={server.socket_directory} port={server.port}" in caught.value.hint
    assert auto_conf(server).read_bytes() == changed
    assert revert(access, ALL).is_complete


def test_without_open_receipts_an_unreachable_server_is_just_unreachable(tmp_path: Path) -> None:
    access = ServerAccess(lambda: connect("host=/nonexistent"), tmp_path / "journal", inspect_server)
    with pytest.raises(ConnectionFailedError):
        revert(access, ALL)


def test_the_lock_ends_with_its_session(server: RealServer, access: ServerAccess) -> None:
    with locked_session(access.connect) as session:
        pid = session.connection.info.backend_pid
        server.execute(f"SELECT pg_terminate_backend({pid}, 5000)")
        with locked_session(access.connect) as other:
            assert other.connection.info.backend_pid != pid


def test_status_shows_what_is_applied_by_whom_and_in_force(access: ServerAccess) -> None:
    apply(access, work_mem="8MB")
    report = server_status(access, candidates=())
    (entry,) = report.entries
    assert (entry.key, entry.found, entry.wanted, entry.effective, entry.drift) == (
        "work_mem", None, "8MB", "8MB", None,
    )  # fmt: skip
    assert f"process {os.getpid()}" in entry.made_by
    assert "work_mem  8MB (was not set)  in force: 8MB" in status_text(report)
    revert(access, ALL)
    assert status_text(server_status(access, candidates=())).startswith("Nothing is applied.")


def test_status_shows_what_others_did_since(server: RealServer, access: ServerAccess) -> None:
    apply(access, work_mem="8MB", random_page_cost="1.1", jit="off")
    server.execute("ALTER SYSTEM SET work_mem = '5MB'")
    server.execute("ALTER SYSTEM RESET random_page_cost")
    server.execute("ALTER ROLE postgres SET jit = on")
    drift = {entry.key: entry.drift for entry in server_status(access, candidates=()).entries}
    server.execute("ALTER ROLE postgres RESET jit")
    assert drift == {
        "work_mem": "it was set to 5MB",
        "random_page_cost": "it has its original value",
        "jit": "it is not in force: set user",
    }
    revert(access, replace(ALL, on_drift=OnDrift.OVERWRITE))


def test_status_works_without_a_server(access: ServerAccess) -> None:
    apply(access, work_mem="8MB")
    (entry,) = journal_status(access, candidates=()).entries
    assert (entry.key, entry.effective) == ("work_mem", None)
    revert(access, ALL)


def test_an_apply_of_an_earlier_primary_is_not_undone_on_a_copy(
    server: RealServer, access: ServerAccess, tmp_path: Path
) -> None:
    """A copy of the cluster has its system identifier; another data directory gives it away."""
    apply(access, work_mem="8MB")
    (receipt,) = read_journal(access.journal_directory).open
    elsewhere = replace(receipt.target, data_directory=str(tmp_path), machine=None)
    assert receipt.target.is_same_as(elsewhere) is False
    assert receipt.target.is_same_as(replace(elsewhere, data_directory=None)) is True
    revert(access, ALL)


def test_ctrl_c_says_what_is_still_changed(server: RealServer, access: ServerAccess) -> None:
    apply(access, work_mem="8MB", random_page_cost="1.1")

    def interrupt(step: str) -> None:
        if step == "restored random_page_cost":
            raise KeyboardInterrupt

    named = replace(access, revert_command="pgdyno revert --dsn service=production")
    with pytest.raises(StillChangedError) as caught:
        revert(named, replace(ALL, steps=interrupt))
    assert caught.value.message == "interrupted; something is still changed"
    assert caught.value.exit_code == 3
    assert caught.value.hint == (
        "pgdyno revert --dsn service=production; by hand: ALTER SYSTEM RESET random_page_cost; "
        "ALTER SYSTEM RESET work_mem; then SELECT pg_reload_conf(); or restart"
    )
    assert server.execute("SHOW work_mem") == [("8MB",)]
    assert revert(access, ALL).is_complete


def write_as_an_older_pgdyno(access: ServerAccess) -> None:
    """Take out of the journal what receipts of older versions do not have."""
    file = access.journal_directory / JOURNAL_FILE
    entries = [json.loads(line)["entry"] for line in file.read_text().splitlines()]
    taken_out = [entry["receipt"].pop("restart_command") for entry in entries if "receipt" in entry]
    assert taken_out
    file.write_bytes(b"".join(map(_line, entries)))


def test_a_restart_that_nobody_knows_how_to_do_is_not_begun(server: RealServer, access: ServerAccess) -> None:
    apply(access, work_mem="8MB", shared_buffers="96MB")
    write_as_an_older_pgdyno(access)
    with pytest.raises(UsageError) as caught:
        revert(replace(access, restarter=None), ALL)
    assert caught.value.message == (
        "undoing this needs a restart, but pgdyno does not know how to restart this server"
    )
    assert caught.value.detail == "shared_buffers"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("use --restart-command 'systemctl restart postgresql'")
    assert server.execute("SHOW work_mem") == [("8MB",)]
    assert revert(access, ALL).is_complete


@pytest.mark.parametrize("state", ["up", "down"])
def test_revert_restarts_the_server_as_apply_did(
    server: RealServer, access: ServerAccess, state: str
) -> None:
    request = ApplyRequest(plan_of(shared_buffers="96MB"), allow_restart=True)
    undo = f"{access.revert_command} --allow-restart --restart-command '{shlex.join(pg_ctl_restart(server))}'"
    assert f"\nundo: {undo}\n" in apply_text(apply_plan(access, request))
    forgetful = replace(access, restarter=None)
    waiting = revert(forgetful, RevertRequest())
    assert waiting.pending_restart == ("shared_buffers",)
    assert f"    the files are restored; {undo} puts them into effect\n" in revert_text(waiting)
    if state == "down":
        server.run("pg_ctl", "stop", "-D", str(server.data_directory), "-m", "fast")
    assert revert(forgetful, ALL).restarts == 1
    assert server.execute("SHOW shared_buffers") == [("128MB",)]


def test_a_restart_that_is_not_needed_needs_no_command(access: ServerAccess) -> None:
    apply(access, work_mem="8MB")
    assert revert(replace(access, restarter=None), ALL).is_complete


def test_where_nothing_is_to_revert_other_journals_are_named(
    server: RealServer, access: ServerAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after sudo pgdyno apply."""
    apply(access, work_mem="8MB")
    monkeypatch.setattr("pgdyno.apply.revert.candidate_directories", lambda: (access.journal_directory,))
    result = revert(replace(access, journal_directory=tmp_path / "mine"), ALL)
    assert revert_text(result) == (
        f"Nothing to revert on host={server.socket_directory} port={server.port}.\n"
        f"another journal: {access.journal_directory} (1 change applied)\n"
        f"    undo: env PGDYNO_HOME={access.journal_directory.parent} pgdyno revert "
        f"--dsn 'host={server.socket_directory} port={server.port} dbname=postgres'\n"
    )
    assert revert(access, ALL).other_journals == ()


def test_what_somebody_sets_while_the_file_is_replaced_stays(
    server: RealServer, access: ServerAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file was written by hand, so that only replacing it gives back its bytes."""
    auto_conf(server).write_bytes(b"# by hand\nrandom_page_cost = 2\n")
    server.execute("SELECT pg_reload_conf()")
    apply(access, work_mem="8MB")
    prepare = ServerFiles._write

    def meanwhile(files: ServerFiles, directory: Directory, content: bytes) -> None:
        prepare(files, directory, content)
        server.execute("ALTER SYSTEM SET temp_buffers = '9MB'")

    with monkeypatch.context() as busy:
        busy.setattr(ServerFiles, "_write", meanwhile)
        assert revert(access, ALL).is_complete
    assert auto_conf(server).read_text().endswith("random_page_cost = '2'\ntemp_buffers = '9MB'\n")
    server.execute("ALTER SYSTEM RESET temp_buffers")
    server.execute("ALTER SYSTEM RESET random_page_cost")
    server.execute("SELECT pg_reload_conf()")


def test_a_lost_connection_says_what_is_still_changed(server: RealServer, access: ServerAccess) -> None:
    apply(access, work_mem="8MB")

    def lose(step: str) -> None:
        if step == "restored work_mem":
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                    " WHERE application_name LIKE 'pgdyno%'"
                )

    with pytest.raises(StillChangedError) as caught:
        revert(access, replace(ALL, steps=lose))
    assert caught.value.message == "lost the connection to the server; something is still changed"
    assert revert(access, ALL).is_complete


def test_a_stopped_server_is_reverted_from_the_command_line_by_its_directory(
    server: RealServer, home: Path
) -> None:
    apply(server_access(server.dsn), work_mem="8MB")
    pgdata = ("--pgdata", str(server.data_directory))
    server.run("pg_ctl", "stop", "-D", str(server.data_directory), "-m", "fast")
    done = pgdyno("revert", *pgdata)
    assert (done.returncode, "the server is down: its files are restored" in done.stdout) == (3, True)
    assert f"pgdyno revert --pgdata {server.data_directory}" in done.stdout
    refused = pgdyno("revert", *pgdata, "--allow-restart")
    assert refused.returncode == 2
    assert "--restart-command" in refused.stderr
    command = shlex.join(pg_ctl_restart(server))
    done = pgdyno("revert", *pgdata, "--allow-restart", "--restart-command", command)
    assert done.returncode == 0, done.stderr
    assert server.execute("SHOW work_mem") == [("4MB",)]
    assert pgdyno("revert", *pgdata).stdout.startswith("Nothing to revert on host=")
