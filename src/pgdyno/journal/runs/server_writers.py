"""What writes on a server, by kind of change: over a connection while it runs, else in its files."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.journal.session.server_files import ServerFiles
from pgdyno.journal.session.session import Session
from pgdyno.journal.writers.alter_system import AlterSystemWriter
from pgdyno.journal.writers.auto_conf_file import AutoConfFileWriter
from pgdyno.journal.writers.program import ProgramWriter, program_writers

RunningWriters = Mapping[str, AlterSystemWriter | ProgramWriter]
StoppedWriters = Mapping[str, AutoConfFileWriter | ProgramWriter]


def running_writers(session: Session, files: ServerFiles | None = None) -> RunningWriters:
    """Return what writes on a running server; ``files`` is its data directory where it can be reached."""
    writer = AlterSystemWriter(session, files)
    return {writer.kind: writer, **program_writers(session.connect)}


def stopped_writers(files: ServerFiles) -> StoppedWriters:
    """Return what writes on a server that is down."""
    writer = AutoConfFileWriter(files)
    return {writer.kind: writer, **program_writers(None)}
