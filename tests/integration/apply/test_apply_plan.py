"""apply on a real server: what it does, what it refuses, and that a failure leaves nothing changed."""

from __future__ import annotations

import json
import signal
import stat
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_disk import small_disk
from tests.fix_restarts import LIMIT_S, in_vain
from tests.fix_servers import RealServer
from tests.integration.journal_support import (
    NOWHERE,
    access_to,
    auto_conf,
    pg_ctl_restart,
    plan_of,
    snapshot,
    write_auto_conf,
)

from pgdyno.apply.apply_plan import ApplyRequest, apply_plan, preview_apply
from pgdyno.apply.journal_text import apply_text
from pgdyno.apply.ledger.log import read_journal
from pgdyno.apply.revert import RevertRequest, revert
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.restart import CommandRestarter
from pgdyno.base.errors import (
    DurabilityError,
    OwnershipError,
    PermissionNotGivenError,
    PgdynoError,
    PrivilegeError,
    RefusedError,
    ServerStartError,
    SettingError,
    StillChangedError,
    StorageError,
    UsageError,
)
from pgdyno.base.facts import to_document
from pgdyno.model.plans.journal import ReceiptState
from pgdyno.model.plans.plan import Finding
from pgdyno.plan.inspection.start_check import StartCheck
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import installation_in

pytestmark = pytest.mark.server

LIBRARY_THAT_IS_MISSING = {"shared_preload_libraries": "no_such_library"}


@pytest.fixture(autouse=True)
def _nothing_is_left(server: RealServer, tmp_path: Path) -> Iterator[None]:
    """Whatever a test does, after a revert the server is as it was."""
    before = snapshot(server)
    yield
    revert(access_to(server, tmp_path / "journal"), RevertRequest(is_all=True, allow_restart=True))
    assert snapshot(server) - before == []


def refused(access: ServerAccess, request: ApplyRequest, error: type[PgdynoError]) -> PgdynoError:
    """Apply, expect an error, and see that no receipt was written."""
    with pytest.raises(error) as caught:
        apply_plan(access, request)
    assert read_journal(access.journal_directory).receipts == ()
    return caught.value


def test_a_plan_is_in_force_afterwards_and_every_change_has_a_receipt(
    server: RealServer, access: ServerAccess
) -> None:
    result = apply_plan(
        access, ApplyRequest(plan_of(work_mem="8MB", shared_buffers="96MB"), allow_restart=True)
    )
    assert server.execute("SHOW work_mem") == [("8MB",)]
    assert server.execute("SHOW shared_buffers") == [("96MB",)]
    assert result.restarts == 1
    assert [(one.key, one.before, one.effective, one.state) for one in result.outcomes] == [
        ("work_mem", "4MB", "8MB", ReceiptState.VERIFIED),
        ("shared_buffers", "128MB", "96MB", ReceiptState.VERIFIED),
    ]
    receipts = read_journal(access.journal_directory).receipts
    assert [(receipt.key, receipt.found.value) for receipt in receipts] == [
        ("work_mem", None),
        ("shared_buffers", None),
    ]
    assert "undo: pgdyno revert" in apply_text(result)


def test_a_file_that_its_owner_has_closed_is_told_so_to_a_superuser(
    server: RealServer, access: ServerAccess
) -> None:
    mode = stat.S_IMODE(auto_conf(server).stat().st_mode)
    auto_conf(server).chmod(0o400)
    try:
        with pytest.raises(OwnershipError) as caught:
            apply_plan(access, ApplyRequest(plan_of(work_mem="8MB")))
    finally:
        auto_conf(server).chmod(mode)
    assert caught.value.message == 'could not open file "postgresql.auto.conf": Permission denied'
    assert caught.value.hint == (
        "its owner has made it unwritable to the server; give them the output of pgdyno advise --format conf"
    )


def test_no_result_that_is_printed_holds_a_copy_of_a_file(access: ServerAccess) -> None:
    result = apply_plan(access, ApplyRequest(plan_of(work_mem="8MB")))
    assert "auto_conf" in (access.journal_directory / "journal.jsonl").read_text()
    assert "auto_conf" not in json.dumps(to_document(result))


def test_a_list_of_libraries_stays_a_list(server: RealServer, access: ServerAccess) -> None:
    libraries = "pg_stat_statements, auto_explain"
    apply_plan(access, ApplyRequest(plan_of(shared_preload_libraries=libraries), allow_restart=True))
    assert server.execute("SHOW shared_preload_libraries") == [(libraries,)]


def test_minus_one_lets_the_server_choose(server: RealServer, access: ServerAccess) -> None:
    result = apply_plan(access, ApplyRequest(plan_of(wal_buffers="-1"), allow_restart=True))
    assert result.outcomes[0].effective == "4MB"  # 1/32 of 128 MB of shared buffers
    assert result.outcomes[0].state is ReceiptState.VERIFIED


def test_an_empty_plan_changes_nothing_and_has_no_receipt(access: ServerAccess) -> None:
    result = apply_plan(access, ApplyRequest(plan_of()))
    assert result.apply_id is None
    assert apply_text(result) == "Nothing to change.\n"


def test_a_preview_says_what_would_be_run_and_makes_no_journal(access: ServerAccess) -> None:
    result = preview_apply(access, ApplyRequest(plan_of(work_mem="8MB", shared_buffers="96MB")))
    assert result.statements == (
        "ALTER SYSTEM SET work_mem = '8MB';",
        "ALTER SYSTEM SET shared_buffers = '96MB';",
    )
    assert (result.restarts, result.is_dry_run) == (1, True)
    assert not access.journal_directory.exists()


def test_a_restart_needs_permission(access: ServerAccess) -> None:
    request = ApplyRequest(plan_of(work_mem="8MB", shared_buffers="96MB"))
    error = refused(access, request, PermissionNotGivenError)
    assert error.message == "1 of 2 changes need a restart, which was not allowed"
    assert error.detail == "shared_buffers"
    assert error.hint == "--allow-restart allows one restart"


def test_a_restart_needs_a_way_to_do_it(access: ServerAccess) -> None:
    request = ApplyRequest(plan_of(shared_buffers="96MB"), allow_restart=True)
    error = refused(replace(access, restarter=None), request, UsageError)
    assert error.message == "the plan needs a restart, but pgdyno does not know how to restart this server"
    assert error.hint is not None
    assert "--restart-command" in error.hint


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"nonesuch": "1"}, 'unrecognized configuration parameter "nonesuch"'),
        ({"work_mem": "1kB"}, '1kB is outside the valid range for parameter "work_mem"'),
        ({"work_mem": "much"}, 'invalid value for parameter "work_mem": "much"'),
        ({"wal_compression": "zip"}, 'invalid value for parameter "wal_compression": "zip"'),
        ({"block_size": "8192"}, 'parameter "block_size" cannot be changed'),
        ({"work_mem": "1kB", "nonesuch": "1"}, "the server would reject 2 of the values"),
    ],
)
def test_a_value_that_the_server_would_not_take_is_found_before_anything_is_changed(
    access: ServerAccess, settings: dict[str, str], message: str
) -> None:
    assert refused(access, ApplyRequest(plan_of(**settings)), SettingError).message == message


@pytest.mark.parametrize(
    ("settings", "planned_on", "error"),
    [
        ({"fsync": "off"}, "host=standby port=5432 dbname=a user=b", RefusedError),
        ({"fsync": "off", "nonesuch": "1"}, None, DurabilityError),
        ({"plan_cache_mode": "force_generic_plan", "nonesuch": "1"}, None, RefusedError),
        ({"shared_buffers": "96MB", "work_mem": "1kB"}, None, SettingError),
    ],
)
def test_of_several_reasons_the_first_of_the_order_is_given(
    access: ServerAccess, settings: dict[str, str], planned_on: str | None, error: type[PgdynoError]
) -> None:
    """The server, its data, other sessions, the values; the permission to restart comes after all."""
    request = ApplyRequest(plan_of(**settings), planned_on=planned_on)
    applied = refused(access, request, error)
    with pytest.raises(error) as previewed:
        preview_apply(access, request)
    assert previewed.value.message == applied.message


def test_durability_is_locked(access: ServerAccess) -> None:
    error = refused(access, ApplyRequest(plan_of(fsync="off")), DurabilityError)
    assert error.message == "fsync=off could lose committed data"
    assert error.hint is not None
    assert error.hint.startswith("write such a variant into an experiment file")


def test_what_suits_one_application_is_never_set_for_all(access: ServerAccess) -> None:
    request = ApplyRequest(plan_of(plan_cache_mode="force_generic_plan"))
    error = refused(access, request, RefusedError)
    assert error.message == "plan_cache_mode = force_generic_plan is not set for a whole server"
    assert error.detail == "it suits the statements of one application, but may harm those of another"
    assert error.hint == (
        "ALTER ROLE name SET plan_cache_mode = force_generic_plan; "
        "to undo: ALTER ROLE name RESET plan_cache_mode"
    )


def test_a_server_that_may_lose_data_is_not_improved_on(server: RealServer, access: ServerAccess) -> None:
    server.execute("ALTER SYSTEM SET fsync = off")
    server.execute("SELECT pg_reload_conf()")
    request = ApplyRequest(plan_of(work_mem="8MB"))
    try:
        error = refused(access, request, DurabilityError)
        with pytest.raises(DurabilityError):
            preview_apply(access, request)
    finally:
        server.execute("ALTER SYSTEM RESET fsync")
        server.execute("SELECT pg_reload_conf()")
    assert error.message.endswith(" may lose data as it is set up now")
    assert error.detail == "fsync is off: a crash of the machine can destroy the whole cluster"
    assert error.hint == ("pgdyno does not change it; unless intended: ALTER SYSTEM SET fsync = on")


def test_what_was_found_about_the_server_is_shown_with_the_plan(access: ServerAccess) -> None:
    finding = Finding("warning", "work_mem is set for a role", "remove it")
    request = ApplyRequest(replace(plan_of(work_mem="8MB"), findings=(finding,)))
    for result in (preview_apply(access, request), apply_plan(access, request)):
        assert apply_text(result).startswith("WARNING: work_mem is set for a role\n    hint: remove it\n")


def test_a_plan_for_another_server_is_refused(server: RealServer, access: ServerAccess) -> None:
    """As a DSN with several hosts may lead elsewhere after the server was inspected."""
    request = ApplyRequest(plan_of(work_mem="8MB"), planned_on="host=standby port=5432 dbname=a user=b")
    error = refused(access, request, RefusedError)
    assert error.message == "the plan was made for a different server than the one connected"
    assert error.detail == (
        "planned for host=standby port=5432 dbname=a user=b; "
        f"connected to host={server.socket_directory} port={server.port} dbname=postgres user=postgres"
    )
    assert error.hint == "name one server, by its own address: --dsn 'host=… port=…'"


def test_a_setting_of_the_role_is_somebody_elses(server: RealServer, access: ServerAccess) -> None:
    server.execute("ALTER ROLE postgres SET work_mem = '5MB'")
    try:
        error = refused(access, ApplyRequest(plan_of(work_mem="8MB")), OwnershipError)
    finally:
        server.execute("ALTER ROLE postgres RESET work_mem")
    assert error.message == "1 of 1 settings are managed by others"
    assert error.detail == "work_mem is set by ALTER ROLE … SET for this role"
    assert error.hint == "remove the settings there, connect as another role, or leave them out of the plan"


def test_a_server_whose_files_patroni_keeps_is_left_alone(server: RealServer, access: ServerAccess) -> None:
    trace = server.data_directory / "patroni.dynamic.json"
    trace.write_text("{}")
    try:
        error = refused(access, ApplyRequest(plan_of(work_mem="8MB")), OwnershipError)
    finally:
        trace.unlink()
    assert error.message == "the configuration of this server is managed by Patroni"
    assert error.hint is not None
    assert "patronictl edit-config" in error.hint


def test_an_error_in_a_configuration_file_is_somebody_elses_to_correct(
    server: RealServer, access: ServerAccess
) -> None:
    conf = server.data_directory / "postgresql.conf"
    good = conf.read_bytes()
    server.append_configuration("work_mem = 'much'\n")
    try:
        error = refused(access, ApplyRequest(plan_of(random_page_cost="1.1")), RefusedError)
    finally:
        conf.write_bytes(good)
    assert error.message.startswith("the server would load nothing from its configuration files")
    assert error.detail is not None
    assert error.detail.startswith(f"work_mem in {conf}, line ")
    assert "much" not in error.detail
    assert error.hint == "correct them, then try again"


def test_an_edit_that_is_not_loaded_is_not_loaded_by_us(server: RealServer, access: ServerAccess) -> None:
    conf = server.data_directory / "postgresql.conf"
    good = conf.read_bytes()
    server.append_configuration("temp_buffers = 9MB\n")
    try:
        error = refused(access, ApplyRequest(plan_of(random_page_cost="1.1")), RefusedError)
    finally:
        conf.write_bytes(good)
    assert error.message == "the server's configuration files contain edits that are not loaded yet"
    assert error.detail is not None
    assert "temp_buffers in" in error.detail
    assert error.hint == ("load them first (SELECT pg_reload_conf()) or undo them, then try again")


def test_what_waits_for_a_restart_of_somebody_else_still_waits_after_a_reload(
    server: RealServer, access: ServerAccess
) -> None:
    conf = server.data_directory / "postgresql.conf"
    good = conf.read_bytes()
    server.append_configuration("max_connections = 90\n")
    server.execute("SELECT pg_reload_conf()")
    waiting = "SELECT name FROM pg_settings WHERE pending_restart"
    try:
        request = ApplyRequest(plan_of(shared_buffers="96MB"), allow_restart=True)
        error = refused(access, request, RefusedError)
        assert error.message == "settings changed by others wait for a restart: max_connections"
        assert error.hint == "restart the server first or undo them, then try again"
        apply_plan(access, ApplyRequest(plan_of(work_mem="8MB")))
        assert server.execute(waiting) == [("max_connections",)]
        assert revert(access, RevertRequest(allow_restart=True)).restarts == 0
        assert server.execute(waiting) == [("max_connections",)]
    finally:
        conf.write_bytes(good)
        server.execute("SELECT pg_reload_conf()")


def test_a_standby_is_raised_before_its_primary(server: RealServer, access: ServerAccess) -> None:
    server.execute("SELECT pg_create_physical_replication_slot('a_standby')")
    try:
        request = ApplyRequest(plan_of(max_connections="120"), allow_restart=True)
        error = refused(access, request, RefusedError)
    finally:
        server.execute("SELECT pg_drop_replication_slot('a_standby')")
    assert error.message == "max_connections must be raised on the standbys first"
    assert error.hint is not None
    assert "--standbys-done" in error.hint


def test_a_standby_is_not_lowered_before_its_primary(server: RealServer, access: ServerAccess) -> None:
    signal = server.data_directory / "standby.signal"
    signal.touch()
    assert access.restarter is not None
    access.restarter.restart()
    try:
        assert server.execute("SELECT pg_is_in_recovery()") == [(True,)]
        request = ApplyRequest(plan_of(max_connections="50"), allow_restart=True)
        error = refused(access, request, RefusedError)
        assert error.message == "max_connections must be lowered on the primary first"
        assert error.hint is not None
        assert "--standbys-done" in error.hint
        apply_plan(access, ApplyRequest(plan_of(work_mem="8MB")))  # a standby has settings of its own
    finally:
        signal.unlink()
        access.restarter.restart()


def test_an_interrupted_apply_is_undone_before_the_next_one(access: ServerAccess) -> None:
    class PowerFailure(BaseException):
        """Stands for the end of the process: nothing catches it."""

    def fail(step: str) -> None:
        if step == "changed work_mem":
            raise PowerFailure

    with pytest.raises(PowerFailure):
        apply_plan(access, ApplyRequest(plan_of(work_mem="8MB"), steps=fail))
    with pytest.raises(RefusedError, match="was interrupted on this server") as caught:
        apply_plan(access, ApplyRequest(plan_of(work_mem="8MB")))
    assert caught.value.hint == "pgdyno revert, then try again"


def test_ctrl_c_undoes_what_was_done_so_far(server: RealServer, access: ServerAccess) -> None:
    before = snapshot(server)

    def interrupt(step: str) -> None:
        if step == "changed work_mem":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply_plan(access, ApplyRequest(plan_of(work_mem="8MB"), steps=interrupt))
    assert snapshot(server) - before == []
    assert read_journal(access.journal_directory).open == ()


def test_an_error_that_nobody_expects_undoes_everything_too(server: RealServer, access: ServerAccess) -> None:
    before = snapshot(server)

    def fail(step: str) -> None:
        if step == "changed work_mem":
            raise FileNotFoundError(2, "No usable temporary directory found")

    with pytest.raises(FileNotFoundError):
        apply_plan(access, ApplyRequest(plan_of(work_mem="8MB"), steps=fail))
    assert snapshot(server) - before == []
    assert read_journal(access.journal_directory).open == ()


def test_a_roll_back_that_fails_unexpectedly_says_what_is_left(access: ServerAccess) -> None:
    def fail(step: str) -> None:
        if step in ("changed work_mem", "restored work_mem"):
            raise MemoryError(step)

    with pytest.raises(StillChangedError) as caught:
        apply_plan(access, ApplyRequest(plan_of(work_mem="8MB"), steps=fail))
    assert caught.value.message == "unforeseen MemoryError: changed work_mem; something is still changed"
    assert caught.value.detail == "rolling it back failed as well: unforeseen MemoryError: restored work_mem"
    assert "ALTER SYSTEM RESET work_mem" in (caught.value.hint or "")


def test_a_server_that_does_not_come_up_gets_its_old_values_back_at_once(
    server: RealServer, access: ServerAccess
) -> None:
    before = snapshot(server)
    request = ApplyRequest(plan_of(work_mem="8MB", **LIBRARY_THAT_IS_MISSING), allow_restart=True)
    with pytest.raises(ServerStartError) as caught:
        apply_plan(access, request)
    assert caught.value.message == (
        "the server did not start with the new settings; it runs with the original settings again"
    )
    assert snapshot(server) - before == []
    assert read_journal(access.journal_directory).open == ()


def test_a_server_that_does_not_come_up_and_whose_files_are_out_of_reach_is_mended_by_hand(
    server: RealServer, tmp_path: Path
) -> None:
    before = snapshot(server)
    access = access_to(server, tmp_path / "journal", has_files=False)
    request = ApplyRequest(plan_of(work_mem="8MB", **LIBRARY_THAT_IS_MISSING), allow_restart=True)
    with pytest.raises(StillChangedError) as caught:
        apply_plan(access, request)
    assert caught.value.exit_code == 3
    assert caught.value.hint == (
        "pgdyno revert, or pgdyno revert --pgdata DIR on the host with its files; "
        f"by hand, in {auto_conf(server)}: "
        "delete the line shared_preload_libraries = 'no_such_library'; "
        "delete the line work_mem = '8MB'; then start the server"
    )
    # The same from a shell that does reach the files:
    result = revert(access_to(server, tmp_path / "journal"), RevertRequest(allow_restart=True))
    assert (result.is_complete, result.restarts) == (True, 1)
    assert snapshot(server) - before == []


def test_trying_the_start_finds_out_before_anything_is_changed(
    server: RealServer, access: ServerAccess
) -> None:
    check = StartCheck(installation_in(server.bin_directory), workspace())
    request = ApplyRequest(plan_of(**LIBRARY_THAT_IS_MISSING), allow_restart=True, start_check=check)
    error = refused(access, request, ServerStartError)
    assert error.message == "the server would not start with the planned settings"
    assert error.detail is not None
    assert "no_such_library" in error.detail
    assert error.hint == "nothing was changed; omit the setting named in the log"


def test_trying_the_start_lets_a_good_plan_pass(server: RealServer, access: ServerAccess) -> None:
    check = StartCheck(installation_in(server.bin_directory), workspace())
    request = ApplyRequest(plan_of(max_connections="30"), allow_restart=True, start_check=check)
    assert preview_apply(access, request).restarts == 1


def test_trying_the_start_sees_limits_that_hang_together(server: RealServer, access: ServerAccess) -> None:
    """Each value is in its range; only together the server rejects them."""
    check = StartCheck(installation_in(server.bin_directory), workspace())
    settings = {"max_connections": "10", "superuser_reserved_connections": "12"}
    request = ApplyRequest(plan_of(**settings), allow_restart=True, start_check=check)
    error = refused(access, request, PgdynoError)
    assert "superuser_reserved_connections" in str(error)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("false",), 'the restart command "false" failed with status 1'),
        (("/no/such/program",), 'could not run the restart command "/no/such/program"'),
        (("true",), "the server was not up within 60 s of its restart"),
    ],
)
def test_a_restart_command_that_does_nothing_leaves_nothing_changed(
    server: RealServer, access: ServerAccess, command: tuple[str, ...], message: str
) -> None:
    before = snapshot(server)
    restarter = CommandRestarter(command, access.connect, limit_s=LIMIT_S)
    request = ApplyRequest(plan_of(shared_buffers="96MB", max_wal_senders="12"), allow_restart=True)
    with in_vain(), pytest.raises(ServerStartError) as caught:
        apply_plan(replace(access, restarter=restarter), request)
    assert caught.value.message == message
    assert snapshot(server) - before == []
    assert read_journal(access.journal_directory).open == ()


@pytest.mark.root
@pytest.mark.parametrize("has_journal", [False, True], ids=["no journal yet", "a journal"])
def test_without_room_for_a_receipt_nothing_is_changed(server: RealServer, *, has_journal: bool) -> None:
    before = snapshot(server)
    with small_disk() as disk:
        access = access_to(server, disk.directory / "journal")
        names = server.execute("SELECT name FROM pg_settings WHERE name LIKE 'enable_%' ORDER BY name")
        request = ApplyRequest(plan_of(**{name: "off" for (name,) in names}))  # longer than a page
        if has_journal:
            apply_plan(access, request)
            revert(access, RevertRequest())
        disk.fill()
        with pytest.raises(StorageError) as caught:
            apply_plan(access, request)
        assert snapshot(server) - before == []
        disk.empty()
        assert read_journal(access.journal_directory).open == ()
        apply_plan(access, request)
        assert revert(access, RevertRequest()).is_complete
        assert read_journal(access.journal_directory).damage == ()
    assert caught.value.message == f"could not write the journal in {access.journal_directory}"
    assert caught.value.detail == "No space left on device"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("nothing is changed without a receipt")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_during_the_restart_waits_for_it_and_then_undoes_everything(
    server: RealServer, access: ServerAccess, number: signal.Signals
) -> None:
    before = snapshot(server)
    script = (
        "import os, subprocess, sys;"
        "os.path.exists(sys.argv[1]) or (open(sys.argv[1], 'w'), os.kill(os.getppid(), int(sys.argv[2])));"
        "sys.exit(subprocess.call(sys.argv[3:]))"
    )
    once = str(access.journal_directory.with_name("interrupted"))
    command = (sys.executable, "-c", script, once, str(int(number)), *pg_ctl_restart(server))
    assert access.restarter is not None
    interrupted = replace(access, restarter=replace(access.restarter, command=command))
    found = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            apply_plan(interrupted, ApplyRequest(plan_of(shared_buffers="96MB"), allow_restart=True))
    finally:
        signal.signal(number, found)
    assert snapshot(server) - before == []
    assert read_journal(access.journal_directory).open == ()


def test_an_ordinary_role_is_told_what_it_lacks(server: RealServer, tmp_path: Path) -> None:
    server.execute("CREATE ROLE ordinary LOGIN")
    try:
        access = access_to(server, tmp_path / "journal", has_files=False, user="ordinary")
        with pytest.raises(PrivilegeError) as caught:
            apply_plan(access, ApplyRequest(plan_of(work_mem="8MB")))
        assert caught.value.message == "role ordinary may not change these settings"
        assert caught.value.hint == (
            "connect as a superuser, or (since PostgreSQL 15) grant it those and pg_read_all_settings"
        )
        assert caught.value.detail == (
            "it lacks: GRANT ALTER SYSTEM ON PARAMETER work_mem; GRANT EXECUTE ON FUNCTION pg_reload_conf()"
        )
        assert read_journal(access.journal_directory).receipts == ()
    finally:
        server.execute("DROP ROLE ordinary")


def test_a_role_that_may_alter_one_parameter_changes_and_restores_it(
    server: RealServer, tmp_path: Path
) -> None:
    write_auto_conf(server, "random_page_cost = 2\nwork_mem = '6MB'\n")
    before = server.execute("SELECT name, setting, sourcefile FROM pg_settings ORDER BY name")
    server.execute("CREATE ROLE tuner LOGIN IN ROLE pg_read_all_settings")
    server.execute("GRANT ALTER SYSTEM ON PARAMETER work_mem TO tuner")
    server.execute("GRANT EXECUTE ON FUNCTION pg_reload_conf() TO tuner")
    try:
        access = access_to(server, tmp_path / "journal", has_files=False, user="tuner")
        result = apply_plan(access, ApplyRequest(plan_of(work_mem="8MB")))
        assert len(result.notes) == 2  # no files, no pg_file_settings
        assert revert(access, RevertRequest()).is_complete
        assert server.execute("SELECT name, setting, sourcefile FROM pg_settings ORDER BY name") == before
    finally:
        server.execute("DROP OWNED BY tuner")
        server.execute("DROP ROLE tuner")
        auto_conf(server).write_bytes(
            b"# Do not edit this file manually!\n# It will be overwritten by the ALTER SYSTEM command.\n"
        )
        assert access_to(server, NOWHERE).restarter is not None
        access_to(server, NOWHERE).restarter.restart()  # type: ignore[union-attr]
