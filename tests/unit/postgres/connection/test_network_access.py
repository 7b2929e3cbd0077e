"""Login rules of servers that listen on the network."""

from __future__ import annotations

import stat
from pathlib import Path

from pgdyno.postgres.connection.network_access import entrance


def test_each_load_host_is_let_in_by_its_address_and_the_password(tmp_path: Path) -> None:
    addresses = ["10.0.0.2", "fd00::3", "10.0.0.2"]  # two behind one address
    found = entrance(tmp_path, "10.0.0.1", addresses, "bench")
    assert found.rules.read_text() == (
        "local all all trust\n"
        "host bench pgdyno_load 10.0.0.2/32 scram-sha-256\n"
        "host bench pgdyno_load fd00::3/128 scram-sha-256\n"
    )
    assert stat.S_IMODE(found.rules.stat().st_mode) == 0o644
    assert found.settings() == {"listen_addresses": "10.0.0.1", "hba_file": str(found.rules)}
    assert found.password not in found.rules.read_text()
    assert len(found.password) > 30
