"""Measurements by runners: a host's clock, and a TCP connection from a load host to the server's."""

from __future__ import annotations

import secrets
import time

from pgdyno.base.errors import RemoteHostError
from pgdyno.base.facts import Unknown
from pgdyno.model.cells.check import ClockOffset, NetworkProbe
from pgdyno.remote.answers import Failed
from pgdyno.remote.cells.clock import ClockExchange, clock_offset
from pgdyno.remote.runner import Runner

_EXCHANGES = 30  # of time stamps; each takes a round trip, and the shortest counts
_LISTEN_LIMIT_S = 10.0
_PROBE_LIMIT_S = 15.0  # of one load host's connection to the server's: 1.5 s when nothing is wrong
_LATER_S = 5.0  # how much longer the server's runner may take: it has its own end, after 10 s

PROBE_S = _LISTEN_LIMIT_S + _PROBE_LIMIT_S + _LATER_S
"""What a probe takes at most."""


def asked_clock(runner: Runner) -> ClockOffset:
    """Return how far a host's clock is ahead of ours, and how long words to it and back take."""
    return clock_offset([_exchange(runner) for _ in range(_EXCHANGES)])


def _exchange(runner: Runner) -> ClockExchange:
    began_ns = time.monotonic_ns()  # first: what comes between the two is within the round trip then
    sent_ns = time.time_ns()
    theirs_ns = runner.clock()
    return ClockExchange(sent_ns, theirs_ns, time.monotonic_ns() - began_ns)


def probed(server: Runner, load: Runner, address: str, port: int, server_name: str) -> NetworkProbe | Unknown:
    """Measure a connection to an address of the server's; port 0 stands for any that is free.

    Raises: RemoteHostError if the server's host is lost.
    """
    server.limit(_LISTEN_LIMIT_S)
    listening = server.listen(address, port)
    if isinstance(listening, Failed):
        return Unknown(f"{server_name} cannot listen on {address}: {listening.error}")
    token = secrets.token_hex(16)
    load.limit(_PROBE_LIMIT_S)
    server.limit(_PROBE_LIMIT_S + _LATER_S)  # so that a slow load host is not its fault
    server.begin_accepting(token)
    try:
        found = load.probe(address, listening.port, token)
    except RemoteHostError as error:
        found = Failed(error=error.message)
    accepted = server.accepted()
    if isinstance(found, Failed):
        return Unknown(f"no connection to {address} port {listening.port}: {found.error}")
    if isinstance(accepted, Failed):
        return Unknown(f"the connection to {address} was lost: {accepted.error}")
    rates = (accepted.to_server_bytes_per_s, found.from_server_bytes_per_s)
    return NetworkProbe(found.round_trip_s, *rates, accepted.peer)
