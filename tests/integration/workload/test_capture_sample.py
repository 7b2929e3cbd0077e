"""Workloads from a share of transactions that a real server logs for that time; its settings come back."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from tests.fix_home import pgdyno
from tests.fix_logging import SETTINGS, log_files, prepare
from tests.fix_progress import Remembered
from tests.fix_servers import RealServer, running_server, wait_until
from tests.integration.journal_support import snapshot

from pgdyno.base import numbers
from pgdyno.base.errors import ConnectionFailedError, MeasurementError
from pgdyno.builds.switching.server_access import server_access
from pgdyno.cli import _workload_capture
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.store.workload_file import read_workload_file
from pgdyno.workload.capture_sample import LogSampleRequest, capture_sample

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home")]

_RATE = "SHOW log_transaction_sample_rate"
# Its session that reads the log looks at it.
_WATCHING = (
    "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' AND pid <> pg_backend_pid()"
    " AND query ~ '\\^log_'"
)
_FOUND = {  # in postgresql.auto.conf before: all of them have to change
    "log_min_duration_statement": "5s",
    "work_mem": "5MB",
    "log_parameter_max_length": "0",
    "log_transaction_sample_rate": "0",
    "log_line_prefix": "%t ",
}
_TPCB = ["begin", "update-pgbench_accounts", "select-pgbench_accounts", "update-pgbench_tellers",
         "update-pgbench_branches", "insert-pgbench_history", "end"]  # fmt: skip


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    """PostgreSQL 18 with a text log that has neither sessions nor databases, and a slow-query log."""
    with running_server(pg18_bin, SETTINGS) as started:
        prepare(started)
        find_settings(started)
        yield started


def find_settings(server: RealServer) -> None:
    for name, value in _FOUND.items():
        server.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    server.execute("SELECT pg_reload_conf()")
    wait_until(lambda: server.execute("SHOW log_line_prefix") == [("%t ",)])


def arguments(server: RealServer, share: str, seconds: str, file: Path) -> tuple[str, ...]:
    place = ("--dsn", server.reading_dsn("bank"), "--admin-dsn", server.dsn)
    return ("workload", "capture", *place, "--log-sample", share, "--for", seconds, str(file))


def run_tpcb(server: RealServer, transactions: int) -> None:
    place = (f"--host={server.socket_directory}", f"--port={server.port}", "--username=postgres", "bank")
    each = transactions // 2
    server.run(
        "pgbench", "--protocol=prepared", "--no-vacuum", f"--transactions={each}", "--client=2", *place
    )
    await_log(server)


def await_log(server: RealServer) -> None:
    """Wait until the log has what ended sessions have sent: the log collector writes it in its own time."""
    mark = f"mark {time.monotonic_ns()}"
    server.execute(f"DO $$ BEGIN RAISE LOG '{mark}'; END $$")
    is_collected = server.execute("SHOW logging_collector") == [("on",)]

    def has_mark() -> bool:
        logs = log_files(server, "csvlog") if is_collected else [server.log_file]
        return any(mark in path.read_text(errors="replace") for path in logs)

    wait_until(has_mark)


class DuringSample(Remembered):
    """Runs a load when the sampled time begins: before the first look at sessions and at the log's growth."""

    def __init__(self, *loads: Callable[[], object]) -> None:
        super().__init__()
        self.loads = list(loads)

    def advance(self, done_s: float, total_s: float) -> None:
        super().advance(done_s, total_s)
        if self.loads:
            self.loads.pop(0)()

    def close(self) -> None:
        """Part of the progress of a command."""


def sampled(
    server: RealServer,
    *loads: Callable[[], object],
    share: float = 1.0,
    dsn: str | None = None,
    seconds: float = 0.1,
) -> CapturedWorkload:
    """Capture what the loads run; each of them runs between two looks."""
    request = LogSampleRequest(dsn or server.reading_dsn("bank"), "bank", share, seconds)
    return capture_sample(server_access(server.dsn_for("postgres", "bank")), request, DuringSample(*loads))


def current_log(server: RealServer) -> Path:
    [[path]] = server.execute("SELECT pg_current_logfile('csvlog')")
    return server.data_directory / str(path)


def read_anew(server: RealServer) -> None:
    """Let a server write another log file, as it does each day."""
    server.execute("SELECT pg_rotate_logfile()")
    current = "SELECT pg_current_logfile('csvlog')"
    found = server.execute(current)
    wait_until(lambda: server.execute(f"{current}, pg_rotate_logfile()")[0][:1] != found[0])
    assert found != [(None,)]


def block_of(workload: CapturedWorkload) -> float:
    """Return how many blocks of pgbench there are; each has every statement once."""
    [block] = [one for one in workload.transactions if len(one.calls) > 1]
    assert [call.statement for call in block.calls] == _TPCB
    assert {call.times for call in block.calls} == {1.0}
    return block.weight


def test_all_transactions_are_those_of_pgbench_however_often_the_log_is_rotated(server: RealServer) -> None:
    def load() -> None:
        for _ in range(3):
            run_tpcb(server, 50)
            read_anew(server)
        run_tpcb(server, 50)

    before = snapshot(server)
    workload = sampled(server, load)
    assert not snapshot(server) - before
    assert not before - snapshot(server)
    assert block_of(workload) == 200
    assert workload.protocol == "prepared"
    update = next(one for one in workload.statements if one.name == "update-pgbench_tellers")
    assert update.seen.calls == 200
    assert update.seen.time_ms > 0
    assert not workload.has_values
    many = round(sum(one.weight for one in workload.transactions))
    assert workload.notes[0].startswith(
        f"its counts are those of {many} sampled transactions, {numbers.share(1)} of all, multiplied by 1: "
        "rare kinds may be missing; the server's log grew by "
    )
    assert re.search(
        r"B in [\d.]+\W\w+, pgdyno's own statements and other messages included; the part that was read has "
        r"\d+ lines$",
        workload.notes[0],
    )
    assert not any("does not log every statement" in note for note in workload.notes)


def test_half_of_the_transactions_stand_for_all(
    server: RealServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, file = snapshot(server), tmp_path / "bank.toml"
    progress = DuringSample(lambda: run_tpcb(server, 400))
    monkeypatch.setattr(_workload_capture, "open_progress", lambda: progress)
    options = ["--log-sample", "50%", "--for", "100ms", "--keep-values"]
    place = ["--dsn", server.reading_dsn("bank"), "--admin-dsn", server.dsn]
    done = CliRunner().invoke(_workload_capture.capture, [*place, *options, str(file)])
    assert done.exception is None, done.exception
    assert not snapshot(server) - before
    workload = read_workload_file(file)
    # A binomial count of half of 400 transactions, doubled: its standard deviation is the root of 400.
    assert abs(block_of(workload) - 400) < 6 * math.sqrt(400)
    assert block_of(workload) % 2 == 0
    calls = {one.name: one.seen.calls for one in workload.statements}
    assert {calls[name] for name in _TPCB} == {block_of(workload)}
    assert workload.has_values
    assert file.stat().st_mode & 0o777 == 0o600


def test_entries_of_before_in_a_file_that_is_written_again_do_not_count(server: RealServer) -> None:
    kept: list[bytes] = []

    def keep() -> None:
        run_tpcb(server, 20)
        kept.append(current_log(server).read_bytes())

    blocks = block_of(sampled(server, keep))
    old = server.data_directory / "log" / "of-last-week.csv"
    old.write_bytes(kept[0])
    old.chmod(0o644)

    def write_again() -> None:
        run_tpcb(server, 10)
        with old.open("ab") as file:
            file.write(kept[0])

    try:
        assert blocks == 20
        in_file = len(re.findall(rb"execute \w+: INSERT INTO pgbench_history", kept[0]))
        assert block_of(sampled(server, write_again)) == 10 + in_file
    finally:
        old.unlink()


def test_only_the_sample_has_failures_and_only_the_applications_sessions_count(server: RealServer) -> None:
    with psycopg.connect(server.dsn_for("app", "bank"), autocommit=True) as connection:

        def load() -> None:
            for is_in_block in (False, True):
                if is_in_block:
                    connection.execute("BEGIN")
                with pytest.raises(psycopg.errors.DivisionByZero):
                    connection.execute("SELECT 1 / 0")
            connection.execute("ROLLBACK")
            connection.execute("SELECT count(*) FROM pgbench_branches")
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM pgbench_branches")  # open until the end: it is seen
            await_log(server)

        workload = sampled(server, load)
    assert workload.sessions == 1
    failed = "1 statements failed and are left out; others of their transactions are not"
    assert f"of the sample: {failed}" in workload.notes


def test_a_log_that_is_truncated_ends_the_capture(server: RealServer) -> None:
    def truncate_after_a_look() -> None:
        if server.execute(_WATCHING) == [(1,)]:
            os.truncate(current_log(server), 0)

    before, often = snapshot(server), [truncate_after_a_look] * 1000
    with pytest.raises(MeasurementError) as caught:
        sampled(server, lambda: run_tpcb(server, 20), *often, seconds=3600.0)  # the error ends it
    assert caught.value.message == "the server's log was truncated during the capture"
    assert re.fullmatch(r'"log/of-\d+\.csv" has become shorter, or is gone', caught.value.detail or "")
    assert caught.value.hint == "pause log rotation, or capture at another time"
    assert not snapshot(server) - before


def test_settings_that_others_change_end_the_capture(server: RealServer) -> None:
    before = snapshot(server)

    def revert() -> None:
        run_tpcb(server, 10)
        assert pgdyno("revert", "--dsn", server.dsn).returncode == 0

    with pytest.raises(MeasurementError) as caught:
        sampled(server, revert)
    assert caught.value.message == "the settings of the log were changed during the capture"
    assert "log_transaction_sample_rate is 0, and was 1" in (caught.value.detail or "")
    assert "log_min_duration_statement is 5000, and was -1" in (caught.value.detail or "")
    assert caught.value.hint == "capture again, and leave these settings alone until it has ended"
    assert not snapshot(server) - before
    assert not before - snapshot(server)


def test_the_settings_come_back_after_a_failure(server: RealServer, tmp_path: Path) -> None:
    before = snapshot(server)
    done = pgdyno(*arguments(server, "100%", "1s", tmp_path / "nothing.toml"))
    assert done.returncode == 2
    assert 'the log has no statement of database "bank"' in done.stderr
    assert "log a larger share, or for longer: --log-sample 10% --for 10m" in done.stderr
    assert not snapshot(server) - before
    assert not before - snapshot(server)


def started(server: RealServer, file: Path) -> subprocess.Popen[bytes]:
    """A capture in a process of its own that samples for an hour."""
    command = [sys.executable, "-m", "pgdyno", *arguments(server, "10%", "1h", file)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ)
    wait_until(lambda: server.execute(_WATCHING) == [(1,)] or process.poll() is not None)
    return process


def test_the_settings_come_back_after_ctrl_c(server: RealServer, tmp_path: Path) -> None:
    before = snapshot(server)
    process = started(server, tmp_path / "bank.toml")
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert not snapshot(server) - before
    assert not before - snapshot(server)


def test_revert_gives_the_settings_back_after_a_kill(server: RealServer, tmp_path: Path) -> None:
    before = snapshot(server)
    process = started(server, tmp_path / "bank.toml")
    process.kill()
    process.communicate(timeout=120)
    assert server.execute(_RATE) == [("0.1",)]
    shown = pgdyno("status", "--dsn", server.dsn)
    assert "log_transaction_sample_rate" in shown.stdout
    again = pgdyno(*arguments(server, "10%", "1s", tmp_path / "bank.toml"))
    assert again.returncode == 4
    assert re.search(r"another capture \(\S+\) is running, or was killed ", again.stderr)
    assert "HINT:  wait until it has ended; if it was killed: pgdyno revert --dsn" in again.stderr
    assert pgdyno("revert", "--dsn", server.dsn).returncode == 0
    assert not snapshot(server) - before
    assert not before - snapshot(server)


@pytest.mark.parametrize(
    ("statement", "undoing", "message", "detail"),
    [
        (
            "ALTER SYSTEM SET log_min_duration_statement = 0",
            "ALTER SYSTEM SET log_min_duration_statement = '5s'",
            "the server logs statements already, which could not be distinguished",
            "log_min_duration_statement = 0",
        ),
        (
            "ALTER SYSTEM SET log_statement = 'mod'",
            "ALTER SYSTEM RESET log_statement",
            "the server logs statements already, which could not be distinguished",
            "ALTER SYSTEM SET log_statement = none, and reload; or capture at another time",
        ),
        (
            "ALTER SYSTEM SET log_statement = 'ddl'",
            "ALTER SYSTEM RESET log_statement",
            "the server logs statements already, which could not be distinguished",
            "log_statement = ddl",
        ),
        (
            "ALTER ROLE app SET log_min_duration_statement = 250",
            "ALTER ROLE app RESET log_min_duration_statement",
            "the server logs statements already, which could not be distinguished",
            "log_min_duration_statement = 250 (app)",
        ),
        (
            "ALTER SYSTEM SET log_min_messages = 'panic'",
            "ALTER SYSTEM RESET log_min_messages",
            "log_min_messages = panic keeps statements out of the log",
            "ALTER SYSTEM SET log_min_messages = 'log', and reload",
        ),
        (
            "ALTER SYSTEM SET log_destination = 'syslog'",
            "ALTER SYSTEM RESET log_destination",
            "the server does not log to files: log_destination = 'syslog'",
            "add stderr to log_destination, and reload",
        ),
    ],
)
def test_a_log_that_could_not_be_used_is_refused_before_anything_changes(
    server: RealServer, tmp_path: Path, statement: str, undoing: str, message: str, detail: str
) -> None:
    loaded = "SELECT pg_conf_load_time()"

    def reload(sql: str) -> None:
        server.execute(sql)
        at = server.execute(loaded)
        server.execute("SELECT pg_reload_conf()")
        wait_until(lambda: server.execute(loaded) != at)

    reload(statement)
    try:
        before = snapshot(server)
        done = pgdyno(*arguments(server, "1%", "1s", tmp_path / "bank.toml"))
        assert not snapshot(server) - before
    finally:
        reload(undoing)
    assert done.returncode == 4
    assert message in done.stderr
    assert detail in done.stderr


def test_roles_that_cannot_do_it_are_refused_and_told_what_helps(server: RealServer, tmp_path: Path) -> None:
    place = ("--log-sample", "1%", "--for", "1s", str(tmp_path / "bank.toml"))
    before = snapshot(server)
    done = pgdyno("workload", "capture", "--dsn", server.dsn_for("postgres", "bank"), *place)
    assert done.returncode == 4
    assert 'role "postgres" is a superuser' in done.stderr
    done = pgdyno("workload", "capture", "--dsn", server.dsn_for("app", "bank"), *place)
    assert done.returncode == 1
    assert "the role may not see other roles' sessions" in done.stderr
    assert "GRANT pg_read_all_stats TO the role" in done.stderr
    done = pgdyno("workload", "capture", "--dsn", server.reading_dsn("bank"), *place)
    assert done.returncode == 4
    assert "could not read the server's log, \"log/of-" in done.stderr
    assert "the server: permission denied for function pg_stat_file" in done.stderr
    assert "name a superuser's connection by --admin-dsn" in done.stderr
    other = pgdyno("workload", "capture", "--admin-dsn", server.dsn, "--dsn", server.dsn, *place[2:])
    assert "--admin-dsn requires --log-sample" in other.stderr
    assert not snapshot(server) - before


def test_a_role_with_grants_needs_no_superuser(server: RealServer, tmp_path: Path) -> None:
    server.execute("CREATE ROLE sampler LOGIN IN ROLE pg_monitor, pg_read_all_data")
    dsn = server.dsn_for("sampler", "bank")
    place = ("--for", "1s", str(tmp_path / "bank.toml"))
    command = ("workload", "capture", "--dsn", dsn, "--log-sample", "100%", *place)
    for_functions = ("pg_stat_file(text, boolean)", "pg_read_binary_file(text, bigint, bigint, boolean)")
    for function in for_functions:
        server.execute(f"GRANT EXECUTE ON FUNCTION {function} TO sampler", "bank")
    denied = pgdyno(*command)
    assert denied.returncode == 1
    assert "role sampler may not change these settings" in denied.stderr
    assert "GRANT ALTER SYSTEM ON PARAMETER log_transaction_sample_rate" in denied.stderr
    assert "name a superuser's connection by --admin-dsn" in denied.stderr
    names = (
        "log_transaction_sample_rate, log_min_duration_statement, log_parameter_max_length, log_destination"
    )
    for grant in (f"ALTER SYSTEM ON PARAMETER {names}", "EXECUTE ON FUNCTION pg_reload_conf()"):
        server.execute(f"GRANT {grant} TO sampler", "bank")
    before = snapshot(server)
    denied = pgdyno(*command)
    assert denied.returncode == 1
    assert "the role may not see whether a reload would put edits by others into effect" in denied.stderr
    for grant in ("EXECUTE ON FUNCTION pg_show_all_file_settings()", "SELECT ON pg_file_settings"):
        assert grant in denied.stderr
        server.execute(f"GRANT {grant} TO sampler", "bank")
    request = LogSampleRequest(dsn, "bank", 1.0, 0.1)
    workload = capture_sample(server_access(dsn), request, DuringSample(lambda: run_tpcb(server, 20)))
    assert not snapshot(server) - before
    assert block_of(workload) == 20


def test_a_log_that_grows_too_fast_ends_the_capture(server: RealServer) -> None:
    before = snapshot(server)
    request = LogSampleRequest(server.reading_dsn("bank"), "bank", 1.0, 60.0, most_log_bytes=1000)
    with pytest.raises(MeasurementError) as caught:  # pgdyno's own statements are more than that
        capture_sample(server_access(server.dsn), request, Remembered())
    assert caught.value.message == "the server's log grows too fast"
    assert re.match(r"it grew by [\d.]+\W.?B within .* is free; its settings are", caught.value.detail or "")
    assert caught.value.hint == "log a smaller share, --log-sample 10%, or less long, by --for"
    assert not snapshot(server) - before
    assert not before - snapshot(server)


@pytest.mark.parametrize("programs", ["pg18_bin", "pg15_bin"])
def test_standard_error_is_a_log_as_well_and_the_roles_may_come_by_two_addresses(
    request: pytest.FixtureRequest, programs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading = "shared_preload_libraries = 'pg_stat_statements'"
    with running_server(request.getfixturevalue(programs), loading) as server:
        prepare(server)
        server.reading_dsn("bank")
        server.execute("ALTER ROLE reading PASSWORD 'of the test'")
        monkeypatch.setenv("PGPASSWORD", "of the test")
        before, dsn = snapshot(server), server.tcp_dsn_for("reading", "bank")
        workload = sampled(server, lambda: run_tpcb(server, 20), dsn=dsn)
        assert not snapshot(server) - before
        assert not before - snapshot(server)
        assert block_of(workload) == 20


def test_two_servers_are_not_taken_for_one(server: RealServer, pg18_bin: Path) -> None:
    before = snapshot(server)
    with running_server(pg18_bin, "shared_preload_libraries = 'pg_stat_statements'") as other:
        prepare(other)
        with pytest.raises(ConnectionFailedError) as caught:
            sampled(server, dsn=other.reading_dsn("bank"))
    assert caught.value.message.startswith("a different server answers at host=")
    assert "its system identifier is " in (caught.value.detail or "")
    assert "None" not in (caught.value.detail or "")
    assert not snapshot(server) - before
