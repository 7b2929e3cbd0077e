"""What a server is recognised by, so that its receipts are never applied to another one."""

from __future__ import annotations

import hashlib

from pgdyno.journal.query import Connection, ask, run
from pgdyno.model.facts import Unknown
from pgdyno.model.journal import Target

_MACHINE_ID_BYTES = 64  # 32 digits and a line feed; see machine-id(5)


def read_target(connection: Connection) -> Target:
    """Ask a server for its identity. What the role may not see is left out of it."""
    identifier = run(connection, "SELECT system_identifier FROM pg_catalog.pg_control_system()")[0][0]
    # The two-argument form returns null instead of an error if the setting is hidden from the role.
    visible = run(connection, "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'data_directory'")
    info = connection.info
    return Target(
        kind="server",
        identity=str(identifier),
        data_directory=visible[0][0] if visible else None,
        machine=_machine(connection),
        address=f"host={info.host} port={info.port}",
    )


def _machine(connection: Connection) -> str | None:
    """Return a hash of the machine id, which should not be shown as it is: machine-id(5)."""
    rows = ask(
        connection, "SELECT pg_catalog.pg_read_file('/etc/machine-id', 0, 64, true)", "/etc/machine-id"
    )
    if isinstance(rows.value, Unknown) or not rows.value or not rows.value[0][0]:
        return None
    text = rows.value[0][0][:_MACHINE_ID_BYTES].strip()
    return hashlib.sha256(b"pgdyno" + text.encode()).hexdigest()[:16]
