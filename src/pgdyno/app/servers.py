"""The use case ``server list``: which installations variants can name, and their versions."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.server.account import caller
from pgdyno.server.installation import installation_at
from pgdyno.server.registry import registered_servers


@dataclass(frozen=True)
class ListedServer:
    """One line of the list."""

    name: str
    version: str
    bin_directory: str


def list_servers() -> list[ListedServer]:
    """Return every server that is known by name. Raises: ServerError for programs that do not run."""
    return [
        ListedServer(
            server.name,
            installation_at(server.bin_directory, caller()).version,
            str(server.bin_directory),
        )
        for server in registered_servers()
    ]
