"""The bank of pgbench: transfers in a server's database, and workloads that are captured there."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, as_unprivileged, wait_until

from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.store.workload_file import read_workload_file

SETTINGS = (
    "shared_preload_libraries = 'pg_stat_statements'\npg_stat_statements.track_planning = on\n"
    "track_io_timing = off\n"
)
_WORKING = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench' AND datname = 'bank'"
_TRANSFER = """\
\\set aid random(1, 100000)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
SELECT pg_sleep(0.002);
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, :delta, now());
END;
"""
READING = """\
\\set aid random(1, 100000)
BEGIN;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
SELECT pg_sleep(0.002);
ROLLBACK;
"""
WRITING = """\
\\set aid random(1, 100000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, 1, now());
COMMIT;
"""
SINGLE = """\
\\set aid random(1, 100000)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
"""


def initialise(server: RealServer) -> None:
    """Make pgbench's tables in the bank."""
    place = (f"--host={server.socket_directory}", f"--port={server.port}", "--username=postgres", "bank")
    server.run("pgbench", "--initialize", "--quiet", "--scale=1", *place)


@contextmanager
def transfers(
    server: RealServer,
    protocol: str = "prepared",
    scripts: Sequence[str] = (_TRANSFER,),
    clients: int = 2,
) -> Iterator[None]:
    """Clients of pgbench at work with scripts, for as long as the block lasts."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        files = [Path(directory, f"{number}.sql") for number, _ in enumerate(scripts)]
        for file, text in zip(files, scripts, strict=True):
            file.write_text(text)
        argv = [
            *as_unprivileged(),
            str(server.client_directory / "pgbench"),
            *(f"--host={server.socket_directory}", f"--port={server.port}", "--username=postgres"),
            *(
                f"--client={clients}",
                "--time=250",
                f"--protocol={protocol}",
                "--no-vacuum",
                *(f"--file={file}" for file in files),
                "bank",
            ),
        ]
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: server.execute(_WORKING) == [(clients,)] or process.poll() is not None)
            assert process.poll() is None, "pgbench has failed"
            yield
        finally:
            process.terminate()
            process.wait()


def capture(server: RealServer, database: str, file: Path, seconds: int = 6) -> CapturedWorkload:
    """Capture the workload of a database, and read its file."""
    dsn = server.reading_dsn(database)
    done = pgdyno("workload", "capture", "--dsn", dsn, "--for", f"{seconds}s", str(file))
    assert done.returncode == 0, done.stderr
    return read_workload_file(file)


@contextmanager
def repeating(server: RealServer, statement: str, database: str = "bank") -> Iterator[None]:
    """Run a statement again and again, for as long as the block lasts."""
    is_over = Event()

    def work() -> None:
        while not is_over.wait(0.2):
            server.execute(statement, database)

    thread = Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
