"""What root does in a data directory of others: each operation with the way to see that it was misled.

The same operations run with versions of pgdyno that worked by path, to see that the race finds their faults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from bench.race_place import IDENTIFIER, PORT, ROOTS_IDENTIFIER, ROOTS_TEXT, STARTED, Place

from pgdyno.apply.session.server_files import ServerFiles, files_of
from pgdyno.apply.writers.program import PgCtlOptionsWriter, ProgramLinkWriter
from pgdyno.base.ports import Found
from pgdyno.postgres.inspection import server_requirements

Call: TypeAlias = Callable[[int], object]
"""One try, by its number. Returns: what it found; False if it refused without an error."""


@dataclass(frozen=True)
class Operation:
    """An operation and what it would return if it had read root's directory."""

    name: str
    call: Call
    is_secret: Callable[[object], bool]


@dataclass(frozen=True)
class _Rows:
    """Stands for a connection, to a server that answers every query with these rows."""

    rows: list[tuple[object, ...]]
    description: bool = True

    def execute(self, *_: object) -> _Rows:
        return self

    def fetchall(self) -> list[tuple[object, ...]]:
        return self.rows


@contextmanager
def operations(place: Place, own: Path) -> Iterator[tuple[Operation, ...]]:
    """Provide all operations; ``own`` is a directory of root's that they may use."""
    files = ServerFiles(place.data)
    with _appending(place, own) as append:
        yield (
            Operation("read_auto_conf", lambda _: files.read_auto_conf(), _has_text),
            Operation("replace_auto_conf", lambda number: _replace(files, number), _never),
            Operation("system_identifier", lambda _: files.system_identifier(), _has_identifier),
            Operation("has_postmaster", lambda _: str(files.has_postmaster()), lambda found: found == "True"),
            Operation("patroni_file", lambda _: str(files.patroni_file()), lambda found: found != "None"),
            Operation("files_of", lambda _: _found(place, IDENTIFIER), _never),
            Operation("files_of, root's", lambda _: _found(place, ROOTS_IDENTIFIER), bool),
            Operation("pg_hba.conf", append, _never),
            *_program_operations(place),
        )


def _program_operations(place: Place) -> Iterator[Operation]:
    file, link = str(place.data / "pg_ctl.conf"), str(place.data / "current")
    options, links = PgCtlOptionsWriter(None), ProgramLinkWriter(None)
    one, other = Found("-t 60", {}), Found("/usr/lib/a", {})
    yield Operation("pg_ctl.conf value", lambda _: options.value(file), _has_text)
    yield Operation("pg_ctl.conf write", lambda number: options.write(file, f"-t {number}"), _never)
    yield Operation("pg_ctl.conf restore", lambda _: options.restore(file, one), _never)
    yield Operation("link value", lambda _: links.value(link), lambda found: found == f"/{ROOTS_TEXT}")
    yield Operation("link write", lambda number: links.write(link, f"/usr/lib/{number % 9}"), _never)
    yield Operation("link restore", lambda _: links.restore(link, other), _never)


def _replace(files: ServerFiles, number: int) -> object:
    """Replace the file where it holds what is expected: its last content, or root's, which is well known."""
    expected = files.read_auto_conf()
    return files.replace_auto_conf(f"# {number}\n".encode(), expected=expected)


def _found(place: Place, identifier: int) -> object:
    connection = cast("Any", _Rows([(str(identifier), PORT, float(STARTED))]))
    return files_of(place.data, connection) is not None


@contextmanager
def _appending(place: Place, own: Path) -> Iterator[Call]:
    """Provide what appends lines to the pg_hba.conf of a scratch server whose data directory this is."""
    nothing = cast("Any", _Rows([]))
    ask = cast("Any", server_requirements._unsupported)  # noqa: SLF001 — what root does while the server runs
    try:
        from pgdyno.postgres.connection.network_access import login_rules
    except ImportError:  # a version that appends by path
        yield lambda _: ask(nothing, ["trust"], place.data / "pg_hba.conf")
    else:
        with login_rules(own) as rules:
            yield lambda _: ask(nothing, ["trust"], rules)


def _has_text(found: object) -> bool:
    return ROOTS_TEXT in (found.decode() if isinstance(found, bytes) else str(found))


def _has_identifier(found: object) -> bool:
    return found == str(ROOTS_IDENTIFIER)


def _never(_: object) -> bool:
    return False
