"""Facts from the programs and files of a running server: its shared memory size, and page compressibility.

The programs are wherever the server's user put them. Root runs them as the scratch servers' account only if
no one but root can replace them; otherwise as that user, which gives the user no additional privileges.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pgdyno.base.errors import PgdynoError
from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.host.files.trusted_files import weakness
from pgdyno.host.files.walk import acting_as
from pgdyno.host.probes import PageCompression
from pgdyno.host.probing.compression_probe import probe_page_compression
from pgdyno.plan.inspection.inspect import InspectedServer
from pgdyno.plan.inspection.start_check import NEEDED_BYTES, StartCheck, scratch_options, taken_over
from pgdyno.postgres.guc import bytes_of
from pgdyno.postgres.process.account import Account, account_of
from pgdyno.postgres.process.installation import Installation, installation_at
from pgdyno.postgres.process.instance import initialise
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.processes import program_of
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.postgres.server import Server

_RUN_HERE = ("postgres", "initdb")  # the programs that the probe and the start check run
_SOURCE = "postgres -C shared_memory_size"


@dataclass(frozen=True)
class ProgramsProbe:
    """Implements the levers' ``Probe`` with the server's own programs."""

    installation: Installation
    workspace: Workspace
    server: Server
    pages: Fact[PageCompression] | None = None  # for a scratch server, which is gone when plans are made

    @cached_property
    def _pages(self) -> Fact[PageCompression]:
        return page_compression(self.workspace, self.server) if self.pages is None else self.pages

    def page_compression(self) -> Fact[PageCompression]:
        """Return LZ4's compression of pages of the server's data; measured once."""
        return self._pages

    def shared_memory_bytes(self, settings: Mapping[str, str]) -> Fact[int]:
        """Return the server's shared memory plus the increase caused by these settings.

        Preloaded libraries of the real server use shared memory too. They are not loaded here, but the
        running server's size includes them.
        """
        present = self.server.settings.get("shared_memory_size")
        if present is None:
            return unknown(f"PostgreSQL {self.server.version} does not report it", _SOURCE)
        found = taken_over(self.server)
        try:
            now, then = self._compute(found, {**found, **settings})
        except PgdynoError as error:
            return unknown(error.message, _SOURCE)
        if now is None or then is None:
            return unknown("these programs do not report it", _SOURCE)
        return Fact(bytes_of(present.setting, present.unit) + then - now, _SOURCE)

    def _compute(self, *configurations: Mapping[str, str]) -> list[int | None]:
        self.workspace.require_free(NEEDED_BYTES, "running the server's programs")
        with self.workspace.scratch() as scratch:
            data_directory = scratch / "data"
            initialise(
                self.installation, self.workspace.account, data_directory, scratch_options(self.server)
            )
            return [
                self.installation.shared_memory_bytes(
                    self.workspace.account, data_directory, {**settings, "huge_pages": "off"}
                )
                for settings in configurations
            ]


@dataclass(frozen=True)
class OwnPrograms:
    """A running server's programs, and a workspace with an account that may run them."""

    installation: Installation
    workspace: Workspace


def probe_of(inspected: InspectedServer) -> ProgramsProbe | None:
    """Return a probe of an inspected server's own programs; None if they are not accessible."""
    own = own_programs(inspected.postmaster_pid)
    return (
        None if isinstance(own, Unknown) else ProgramsProbe(own.installation, own.workspace, inspected.server)
    )


def start_check_of(inspected: InspectedServer) -> StartCheck | None:
    """Return a start check with an inspected server's own programs; None if they are not accessible."""
    own = own_programs(inspected.postmaster_pid)
    return None if isinstance(own, Unknown) else StartCheck(own.installation, own.workspace)


def own_programs(postmaster_pid: Fact[int]) -> OwnPrograms | Unknown:
    """Return a running server's programs and the account to run them, or why they are not accessible.

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
    """Return the directory of the running postmaster's program, or why it cannot be run from here.

    In a container's file system the same path is a different file, and its programs need that file system's
    libraries.
    """
    if isinstance(postmaster_pid.value, Unknown):
        return Unknown(f"it is not proven to run on this host: {postmaster_pid.value.reason}")
    process = root / "proc" / str(postmaster_pid.value)
    try:
        program = program_of(process)
        is_here = (process / "ns/mnt").readlink() == (root / "proc/self/ns/mnt").readlink()
        if not is_here and not (program.exists() and program.samefile(process / "exe")):
            return Unknown(
                f"process {postmaster_pid.value} runs in a container, where {program} is a different file"
            )
    except OSError as error:
        return Unknown(f"could not read the program of process {postmaster_pid.value}: {error.strerror}")
    return program.parent


def user_of(postmaster_pid: Fact[int], root: Path = Path("/")) -> Account | Unknown:
    """Return the user that a postmaster runs as; the owner of its reported data directory may differ."""
    pid = postmaster_pid.or_none()
    try:
        uid = (root / "proc" / str(pid)).stat().st_uid
        user = account_of(uid)
    except OSError as error:
        return Unknown(f"could not read the user of process {pid}: {error.strerror}")
    except KeyError:
        return Unknown(f"process {pid} runs as user {uid}, which has no name here")
    return user if user.is_other else Unknown(f"process {pid} runs as {user.name}, which PostgreSQL refuses")


def only_root_changes(programs: Path) -> bool:
    """Whether no one but root, the calling user, can replace the programs of a directory."""
    try:
        return all(weakness(programs / name) is None for name in _RUN_HERE) and all(
            stat.S_ISREG((programs / name).stat().st_mode) for name in _RUN_HERE
        )
    except OSError:
        return False


def page_compression(workspace: Workspace, server: Server) -> Fact[PageCompression]:
    """Compress sampled pages of a server's data; unknown, with the reason, if they are not accessible."""
    directory = server.data_directory
    if isinstance(directory.value, Unknown):
        return Fact(directory.value, directory.source)
    place, block_bytes = Path(directory.value), int(server.settings["block_size"].setting)
    try:
        owner = place.stat()
    except OSError as error:
        return unknown(f"{os.strerror(error.errno or 0).lower()} ({place})", directory.source)
    with workspace.scratch() as scratch:
        identity = acting_as(owner.st_uid, owner.st_gid)
        return probe_page_compression(place, scratch, block_bytes, identity)
