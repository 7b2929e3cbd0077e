"""Asks a server's own programs how much shared memory it would take, on a scratch data directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.app.start_check import NEEDED_BYTES, scratch_options, taken_over
from pgdyno.model.errors import PgdynoError
from pgdyno.model.facts import Fact, unknown
from pgdyno.model.guc import bytes_of
from pgdyno.model.server import Server
from pgdyno.server.installation import Installation
from pgdyno.server.instance import initialise
from pgdyno.server.workspace import Workspace

_SOURCE = "postgres -C shared_memory_size"


@dataclass(frozen=True)
class ProgramsProbe:
    """Implements the levers' ``Probe`` for one server with its own programs."""

    installation: Installation
    workspace: Workspace
    server: Server

    def shared_memory_bytes(self, settings: Mapping[str, str]) -> Fact[int]:
        """Return what the running server has, and what the programs say that these settings add to it.

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
            return unknown("these programs do not tell", _SOURCE)
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
