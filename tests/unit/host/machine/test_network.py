"""Network interfaces beyond what the fixture machines have."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.host.machines import FixtureTree, load

from pgdyno.base.facts import unknown
from pgdyno.host.files.tree import Tree
from pgdyno.host.host import Nic
from pgdyno.host.machine.inspection import inspect_nics


def only_nic(tree: Tree) -> Nic:
    (nic,) = inspect_nics(tree).or_else(())
    return nic


def test_queues_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for queue in (0, 1, 2, 10):
        place = tmp_path / f"sys/class/net/eth0/queues/rx-{queue}"
        place.mkdir(parents=True)
        (place / "rps_cpus").write_text(f"{queue:x}\n", encoding="utf-8")
    (tmp_path / "sys/class/net/eth0/device").mkdir()
    assert only_nic(Tree(tmp_path)).rps_cpus.value == ("0", "1", "2", "a")


@pytest.mark.parametrize("pattern", ["/proc/irq/121/*", "/sys/class/net/*/msi_irqs"])
def test_interrupts_that_cannot_be_read_are_unknown(pattern: str) -> None:
    tree = FixtureTree(load("bare-metal-2-socket").tree.root, (pattern,))
    assert not only_nic(tree).irq_affinity.is_known


def test_an_interface_whose_device_is_forbidden_is_not_left_out() -> None:
    tree = FixtureTree(load("wsl2").tree.root, ("/sys/class/net/eth0/*",))
    queues = "/sys/class/net/eth0/queues"
    assert only_nic(tree).rx_queues == unknown("permission denied", queues)
    assert only_nic(tree).rps_cpus == unknown("permission denied", queues)
