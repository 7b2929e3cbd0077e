"""A server without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.measure.arenas.test_scratch_arena import PORT

from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.network import can_leave_network
from pgdyno.postgres.process.workspace import Workspace

pytestmark = pytest.mark.server


@pytest.fixture
def scratch(workspace: Workspace) -> Iterator[Path]:
    with workspace.scratch() as path:
        yield path


@pytest.fixture
def instance(workspace: Workspace, installation: Installation, scratch: Path) -> Iterator[Instance]:
    with workspace.sockets(scratch) as sockets:
        initialise(installation, workspace.account, scratch / "data")
        made = Instance(installation, workspace.account, scratch / "data", sockets, PORT)
        yield made
        made.stop(is_immediate=True)


def test_a_server_without_network_has_only_the_loopback_which_is_down(instance: Instance) -> None:
    if not can_leave_network():
        pytest.skip("the kernel lets this user make no network namespace")
    instance.has_network = False
    instance.start()
    with instance.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    of_server, ours = (Path(f"/proc/{pid}/ns/net").readlink() for pid in (instance.pid, "self"))
    assert of_server != ours
    devices = Path(f"/proc/{instance.pid}/net/dev").read_text().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in devices] == ["lo"]
    assert Path(f"/proc/{instance.pid}/net/route").read_text().splitlines()[1:] == []
