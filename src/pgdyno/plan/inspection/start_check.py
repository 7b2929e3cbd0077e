"""Test with a scratch data directory whether a server would start with planned settings.

The same programs check the values (``postgres -C``) and then start with them. The real server's numeric,
Boolean and enum settings are included, because limits depend on each other (``max_connections`` and reserved
connections, ``max_wal_senders`` and ``wal_level``). String settings are excluded: they name files, addresses
and libraries of the real server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pgdyno.base.errors import ServerStartError
from pgdyno.postgres.connection.libpq_environment import libpq_variables_unset
from pgdyno.postgres.guc import Guc, bytes_of
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.postgres.server import Server

_PORT = 5432  # for a socket in a private directory: it cannot collide
NEEDED_BYTES = 256 << 20  # an empty cluster with its first WAL segments
_NOT_TAKEN_OVER = ("port", "ssl", "log", "archive", "unix_socket", "bonjour", "huge_page_size", "recovery")
"""Prefixes of settings that concern the real server's environment, not its ability to start."""


@dataclass(frozen=True)
class StartCheck:
    """Starts scratch servers from one installation."""

    installation: Installation
    workspace: Workspace

    def __call__(self, server: Server, planned: Mapping[str, str]) -> None:
        """Start a scratch server with the settings that ``server`` would have, and stop it.

        Raises: SettingError with the server's message on a value; ServerStartError with its last log lines.
        """
        with self.started(server, planned):
            pass

    @contextmanager
    def started(self, server: Server, planned: Mapping[str, str]) -> Iterator[Instance]:
        """Provide such a scratch server; it is deleted at the end.

        Raises: SettingError with the server's message on a value; ServerStartError with its last log lines.
        """
        self.workspace.remove_orphans()
        self.workspace.require_free(NEEDED_BYTES, "test-starting a server")
        settings = {**taken_over(server), **planned}
        if _uses_huge_pages(server):
            settings["huge_pages"] = "try"  # the real server still holds the pages
        with self.workspace.scratch() as scratch, self.workspace.sockets(scratch) as sockets:
            data_directory = scratch / "data"
            initialise(self.installation, self.workspace.account, data_directory, scratch_options(server))
            self.installation.check_settings(self.workspace.account, data_directory, settings)
            instance = Instance(
                self.installation, self.workspace.account, data_directory, sockets, _PORT, settings
            )
            try:
                _start(instance)
                with libpq_variables_unset():
                    yield instance
            finally:
                instance.stop(is_immediate=True)


def _start(instance: Instance) -> None:
    try:
        instance.start()
    except ServerStartError as error:
        raise ServerStartError(
            "the server would not start with the planned settings",
            detail=error.detail,
            hint="nothing was changed; omit the setting named in the log",
        ) from error


def taken_over(server: Server) -> dict[str, str]:
    """Return the settings of a server that apply to a scratch server as well."""
    return {guc.name: guc.setting for guc in server.non_default_settings if _is_taken_over(guc)}


def _is_taken_over(guc: Guc) -> bool:
    return (
        guc.vartype != "string"
        and not guc.is_read_only
        and guc.context in ("postmaster", "sighup")
        and not guc.name.startswith(_NOT_TAKEN_OVER)
    )


def _uses_huge_pages(server: Server) -> bool:
    guc = server.settings.get("huge_pages")
    return guc is not None and guc.setting == "on"


def scratch_options(server: Server) -> list[str]:
    """Return initdb's options: the WAL segment size, which limits the possible WAL settings."""
    segment = server.settings["wal_segment_size"]
    return [f"--wal-segsize={bytes_of(segment.setting, segment.unit) >> 20}"]
