"""Load the rows of TPC-H's generator tpchgen (PyPI: tpchgen-cli) by COPY.

Its output goes through a pipe, so that the rows are on disk only once. Large tables come in parts, and as
many parts are copied at a time as there are CPUs.
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
from pgdyno.model.experiments.tpch import scale_text

Tell = Callable[[float], None]
"""Is told which share of the work is done."""

_ROWS_PER_PART = 500_000  # arbitrary: a second or two of COPY, so that progress is seen
_CHUNK_BYTES = 1 << 18
_COPY = SQL("COPY {} FROM STDIN WITH (FORMAT csv, HEADER)")
_KEYS_SHARE = 0.35  # of the whole load, measured at scale 1 on two CPUs: keys and indexes after the rows


@dataclass(frozen=True)
class _Part:
    """A part of a table. Parts count from 1."""

    table: str
    number: int
    of: int
    rows: int


@dataclass(frozen=True)
class Tpchgen:
    """tpchgen, where the generators' account can run it; ``wrap`` makes a command line that account's.

    ``environment`` is all that it gets.
    """

    program: Path
    wrap: Wrap
    environment: Mapping[str, str]

    def fill(self, target: Target, filling: Filling, *, jobs: int, tell: Tell) -> None:
        """Load everything into an empty database.

        Raises: GeneratorFailedError with the server's or the program's words, or if rows are missing.
        """
        _run(target, filling.tables)
        self._copy_all(target, filling, jobs, tell)
        statements = [one for one in filling.keys.split(";") if one.strip()]
        for done, statement in enumerate(statements, 1):
            _run(target, statement)
            tell(1 - _KEYS_SHARE * (1 - done / len(statements)))

    def _copy_all(self, target: Target, filling: Filling, jobs: int, tell: Tell) -> None:
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
                    tell((1 - _KEYS_SHARE) * done / whole)
            finally:  # after an error, and when the user has had enough: the others need not go on
                stopped.set()
                pool.shutdown(cancel_futures=True)
        for table, expected in filling.exact.items():
            if copied[table] != expected:
                raise GeneratorFailedError(
                    f"tpchgen made {copied[table]} rows of {table}, not {expected}",
                    hint="pip install 'pgdyno[tpch]' installs the version that pgdyno knows",
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
                process.stdout.close()  # one that is still writing ends
            _require_clean_end(process)
            return rows


def connect(target: Target) -> psycopg.Connection:
    """Open a connection that limits no statement. Raises: psycopg.Error."""
    return psycopg.connect(
        host=target.host, port=target.port, user=target.user, dbname=target.database, autocommit=True
    )


def _parts(filling: Filling) -> Iterator[_Part]:
    """Yield all parts, the largest tables first, so that only short parts come last."""
    for table, rows in sorted(filling.rows.items(), key=lambda item: -item[1]):
        count = max(1, rows // _ROWS_PER_PART)
        yield from (_Part(table, number, count, rows // count) for number in range(1, count + 1))


def _run(target: Target, statements: str) -> None:
    with _named("could not make the tables and keys"), closing(connect(target)) as connection:
        connection.execute(statements.encode())


def _require_clean_end(process: subprocess.Popen[bytes]) -> None:
    assert process.stderr is not None  # noqa: S101 — it was opened as a pipe
    said = process.stderr.read().decode(errors="replace").strip()
    if process.wait() != 0:
        raise GeneratorFailedError(f"tpchgen failed with status {process.returncode}", detail=said or None)


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Raise an error of the server as GeneratorFailedError."""
    try:
        yield
    except psycopg.Error as error:
        raise GeneratorFailedError(what, detail=str(error).strip()) from error
