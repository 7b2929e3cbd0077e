"""Find the programs that a running server was started from, and ask them.

They lie wherever the server's user has put them. Root runs them as the servers' account only if nobody but
root can exchange them, and otherwise as that user, who gains nothing by it.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.trusted_files import weakness
from pgdyno.plan.inspection.inspect import InspectedServer
from pgdyno.plan.inspection.programs_probe import ProgramsProbe
from pgdyno.plan.inspection.start_check import StartCheck
from pgdyno.postgres.process.account import Account, account_of
from pgdyno.postgres.process.installation import Installation, installation_at
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.processes import program_of
from pgdyno.postgres.process.workspace import Workspace

_RUN_HERE = ("postgres", "initdb")  # of a server's programs, by the probe and by the start check


@dataclass(frozen=True)
class OwnPrograms:
    """A running server's programs, and a workspace whose account may run them."""

    installation: Installation
    workspace: Workspace


def probe_of(inspected: InspectedServer) -> ProgramsProbe | None:
    """Return a probe of an inspected server's own programs; None if they are not accessible."""
    own = own_programs(inspected.postmaster_pid)
    return (
        None if isinstance(own, Unknown) else ProgramsProbe(own.installation, own.workspace, inspected.server)
    )


def start_check_of(inspected: InspectedServer) -> StartCheck | None:
    """Return a check by an inspected server's own programs; None if they are not accessible."""
    own = own_programs(inspected.postmaster_pid)
    return None if isinstance(own, Unknown) else StartCheck(own.installation, own.workspace)


def own_programs(postmaster_pid: Fact[int]) -> OwnPrograms | Unknown:
    """Return a running server's programs and who runs them here, or why nobody does.

    Raises: ServerError if that user cannot run them.
    """
    place, programs = workspace(), programs_of(postmaster_pid)
    if isinstance(programs, Unknown):
        return programs
    if place.account.is_other and not only_root_changes(programs):
        user = user_of(postmaster_pid)
        if isinstance(user, Unknown):
            return user
        place = replace(place, account=user)
    return OwnPrograms(installation_at(programs, place.account), place)


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


def user_of(postmaster_pid: Fact[int], root: Path = Path("/")) -> Account | Unknown:
    """Return the user that a postmaster runs as: the directory that a server names may be another's."""
    pid = postmaster_pid.or_none()
    try:
        uid = (root / "proc" / str(pid)).stat().st_uid
        user = account_of(uid)
    except OSError as error:
        return Unknown(f"could not see whose process {pid} is: {error.strerror}")
    except KeyError:
        return Unknown(f"process {pid} runs as user {uid}, who has no name here")
    return user if user.is_other else Unknown(f"process {pid} runs as {user.name}, as PostgreSQL never does")


def only_root_changes(programs: Path) -> bool:
    """Whether nobody but root, who asks, can exchange the programs of a directory."""
    try:
        return all(weakness(programs / name) is None for name in _RUN_HERE) and all(
            stat.S_ISREG((programs / name).stat().st_mode) for name in _RUN_HERE
        )
    except OSError:
        return False
