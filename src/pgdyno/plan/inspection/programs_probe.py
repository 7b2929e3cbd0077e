"""Ask a server's programs for its shared memory size, and its files for their compressibility."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pgdyno.base.errors import PgdynoError
from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.host.files.file_identity import acting_as
from pgdyno.host.page_compression import PageCompression
from pgdyno.host.probing.compression_probe import probe_page_compression
from pgdyno.plan.inspection.start_check import NEEDED_BYTES, scratch_options, taken_over
from pgdyno.postgres.guc import bytes_of
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import initialise
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.postgres.server import Server

_SOURCE = "postgres -C shared_memory_size"


def page_compression(workspace: Workspace, server: Server) -> Fact[PageCompression]:
    """Compress sampled pages of a server's data; unknown with the reason if they are out of reach."""
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


@dataclass(frozen=True)
class ProgramsProbe:
    """Implements the levers' ``Probe`` for one server with its own programs."""

    installation: Installation
    workspace: Workspace
    server: Server
    pages: Fact[PageCompression] | None = None  # of a scratch server, which is gone when plans are made

    @cached_property
    def _pages(self) -> Fact[PageCompression]:
        return page_compression(self.workspace, self.server) if self.pages is None else self.pages

    def page_compression(self) -> Fact[PageCompression]:
        """Return how well LZ4 compresses pages of the server's data; measured once."""
        return self._pages

    def shared_memory_bytes(self, settings: Mapping[str, str]) -> Fact[int]:
        """Return the server's shared memory plus the increase that these settings cause.

        Libraries of the real server, which take shared memory too, are not loaded here: what they take is in
        the figure of the running server.
        """
        told = self.server.settings.get("shared_memory_size")
        if told is None:
            return unknown(f"PostgreSQL {self.server.version} does not tell", _SOURCE)
        found = taken_over(self.server)
        try:
            now, then = self._compute(found, {**found, **settings})
        except PgdynoError as error:
            return unknown(error.message, _SOURCE)
        if now is None or then is None:
            return unknown("these programs do not report it", _SOURCE)
        return Fact(bytes_of(told.setting, told.unit) + then - now, _SOURCE)

    def _compute(self, *configurations: Mapping[str, str]) -> list[int | None]:
        self.workspace.require_free(NEEDED_BYTES, "asking the server's programs")
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
