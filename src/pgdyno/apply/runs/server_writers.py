"""Writers for a server, by kind of change: they use a connection while it runs, otherwise its files."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.apply.session.server_files import ServerFiles
from pgdyno.apply.session.session import Session
from pgdyno.apply.writers.alter_system import AlterSystemWriter
from pgdyno.apply.writers.auto_conf_file import AutoConfFileWriter
from pgdyno.apply.writers.program import ProgramWriter, program_writers

RunningWriters = Mapping[str, AlterSystemWriter | ProgramWriter]
StoppedWriters = Mapping[str, AutoConfFileWriter | ProgramWriter]


def running_writers(session: Session, files: ServerFiles | None = None) -> RunningWriters:
    """Return the writers for a running server. ``files``: its data directory; None: not accessible."""
    writer = AlterSystemWriter(session, files)
    return {writer.kind: writer, **program_writers(session.connect)}


def stopped_writers(files: ServerFiles) -> StoppedWriters:
    """Return the writers for a stopped server."""
    writer = AutoConfFileWriter(files)
    return {writer.kind: writer, **program_writers(None)}
