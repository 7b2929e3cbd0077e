"""Packets steered for real, on a pair of virtual network cards in namespaces of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.fix_machine import FLOWS, Machine
from tests.fix_servers import wait_until
from tests.fix_settings import host_of, server_of

from pgdyno.apply.host_state import HostState
from pgdyno.apply.runs.host_run import host_writers
from pgdyno.base.facts import Fact
from pgdyno.host.files.kernel_files import read_kernel_files
from pgdyno.host.files.tree import Tree
from pgdyno.host.host import Nic
from pgdyno.plan import levers
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.planner import plan_one
from pgdyno.plan.engine.resources import Figures, proven_host, resources_of
from pgdyno.plan.levers._contract import PlanContext, Skipped, State

pytestmark = pytest.mark.root

LEVERS = levers.load()
CARD = "/sys/class/net/veth0"
QUEUES = f"{CARD}/queues"
BOTH_CPUS = "3"
ADDRESS, PEER = "10.213.7.1", "10.213.7.2"
IPIS = 9  # the column of received_rps in /proc/net/softnet_stat, counted from 0

# Sends packets of many flows, so that their hashes fall on both CPUs.
SENDING = f"""
import socket
for port in range(20000, 20500):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.bind(("{PEER}", port))
        sending.sendto(b"x", ("{ADDRESS}", 9))
"""


@dataclass(frozen=True)
class Pair:
    """Two virtual cards with two queues each. Below ``root`` lies what the first one's namespace shows."""

    root: Path
    peers: str  # the namespace of the other one

    def show(self, name: str) -> str:
        """Return what a file of the first card's queues holds."""
        return (self.root / QUEUES.strip("/") / name).read_text().strip()

    def snapshot(self) -> dict[str, str]:
        """Return what all files hold that tests change."""
        card = self.root / CARD.strip("/")
        patterns = ("queues/rx-*/rps_*", "queues/tx-*/xps_cpus", "napi_defer_hard_irqs", "gro_flush_timeout")
        found = [path for pattern in patterns for path in card.glob(pattern)]
        return {str(path): path.read_text() for path in found}

    def send(self) -> None:
        """Let the other card send packets of many flows to the first."""
        run("ip", "netns", "exec", self.peers, sys.executable, "-c", SENDING)

    def context(self, planned: Mapping[str, str]) -> PlanContext:
        """Return what levers see of a server with two CPUs that clients reach through the first card."""
        nic = Nic(
            name="veth0",
            rx_queues=Fact(2, QUEUES),
            tx_queues=Fact(2, QUEUES),
            rps_cpus=Fact(("0", "0"), QUEUES),
            irq_affinity=Fact({}, QUEUES),
        )
        files = read_kernel_files(Tree(self.root), levers.kernel_files())
        host = replace(host_of(cpus=2), nics=Fact((nic,), "/sys/class/net"), kernel_files=files)
        server = server_of(18, changes={"listen_addresses": "*"})
        return PlanContext(
            settings=EffectiveSettings(server),
            resources=resources_of(host, server, Figures()),
            host=proven_host(host, server),
            planned_files=planned,
        )

    def planned(self, lever: str, planned: Mapping[str, str]) -> dict[str, str]:
        """Return the files that a lever would change."""
        outcome = plan_one(LEVERS[lever], self.context(planned))
        assert not isinstance(outcome, Skipped), outcome.reason
        return {line.change.key: line.change.value for line in outcome}


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=250)


def steered() -> int:
    """Return how often a CPU was interrupted by another one to take packets in."""
    lines = Path("/proc/net/softnet_stat").read_text().splitlines()
    return sum(int(line.split()[IPIS], 16) for line in lines)


@pytest.fixture
def pair(machine: Machine, tmp_path: Path) -> Iterator[Pair]:
    """The pair, one card to a namespace; nothing of it is left."""
    if shutil.which("ip") is None:
        pytest.skip("ip is not installed: apt install iproute2")
    if (os.cpu_count() or 1) < 2:
        pytest.skip("with one CPU there is nowhere to steer packets to")
    ours, peers = (f"pgdyno-test-{os.getpid()}-{name}" for name in "ab")
    root = tmp_path / "root"
    (root / "sys").mkdir(parents=True)
    (root / "proc").symlink_to("/proc")
    with ExitStack() as stack:
        try:
            for name in (ours, peers):
                run("ip", "netns", "add", name)
                stack.callback(run, "ip", "netns", "delete", name)
            connect(ours, peers)
            run("nsenter", f"--net=/run/netns/{ours}", "mount", "-t", "sysfs", "sysfs", str(root / "sys"))
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this environment has no network namespaces: {error.stderr.decode()}")
        stack.callback(run, "umount", str(root / "sys"))
        yield Pair(root, peers)


def connect(ours: str, peers: str) -> None:
    """Give each namespace one card of a pair, with an address."""
    queues = ("numtxqueues", "2", "numrxqueues", "2")
    cards = ("link", "add", "veth0", *queues, "type", "veth", "peer", "name", "veth1", *queues)
    run("ip", "-n", ours, *cards, "netns", peers)
    for name, card, address in ((ours, "veth0", ADDRESS), (peers, "veth1", PEER)):
        run("ip", "-n", name, "address", "add", f"{address}/24", "dev", card)
        run("ip", "-n", name, "link", "set", card, "up")


def test_packets_are_steered_to_where_they_are_read_and_sent_through_a_queue_of_each_cpu(
    pair: Pair, tmp_path: Path
) -> None:
    masks = {f"{QUEUES}/rx-{queue}/rps_cpus": BOTH_CPUS for queue in range(2)}
    planned = (
        masks | pair.planned("receive_flow_steering", masks) | pair.planned("transmit_packet_steering", masks)
    )
    assert planned == {
        **masks,
        FLOWS: "32768",
        f"{QUEUES}/rx-0/rps_flow_cnt": "16384",
        f"{QUEUES}/rx-1/rps_flow_cnt": "16384",
        f"{QUEUES}/tx-0/xps_cpus": "1",
        f"{QUEUES}/tx-1/xps_cpus": "2",
    }
    before = pair.snapshot()
    with HostState(tmp_path / "journal", host_writers(pair.root)).holding(planned):
        assert [pair.show(f"rx-{queue}/rps_cpus") for queue in range(2)] == ["3", "3"]
        assert [pair.show(f"rx-{queue}/rps_flow_cnt") for queue in range(2)] == ["16384", "16384"]
        assert [pair.show(f"tx-{queue}/xps_cpus") for queue in range(2)] == ["1", "2"]
        assert Path(FLOWS).read_text() == "32768\n"
        after = pair.context(planned)
        for lever in ("receive_flow_steering", "transmit_packet_steering"):
            assert LEVERS[lever].detect(after).state is State.ON
    assert pair.snapshot() == before


def test_steered_packets_are_taken_in_by_the_other_cpu(pair: Pair, tmp_path: Path) -> None:
    before = steered()
    pair.send()
    assert steered() == before
    masks = {f"{QUEUES}/rx-{queue}/rps_cpus": BOTH_CPUS for queue in range(2)}
    with HostState(tmp_path / "journal", host_writers(pair.root)).holding(masks):
        pair.send()
        wait_until(lambda: steered() > before)


def test_the_kernel_waits_for_more_packets_as_a_variant_asks(pair: Pair, tmp_path: Path) -> None:
    waiting = {f"{CARD}/napi_defer_hard_irqs": "10", f"{CARD}/gro_flush_timeout": "20000"}
    lever, before = LEVERS["interrupt_coalescing"], pair.snapshot()
    assert lever.detect(pair.context({})).state is State.OFF
    with HostState(tmp_path / "journal", host_writers(pair.root)).holding(waiting):
        found = lever.detect(pair.context({}))
        assert found.state is State.ON
        assert found.detail.startswith("veth0 re-enables interrupts after 10 empty polls, 20 µs apart")
    assert pair.snapshot() == before
