"""Sessions that pause between transactions: captured from logs and by watching, replayed as they were."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from tests.fix_home import pgdyno
from tests.fix_logging import set_logging
from tests.fix_servers import RealServer, as_unprivileged, running_server, wait_until

from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.store.workload_file import read_workload_file

pytestmark = pytest.mark.server

_SETTINGS = """
shared_preload_libraries = 'pg_stat_statements'
logging_collector = on
log_directory = 'log'
log_filename = 'of-%H%M%S'
log_connections = on
log_line_prefix = '%m [%p] %d '
"""
_REPLAYED_S = 2
_SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'"


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    with running_server(pg18_bin, _SETTINGS) as started:
        started.execute("CREATE DATABASE bank")
        started.execute("CREATE EXTENSION pg_stat_statements", "bank")
        started.execute("CREATE TABLE t (id integer PRIMARY KEY, worth integer)", "bank")
        started.execute("INSERT INTO t SELECT n, 0 FROM generate_series(1, 1000) n; ANALYZE t", "bank")
        started.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
        started.execute("CREATE DATABASE bank_copy TEMPLATE bank")
        yield started


@contextmanager
def pausing_sessions(
    server: RealServer, clients: int, pause_ms: int, *until: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Sessions of pgbench that sleep before each transaction, for as long as the block lasts or ``until``."""
    update = "UPDATE t SET worth = worth + 1 WHERE id = :id;"
    text = f"\\set id random(1, 1000)\n\\sleep {pause_ms} ms\n{update}\n"
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(text)
        script.flush()
        Path(script.name).chmod(0o644)
        place = (f"--host={server.socket_directory}", f"--port={server.port}", "--username=postgres")
        load = (f"--client={clients}", *(until or ("--time=200",)), "--no-vacuum", "--protocol=prepared")
        argv = [*as_unprivileged(), str(server.bin_directory / "pgbench"), *place, *load]
        process = subprocess.Popen(
            [*argv, f"--file={script.name}", "bank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            wait_until(lambda: server.execute(_SESSIONS) == [(clients,)] or process.poll() is not None)
            yield process
        finally:
            process.terminate()
            process.wait()


def replayed(server: RealServer, file: Path, home: Path, *options: str) -> dict[str, Any]:
    dsn = server.dsn_for("app", "bank_copy")
    place = ("--dsn", dsn, "--allow-load", "--for", f"{_REPLAYED_S}s", "--json")
    done = pgdyno("workload", "replay", str(file), *place, *options, PGDYNO_HOME=str(home))
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)["replay"]
    return printed


@pytest.fixture(scope="module")
def logged(server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CapturedWorkload]:
    """The workload of four sessions that pause for a quarter of a second, from a log."""
    before = set_logging(server, "stderr", log_min_duration_statement="0")
    with pausing_sessions(server, 4, 250, "--transactions=16") as process:
        assert process.wait(100) == 0
    with_load = set_logging(server, "stderr", log_min_duration_statement="-1")
    logs = [("--log", str(path)) for path in with_load if path not in before]
    file = tmp_path_factory.mktemp("logged") / "bank.toml"
    arguments = ("--dsn", server.reading_dsn("bank"), *chain.from_iterable(logs), str(file))
    done = pgdyno("workload", "capture", *arguments)
    assert done.returncode == 0, done.stderr
    return file, read_workload_file(file)


def test_a_log_tells_the_pauses_and_how_many_sessions_had_them(logged: tuple[Path, CapturedWorkload]) -> None:
    _, workload = logged
    assert min(workload.pauses_s) >= 0.249  # the log has milliseconds
    assert workload.sessions in {2, 3, 4, 5}  # pgbench's begin and end are in it, and so is a busy machine
    assert workload.transactions_per_s is not None
    assert workload.transactions_per_s * fmean(workload.pauses_s) <= 5


def test_a_replay_pauses_as_its_original_did(
    server: RealServer, logged: tuple[Path, CapturedWorkload], home: Path
) -> None:
    file, workload = logged
    found = replayed(server, file, home, "--pauses")
    assert workload.sessions is not None
    most = workload.sessions * (_REPLAYED_S / min(workload.pauses_s) + 1)  # no transaction takes time
    assert 0 < found["run"]["transactions"] <= most
    assert found["run"]["failures"] == []
    assert found["original_tps"] == pytest.approx(workload.transactions_per_s)
    alone = replayed(server, file, home, "--pauses", "--clients", "1", "--pace", "2")
    assert 0 < alone["run"]["transactions"] <= _REPLAYED_S / (min(workload.pauses_s) / 2) + 1
    at_once = replayed(server, file, home)
    assert at_once["run"]["transactions"] > most


def test_pauses_and_a_rate_are_refused(server: RealServer, logged: tuple[Path, CapturedWorkload]) -> None:
    place = ("--dsn", server.dsn_for("app", "bank_copy"), "--allow-load")
    done = pgdyno("workload", "replay", str(logged[0]), *place, "--pauses", "--rate", "5")
    assert done.returncode == 2
    assert "--pauses and --rate are mutually exclusive" in done.stderr


def test_watching_sees_pauses_end(server: RealServer, tmp_path: Path) -> None:
    file = tmp_path / "bank.toml"
    with pausing_sessions(server, clients=20, pause_ms=20):
        done = pgdyno("workload", "capture", "--dsn", server.reading_dsn("bank"), "--for", "6s", str(file))
    assert done.returncode == 0, done.stderr
    workload = read_workload_file(file)
    assert len(workload.pauses_s) == 20, workload.notes
    # The mean pause is of idle sessions and counted transactions (Little's law), not of observed pauses: on
    # a busy machine it may be shorter than 20 ms. No more sessions can be idle than there are.
    assert workload.transactions_per_s is not None
    assert 0 < workload.transactions_per_s * fmean(workload.pauses_s) <= 20.01
    shown = pgdyno("workload", "inspect", str(file)).stdout
    assert "replay --pauses reproduces the pauses" in shown


def test_too_few_pauses_are_said_to_be(server: RealServer, tmp_path: Path) -> None:
    file = tmp_path / "bank.toml"
    with pausing_sessions(server, clients=1, pause_ms=300):
        done = pgdyno("workload", "capture", "--dsn", server.reading_dsn("bank"), "--for", "2s", str(file))
    assert done.returncode == 0, done.stderr
    workload = read_workload_file(file)
    assert workload.pauses_s == ()
    assert any(
        note.startswith("the pauses of sessions between transactions are unknown") for note in workload.notes
    )
