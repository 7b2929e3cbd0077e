"""Load rows from the TPC-H generator tpchgen (PyPI: tpchgen-cli) by COPY.

Its output is piped to COPY, so the rows are written to disk only once. Large tables are generated in parts,
and one part per CPU is copied at a time.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import psycopg
from psycopg.sql import SQL, Identifier

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.load._contract import Target
from pgdyno.load.process import Wrap
from pgdyno.load.tpch_tables import Filling
from pgdyno.model.experiments.step_record import scale_text

ReportShare = Callable[[float], None]
"""Gets the completed share of the work."""

_ROWS_PER_PART = 500_000  # arbitrary: one or two seconds of COPY, for visible progress
_CHUNK_BYTES = 1 << 18
_COPY = SQL("COPY {} FROM STDIN WITH (FORMAT csv, HEADER)")
_KEYS_SHARE = 0.35  # of the whole load, measured at scale 1 on two CPUs: keys and indexes after the rows


@dataclass(frozen=True)
class _Part:
    """A part of a table, numbered from 1."""

    table: str
    number: int
    of: int
    rows: int


@dataclass(frozen=True)
class Tpchgen:
    """tpchgen at a path that the generators' account can run; ``wrap`` makes a command run as that account.

    ``environment`` is its complete environment.
    """

    program: Path
    wrap: Wrap
    environment: Mapping[str, str]

    def fill(self, target: Target, filling: Filling, *, jobs: int, report: ReportShare) -> None:
        """Load everything into an empty database; ``report`` gets the completed share.

        Raises: GeneratorFailedError with the server's or the program's message, or if rows are missing.
        """
        _run(target, filling.tables)
        self._copy_all(target, filling, jobs, report)
        statements = [one for one in filling.keys.split(";") if one.strip()]
        for done, statement in enumerate(statements, 1):
            _run(target, statement)
            report(1 - _KEYS_SHARE * (1 - done / len(statements)))

    def _copy_all(self, target: Target, filling: Filling, jobs: int, report: ReportShare) -> None:
        whole, done, copied, stopped = sum(filling.rows.values()), 0, Counter[str](), Event()
        with ThreadPoolExecutor(jobs) as pool:
            running: dict[Future[int], _Part] = {
                pool.submit(self._copy, target, filling, part, stopped): part for part in _parts(filling)
            }
            try:
                for finished in as_completed(running):
                    part = running[finished]
                    copied[part.table] += finished.result()
                    done += part.rows
                    report((1 - _KEYS_SHARE) * done / whole)
            finally:  # after an error or an interrupt, the other parts stop
                stopped.set()
                pool.shutdown(cancel_futures=True)
        for table, expected in filling.exact.items():
            if copied[table] != expected:
                raise GeneratorFailedError(
                    f"tpchgen made {copied[table]} rows of {table}, not {expected}",
                    hint="pip install 'pgdyno[tpch]' installs the supported version",
                )

    def _copy(self, target: Target, filling: Filling, part: _Part, stopped: Event) -> int:
        """Copy one part and return its number of rows."""
        argv = [
            *(str(self.program), "csv", "--stdout", "--quiet", "--num-threads", "1"),
            *("--scale-factor", scale_text(filling.thousandths), "--tables", part.table),
            *(("--parts", str(part.of), "--part", str(part.number)) if part.of > 1 else ()),
        ]
        with (
            _named(f"could not load {part.table}"),
            closing(connect(target)) as connection,
            subprocess.Popen(
                self.wrap(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(self.environment),
                start_new_session=True,
            ) as process,
        ):
            assert process.stdout is not None  # noqa: S101 — it was opened as a pipe
            try:
                with connection.cursor() as cursor:
                    with cursor.copy(_COPY.format(Identifier(part.table))) as copy:
                        while not stopped.is_set() and (chunk := process.stdout.read(_CHUNK_BYTES)):
                            copy.write(chunk)
                    rows = cursor.rowcount
            finally:
                process.stdout.close()  # ends the program if it is still writing
            _require_clean_end(process)
            return rows


def connect(target: Target) -> psycopg.Connection:
    """Open a connection without limits on statements. Raises: psycopg.Error."""
    return psycopg.connect(
        host=target.host,
        port=target.port,
        user=target.user,
        dbname=target.database,
        client_encoding="UTF8",
        autocommit=True,
    )


def _parts(filling: Filling) -> Iterator[_Part]:
    """Yield all parts, the largest tables first, so that the last parts are short."""
    for table, rows in sorted(filling.rows.items(), key=lambda item: -item[1]):
        count = max(1, rows // _ROWS_PER_PART)
        yield from (_Part(table, number, count, rows // count) for number in range(1, count + 1))


def _run(target: Target, statements: str) -> None:
    with _named("could not create the tables and keys"), closing(connect(target)) as connection:
        connection.execute(statements.encode())


def _require_clean_end(process: subprocess.Popen[bytes]) -> None:
    assert process.stderr is not None  # noqa: S101 — it was opened as a pipe
    errors = process.stderr.read().decode(errors="replace").strip()
    if process.wait() != 0:
        raise GeneratorFailedError(f"tpchgen failed with status {process.returncode}", detail=errors or None)


@contextmanager
def _named(failure: str) -> Iterator[None]:
    """Raise a server error as GeneratorFailedError with this message."""
    try:
        yield
    except psycopg.Error as error:
        raise GeneratorFailedError(failure, detail=str(error).strip()) from error
