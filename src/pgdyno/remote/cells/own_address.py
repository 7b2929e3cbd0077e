"""The address of a cell's server: whether it belongs to this machine, and other hosts reach it."""

from __future__ import annotations

import errno
import socket
from ipaddress import ip_address
from typing import Any

from pgdyno.base.errors import UsageError
from pgdyno.model.cells.cell import CellHost

_LISTENS = "servers under test listen on it for load hosts"


def is_this_machine(server: CellHost) -> bool:
    """Return whether the server's address belongs to this machine; False if hosts.toml names none."""
    if server.address is None:
        return False
    try:
        _listen(*_resolved(server.address))
    except OSError:
        return False
    return True


def require_address(server: CellHost) -> str:
    """Return the server's address for load hosts. Raises: UsageError if hosts.toml has none."""
    if server.address is None:
        raise UsageError(
            f"hosts.toml has no address of {server.name} for load hosts",
            detail=_LISTENS,
            hint=f"add it to {_table(server)}: address = …",
        )
    return server.address


def own_address(server: CellHost) -> str:
    """Return the server's numeric address on this machine.

    Raises: UsageError for another machine's address, and for one that other hosts cannot reach.
    """
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
            else f"could not listen on {server.name} ({named}): {error.strerror}",
            detail=_LISTENS,
            hint=f"correct address in {_table(server)}: it must belong to the server's host",
        ) from error
    return str(place[0])


def _resolved(named: str) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    """Return an address's family and numeric form, as used by sockets."""
    family, _, _, _, place = socket.getaddrinfo(named, 0, type=socket.SOCK_STREAM)[0]
    return family, place


def _listen(family: socket.AddressFamily, place: tuple[Any, ...]) -> None:
    """Bind a free port of an address briefly. Raises: OSError if the address belongs to another machine."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind(place)


def _require_reachable(server: CellHost, address: str) -> None:
    """Raise UsageError for an address that is local to a host or a link."""
    found = ip_address(address.partition("%")[0])
    if found.is_loopback or (found.version == 6 and found.is_link_local):
        raise UsageError(
            f"other hosts cannot reach {server.name} at {address}",
            detail="it is a loopback address"
            if found.is_loopback
            else "it is a link-local address, which is valid only with a host's own network interface",
            hint=f"set a routable address in {_table(server)}: address = …",
        )


def _table(server: CellHost) -> str:
    return f"[hosts.{server.name}]"
