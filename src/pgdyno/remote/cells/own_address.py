"""The address of a cell's server: whether it is of this machine, and other hosts reach it."""

from __future__ import annotations

import errno
import socket
from ipaddress import ip_address
from typing import Any

from pgdyno.base.errors import UsageError
from pgdyno.model.cells.cell import CellHost

_LISTENS = "servers under test listen there for load hosts"


def is_this_machine(server: CellHost) -> bool:
    """Whether the server's address is one of this machine's. One that hosts.toml does not name is not."""
    if server.address is None:
        return False
    try:
        _listen(*_resolved(server.address))
    except OSError:
        return False
    return True


def require_address(server: CellHost) -> str:
    """Return where load hosts reach the server. Raises: UsageError if hosts.toml does not say it."""
    if server.address is None:
        raise UsageError(
            f"hosts.toml does not say where load hosts reach {server.name}",
            detail=_LISTENS,
            hint=f"give {_table(server)} its address: address = …",
        )
    return server.address


def own_address(server: CellHost) -> str:
    """Return the server's address: one of this machine's that others reach. Raises: UsageError otherwise."""
    named = require_address(server)
    try:
        family, place = _resolved(named)
        _require_reachable(server, str(place[0]))
        _listen(family, place)
    except OSError as error:
        is_other = error.errno == errno.EADDRNOTAVAIL
        raise UsageError(
            f"{server.name} ({named}) is not this machine"
            if is_other
            else f"{server.name} ({named}) is no address that can be listened on: {error.strerror}",
            detail=_LISTENS,
            hint=f"correct address in {_table(server)}: it is one of the server's host's own",
        ) from error
    return str(place[0])


def _resolved(named: str) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    """Return an address by its number, as sockets take it."""
    family, _, _, _, place = socket.getaddrinfo(named, 0, type=socket.SOCK_STREAM)[0]
    return family, place


def _listen(family: socket.AddressFamily, place: tuple[Any, ...]) -> None:
    """Take a free port of an address for a moment. Raises: OSError if the address is of another machine."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind(place)


def _require_reachable(server: CellHost, address: str) -> None:
    """Raise UsageError for an address that means something else, or nothing, on another host."""
    found = ip_address(address.partition("%")[0])
    if found.is_loopback or (found.version == 6 and found.is_link_local):
        raise UsageError(
            f"no other host reaches {server.name} at {address}",
            detail="it is of this host alone"
            if found.is_loopback
            else "it is a link-local address, which each host reaches by a network card of its own",
            hint=f"give {_table(server)} the address of a network: address = …",
        )


def _table(server: CellHost) -> str:
    return f"[hosts.{server.name}]"
