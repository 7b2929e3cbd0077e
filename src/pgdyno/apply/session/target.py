"""Identity of a server, so that receipts are never applied to a different one."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import LiteralString

from pgdyno.apply.session.query import Connect, Connection, ask, run, value
from pgdyno.base.errors import ConnectionFailedError, PgdynoError
from pgdyno.base.facts import Unknown
from pgdyno.model.plans.journal import Target
from pgdyno.postgres.checked_results import checked_results

_MACHINE_ID = Path("/etc/machine-id")  # 32 digits and a line feed; see machine-id(5)
_SOCKET = "host=/"
_DATA_DIRECTORY: LiteralString = (
    "SELECT setting FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'data_directory'"
)


@checked_results()
def read_target(connection: Connection) -> Target:
    """Read a server's identity; parts that are hidden from the role are None."""
    identifier = value(connection, "SELECT system_identifier FROM pg_catalog.pg_control_system()", int)
    # pg_settings has no row, instead of raising an error, if the setting is hidden from the role.
    visible = run(connection, _DATA_DIRECTORY)
    info = connection.info
    return Target(
        kind="server",
        identity=str(identifier),
        data_directory=visible[0][0] if visible else None,
        machine=_machine(connection),
        address=f"host={info.host} port={info.port}",
    )


def bound_to(target: Target, connect: Connect, *, by_address: bool = True) -> Connect:
    """Return a ``connect`` that reaches only this server.

    With several hosts, a virtual address or a failover, the same connection string may lead to a different
    server during a restart; a primary and its standby share the system identifier, often also the paths. If
    the role cannot see enough to distinguish them, the address must be the same. ``by_address`` False skips
    that check, for a target that was reached at a different address.
    Raises: the returned function raises ConnectionFailedError if a different server answers.
    """

    def open_connection() -> Connection:
        connection = connect()
        try:
            now = read_target(connection)
            if not _is_it(target, now, by_address=by_address):
                raise _another_server(target, now)
        except PgdynoError:
            connection.close()
            raise
        return connection

    return open_connection


def is_on_this_machine(target: Target) -> bool:
    """Whether a server is known to run here: it reported this machine's id, or was reached over a socket."""
    return target.address.startswith(_SOCKET) or target.machine == (this_machine() or "")


def is_this_machine(target: Target) -> bool:
    """Whether a target is this machine."""
    return target.kind == "host" and target.machine == this_machine()


def this_machine() -> str | None:
    """Return ``Target.machine`` of servers on this machine; None if the machine has no id."""
    try:
        return _hash(_MACHINE_ID.read_text(encoding="ascii"))
    except OSError:
        return None


def _is_it(target: Target, now: Target, *, by_address: bool) -> bool:
    is_certain = None not in (target.data_directory, target.machine, now.data_directory, now.machine)
    return target.is_same_as(now) and (is_certain or not by_address or target.address == now.address)


def _another_server(target: Target, now: Target) -> ConnectionFailedError:
    pairs = (
        ("address", now.address, target.address),
        ("system identifier", now.identity, target.identity),
        ("data directory", now.data_directory, target.data_directory),
        ("machine", now.machine, target.machine),
    )
    return ConnectionFailedError(
        f"a different server answers at {now.address}",
        detail="; ".join(
            f"its {what} is {one}, not {other}"
            for what, one, other in pairs
            if one != other and None not in (one, other)
        ),
        hint="name one server, by its own address: --dsn 'host=… port=…'",
    )


def _machine(connection: Connection) -> str | None:
    rows = ask(
        connection, "SELECT pg_catalog.pg_read_file('/etc/machine-id', 0, 64, true)", "/etc/machine-id"
    )
    return None if isinstance(rows.value, Unknown) else _hash(rows.value[0][0] or "")


def _hash(machine_id: str) -> str | None:
    """Return a hash of the machine id, which should not be exposed: machine-id(5); None if it is empty."""
    text = machine_id.strip()
    return hashlib.sha256(b"pgdyno" + text.encode()).hexdigest()[:16] if text else None
