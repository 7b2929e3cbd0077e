"""Find the programs that a running server was started from, and ask them."""

from __future__ import annotations

from pathlib import Path

from pgdyno.app.inspection.inspect import InspectedServer
from pgdyno.app.inspection.programs_probe import ProgramsProbe, probe_in
from pgdyno.model.facts import Fact, Unknown
from pgdyno.server.process.processes import program_of


def probe_of(inspected: InspectedServer) -> ProgramsProbe | None:
    """Return a probe of an inspected server's own programs; None if they are not accessible."""
    programs = programs_of(inspected.postmaster_pid)
    return None if isinstance(programs, Unknown) else probe_in(programs, inspected.server)


def programs_of(postmaster_pid: Fact[int], root: Path = Path("/")) -> Path | Unknown:
    """Return where the running postmaster's program lies, or why it cannot be run from here.

    In a container's file system the same path leads elsewhere, and its programs need that system's libraries.
    """
    if isinstance(postmaster_pid.value, Unknown):
        return Unknown(f"it is not proven to run on this host: {postmaster_pid.value.reason}")
    process = root / "proc" / str(postmaster_pid.value)
    try:
        program = program_of(process)
        is_here = (process / "ns/mnt").readlink() == (root / "proc/self/ns/mnt").readlink()
        if not is_here and not (program.exists() and program.samefile(process / "exe")):
            return Unknown(
                f"process {postmaster_pid.value} runs in a container, where {program} is another file"
            )
    except OSError as error:
        return Unknown(f"could not see which program process {postmaster_pid.value} runs: {error.strerror}")
    return program.parent
