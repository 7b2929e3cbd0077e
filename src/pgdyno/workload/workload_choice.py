"""Find workloads by name or file, and make one from the user's scripts."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import islice
from pathlib import Path

from pgdyno.base.errors import StorageError, UsageError
from pgdyno.base.text import printable
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.model.experiments.workload import (
    DUMP,
    PREPARED,
    USER_SCRIPTS,
    CapturedLoad,
    DataSet,
    PgbenchScripts,
    ResetPolicy,
    Script,
    Workload,
)
from pgdyno.store.files import open_plain, write_whole
from pgdyno.store.workload_file import read_workload_file
from pgdyno.workload.bundled import load as bundled_workloads
from pgdyno.workload.bundled._pgbench import PGBENCH_DATA
from pgdyno.workload.capture.scripts.commands import Sql, commands_of
from pgdyno.workload.capture.validation import mistakes_of

DUMP_SUFFIX = ".dump"
"""Suffix of a database's copy, which is in the directory of the workload's file."""
_FILE = ".toml"
_LUA = ".lua"
_RESTORED = 5  # size of a database relative to its dump: arbitrary; a dump is compressed, without indexes
_MOST_MISTAKES = 8
_SUFFIX = ".note"
_MOST_BYTES = 1000  # arbitrary: two sentences
_CHARACTERS = 16  # of the checksum: enough to distinguish copies
_IN_LOCALE = "locale"  # marks copies with the original's locale: those of earlier versions lack it
_LOCALE_UNKNOWN = (
    "an earlier version made the copy, in the locale C: if the original has another one, plans and answers "
    "may differ"
)


def find_workloads(
    names: tuple[str, ...],
    scripts: tuple[str, ...] = (),
    scale: int | None = None,
    generator: str | None = None,
    protocol: str = PREPARED,
) -> dict[str, Workload]:
    """Return workloads by name or file, plus one for the user's scripts, all at ``scale`` if it is given.

    ``generator`` issues them instead of pgdyno's driver; ``protocol`` is that of the scripts.
    Raises: UsageError for an unknown name, an unreadable script, or a generator that cannot issue a workload.
    """
    known = bundled_workloads()
    chosen = {}
    for name in names:
        if name.endswith(_FILE):
            captured = captured_workload(Path(name))
            chosen[captured.name] = captured
        elif name in known:
            chosen[name] = known[name]
        else:
            listed = ", ".join(sorted(known))
            raise UsageError(f'no workload "{name}"', hint=f"use {listed}, or the name of a {_FILE} file")
    if scripts:
        parsed = tuple(parse_script(text) for text in scripts)
        for script in parsed:
            _require_sql(script)
        chosen[USER_SCRIPTS] = Workload(
            name=USER_SCRIPTS,
            title=f"pgbench scripts: {', '.join(scripts)}",
            data_set=PGBENCH_DATA,
            reset=ResetPolicy.RESTORE,
            kind=PgbenchScripts(parsed),
            generator="pgbench",
            protocol=protocol,
        )
    if generator is not None:
        chosen = {name: _issued_by(generator, workload) for name, workload in chosen.items()}
    if scale is None:
        return chosen
    if any(workload.captured for workload in chosen.values()):
        raise UsageError("a captured workload has no scale: it runs on a copy of its database")
    return {n: replace(w, data_set=replace(w.data_set, scale=scale)) for n, w in chosen.items()}


def captured_workload(file: Path) -> Workload:
    """Return the workload in a file, with the copy of its database in the same directory.

    Raises: UsageError if either is missing.
    """
    captured, dump = read_workload(file), file.with_suffix(DUMP_SUFFIX)
    try:
        digest, size_bytes = digest_of(dump), dump.stat().st_size
    except OSError as error:
        raise UsageError(
            f'could not read the database copy for "{file}"',
            detail=f"{dump}: {error.strerror}",
            hint=f"make a copy: pgdyno workload copy {file} --dsn …",
        ) from error
    data_set = DataSet(
        name="copy",
        scale=1,
        bytes_per_scale=_RESTORED * size_bytes,
        options={"dump": digest},  # earlier versions restored in the locale C, by the option "of"
        maker=DUMP,
        dump=str(dump.resolve()),
        rows=read_copy_note(dump, digest),
    )
    return Workload(
        name=captured.name,
        title=f"captured from {captured.database} on PostgreSQL {captured.server_version}",
        data_set=data_set,
        reset=ResetPolicy.KEEP if captured.is_read_only else ResetPolicy.RESTORE,
        kind=CapturedLoad(captured),
        session_settings={"search_path": captured.search_path},
        protocol=captured.protocol,
    )


def _issued_by(generator: str, workload: Workload) -> Workload:
    if generator not in workload.generators:
        raise UsageError(
            f'the generator "{generator}" cannot issue {workload.name}',
            hint=f"choose --generator {' or '.join(workload.generators)}",
        )
    return replace(workload, generator=generator)


def parse_script(text: str) -> Script:
    """Parse ``FILE[@WEIGHT]``. Raises: UsageError for an invalid weight or an unreadable file."""
    name, at, weight = text.rpartition("@")
    file, count = (name, weight) if at else (text, "1")
    if not count.isdigit() or int(count) < 1:
        raise UsageError(f'"{text}" has no valid weight', hint="write --script file.sql@3")
    try:
        open_plain(Path(file)).close()
    except OSError as error:
        hint = "write --script path/to/file.sql[@weight]"
        raise UsageError(f'could not read script "{file}"', detail=error.strerror, hint=hint) from error
    return Script(name=Path(file).name, weight=int(count), file=str(Path(file).resolve()))


def _require_sql(script: Script) -> None:
    """Raise UsageError for a script that sends nothing to the server, or is not pgbench's."""
    if script.name.endswith(_LUA):
        raise UsageError(
            f'script "{script.file}" is not a script of pgbench',
            detail="--script takes SQL; of sysbench, only its own scripts run",
            hint="write its statements as SQL, or choose --workload sysbench-read-write",
        )
    with open_plain(Path(script.file or "")) as file:
        content = file.read().decode("latin-1")  # the statements are not read here: any bytes will do
    if not any(isinstance(command, Sql) for command in commands_of(content)):
        raise UsageError(
            f'script "{script.file}" has no SQL statement',
            detail="without one, transactions cost the server nothing, and their rate is meaningless",
            hint="add the statements to measure",
        )


def read_workload(path: Path) -> CapturedWorkload:
    """Return the workload in a file. Raises: UsageError listing its errors."""
    workload = read_workload_file(path)
    if mistakes := list(islice(mistakes_of(workload), _MOST_MISTAKES)):
        raise UsageError(f'"{path}" cannot be replayed', detail="; ".join(mistakes))
    return workload


def digest_of(dump: Path) -> str:
    """Return a checksum that identifies a copy. Raises: OSError."""
    with open_plain(dump) as source:
        return hashlib.file_digest(source, "sha256").hexdigest()[:_CHARACTERS]


def write_copy_note(dump: Path, words: str) -> None:
    """Write the note on a copy's rows. Raises: StorageError."""
    try:
        text = f"{digest_of(dump)} {_IN_LOCALE}\n{printable(words)}\n"
    except OSError as error:
        raise StorageError(f'could not read "{dump}"', detail=error.strerror) from error
    write_whole(_file(dump), text.encode())


def read_copy_note(dump: Path, digest: str) -> str | None:
    """Return the note on a copy's rows; None without a note, or if it is about an earlier copy."""
    try:
        with open_plain(_file(dump)) as source:
            text = source.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return None
    head, _, words = text.partition("\n")
    of, _, mark = head.partition(" ")
    if of != digest or not words.strip():
        return None
    return words.strip() if mark == _IN_LOCALE else f"{words.strip()}; {_LOCALE_UNKNOWN}"


def _file(dump: Path) -> Path:
    return dump.with_name(dump.name + _SUFFIX)
