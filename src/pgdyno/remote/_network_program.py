"""Standalone part of the runner: measure a TCP connection between two hosts from both ends.

Like the whole runner it needs only Python 3.7 with its standard library.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Any

SOCKET_LIMIT_S, TOKEN_LIMIT_S = 5.0, 2.0
PROBE_LIMIT_S = 10.0  # for all steps, whatever other clients of the port do
BLOCK = 65536
ROUND_TRIPS, ROUND_TRIPS_S = 200, 0.5
POURING_S = 0.5

listeners: list[socket.socket] = []


def listen(question: dict[str, Any]) -> dict[str, Any]:
    """Listen on the given address of this host, or on the one that ssh connected to; return the port.

    /etc/hosts often maps the host's name to a loopback address, and NAT may translate the given address.
    """
    own = own_address()
    try:
        listener = listening(question["address"], question["port"])
        if own and is_loopback(listener):
            listener.close()
            listener = listening(own, question["port"])
    except OSError:
        if not own:
            raise
        listener = listening(own, question["port"])
    listeners.append(listener)
    return {"port": listener.getsockname()[1]}


def own_address() -> str:
    """Return this host's address that ssh connected to; empty if sshd does not report it."""
    connection = os.environ.get("SSH_CONNECTION", "").split()
    return connection[2] if len(connection) == 4 else ""


def listening(address: str, port: int) -> socket.socket:
    """Return a listening socket."""
    family, kind, protocol, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(4)
    except OSError:
        listener.close()
        raise
    return listener


def is_loopback(listener: socket.socket) -> bool:
    """Return whether the socket is unreachable from other hosts."""
    address: str = listener.getsockname()[0]
    return address == "::1" or address.startswith("127.")


def accept(question: dict[str, Any]) -> dict[str, Any]:
    """Serve one probe, for the client with the token; then stop listening."""
    token, ends = question["token"].encode(), time.monotonic() + PROBE_LIMIT_S
    with listeners.pop() as listener:
        while True:
            listener.settimeout(left(ends))
            connection = listener.accept()[0]
            with connection:
                if is_ours(connection, token, ends):
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    peer = connection.getpeername()[0]
                    return {"to_server_bytes_per_s": answered(connection, ends), "peer": peer}


def is_ours(connection: socket.socket, token: bytes, ends: float) -> bool:
    """Return whether the client sends the token in time; other connections wait behind it."""
    try:
        return received(connection, len(token), min(ends, time.monotonic() + TOKEN_LIMIT_S)) == token
    except OSError:
        return False


def answered(connection: socket.socket, ends: float) -> float:
    """Echo single bytes, then send and receive at full speed; return the rate of receiving."""
    while received(connection, 1, ends) == b"+":
        connection.sendall(b"+")
    pour(connection, ends)
    return drink(connection, ends)


def probe(question: dict[str, Any]) -> dict[str, Any]:
    """Measure a connection to the server's host."""
    limit = time.monotonic() + PROBE_LIMIT_S
    with socket.create_connection((question["address"], question["port"]), SOCKET_LIMIT_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(question["token"].encode())
        times_ns: list[int] = []
        ends = time.monotonic() + ROUND_TRIPS_S
        while not times_ns or (len(times_ns) < ROUND_TRIPS and time.monotonic() < ends):
            began = time.monotonic_ns()
            connection.sendall(b"+")
            received(connection, 1, limit)
            times_ns.append(time.monotonic_ns() - began)
        connection.sendall(b".")
        rate = drink(connection, limit)
        pour(connection, limit)
    return {"round_trip_s": sorted(times_ns)[len(times_ns) // 2] / 1e9, "from_server_bytes_per_s": rate}


def pour(connection: socket.socket, limit: float) -> None:
    """Send at full speed for ``POURING_S``. A block's first byte indicates whether another block follows."""
    more, last = b"+" * BLOCK, b"." * BLOCK
    ends = time.monotonic() + POURING_S
    while time.monotonic() < ends:
        connection.settimeout(left(limit))
        connection.sendall(more)
    connection.settimeout(left(limit))
    connection.sendall(last)


def drink(connection: socket.socket, ends: float) -> float:
    """Receive until the last block; return bytes per second, measured from the end of the first block."""
    block, count, began = received(connection, BLOCK, ends), 0, time.monotonic()
    while block[:1] == b"+":
        block = received(connection, BLOCK, ends)
        count += BLOCK
    return count / max(time.monotonic() - began, 1e-6)


def received(connection: socket.socket, count: int, ends: float) -> bytes:
    """Receive exactly ``count`` bytes."""
    parts = []
    while count:
        connection.settimeout(left(ends))
        part = connection.recv(count)
        if not part:
            raise OSError("the peer closed the connection")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def left(ends: float) -> float:
    """Return the time limit of a probe's next step, in s."""
    left_s = ends - time.monotonic()
    if left_s <= 0:
        raise OSError(f"it takes more than {PROBE_LIMIT_S:g}\u00a0s")
    return min(left_s, SOCKET_LIMIT_S)
