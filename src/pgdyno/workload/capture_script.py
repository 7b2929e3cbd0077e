"""Capture a workload from pgbench scripts; the server checks whether it can prepare their statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import UsageError
from pgdyno.base.ports import Progress
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.postgres.connection.connection import Connection, connect
from pgdyno.postgres.inspection.pgbench_scale import read_pgbench_scale
from pgdyno.store.files import open_plain
from pgdyno.workload.capture.protocol import SCRIPT_PROTOCOL
from pgdyno.workload.capture.scripts.scripted import ReadScript, ScriptedLoad, read_script
from pgdyno.workload.schema import read_schema, require_parsing, types_of
from pgdyno.workload.workload_choice import parse_script

_MOST_BYTES = 1 << 20  # arbitrary, far above any script written by hand


@dataclass(frozen=True)
class ScriptCaptureRequest:
    """A database, a name for the workload, and scripts, each written FILE[@WEIGHT]."""

    dsn: str | None
    name: str
    scripts: Sequence[str]


def capture_script(request: ScriptCaptureRequest, progress: Progress) -> CapturedWorkload:
    """Return the workload of scripts, without executing them.

    Raises: ConnectionFailedError, ServerError; UsageError for a script that cannot become a workload.
    """
    scripts = [parse_script(one) for one in request.scripts]
    texts = [_text(Path(one.file or one.name)) for one in scripts]
    progress.step(f"reading {', '.join(one.name for one in scripts)}")
    with closing(connect(request.dsn)) as connection:
        require_parsing(connection)
        schema = read_schema(connection, {})
        load = ScriptedLoad(schema.writing)
        variables = _variables(connection, texts)
        for script, text in zip(scripts, texts, strict=True):
            statements = read_script(script.name, text, variables)
            _add(load, ReadScript(script.name, float(script.weight), statements), connection)
    return CapturedWorkload(
        name=request.name,
        server_version=schema.server_version,
        cluster=schema.cluster,
        database=schema.database,
        search_path=schema.search_path,
        seconds=0.0,
        clients=1,
        statements=load.counted(),
        transactions=tuple(load.transactions),
        notes=(SCRIPT_PROTOCOL,),
        is_read_only=load.is_read_only,
        counted=("calls",),
    )


def _text(path: Path) -> str:
    try:
        with open_plain(path) as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f'could not read script "{path}"', detail=error.strerror) from error
    if len(content) > _MOST_BYTES:
        raise UsageError(f'"{path}" is too large', detail=f"the limit is {_MOST_BYTES} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f'"{path}", line {line}: the script is not in UTF-8',
            detail=f"byte 0x{content[error.start]:02x} begins no character",
            hint="convert it: iconv -f LATIN1 -t UTF-8 FILE",
        ) from error


def _variables(connection: Connection, texts: Sequence[str]) -> Mapping[str, int]:
    """Return the variables set by pgbench itself, if scripts use them."""
    if not any(":scale" in text for text in texts):
        return {}
    scale = read_pgbench_scale(connection)
    if scale is None:
        raise UsageError(
            "a script uses :scale, but the database has no table pgbench_branches with it",
            hint="replace it by a number, or begin the script with \\set scale N",
        )
    return {"scale": scale}


def _add(load: ScriptedLoad, script: ReadScript, connection: Connection) -> None:
    """Add a script. Raises: UsageError for a statement that the server cannot prepare."""
    load.add(script)
    prepared = {one.sql for one in load.statements if one.is_prepared}
    texts = {place: one.sql for place, one in enumerate(script.statements) if one.sql in prepared}
    for place, why in types_of(connection, texts).items():
        if isinstance(why, str):
            raise UsageError(
                f'"{script.file}", line {script.statements[place].line}: the server cannot prepare the '
                "statement",
                detail=why,
            )
