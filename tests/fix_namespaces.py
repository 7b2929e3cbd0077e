"""Start and end the hosts of a cell: network namespaces, joined by a bridge, each with an sshd."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.fix_cell import CELL, NETWORK, NETWORK_6, NamespaceCell, NamespaceHost, run
from tests.fix_servers import wait_until

SSHD = "/usr/sbin/sshd"

# Started in a host's namespaces. $1 is its directory, $2 its name, $3 the size of its temporary files.
STARTING = """
hostname "$2" &&
mount --bind "$1/boot_id" /proc/sys/kernel/random/boot_id &&
mount -t tmpfs -o mode=755 tmpfs /run && mkdir /run/sshd /run/tmp &&
mount -t tmpfs -o "mode=1777,size=$3" tmpfs /run/tmp &&
exec /usr/sbin/sshd -D -e -f "$1/sshd_config"
"""

SSHD_CONFIG = """
ListenAddress {address}
ListenAddress {address_6}
HostKey {directory}/host_key
PidFile none
AuthorizedKeysFile {keys}
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv PATH={directory}/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME={directory} TMPDIR=/run/tmp
"""


@contextmanager
def running_cell(directory: Path, sizes: Mapping[str, str]) -> Iterator[NamespaceCell]:
    """Start hosts, each with temporary files of at most its size; end them and remove their networks."""
    skip_unless_possible()
    remove_stale()
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / "user_key"))
    cell = NamespaceCell(directory, f"{CELL}{os.getpid()}")
    with ExitStack() as stack:
        try:
            add_namespace(cell.hub, stack)
            for number, name in enumerate(sizes, 2):
                cell.hosts[name] = add_host(cell, name, number, stack)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this environment has no network namespaces: {error.stderr}")
        for host in cell.hosts.values():
            stack.enter_context(sshd(host, sizes[host.name]))
        yield cell


def skip_unless_possible() -> None:
    """Skip where hosts cannot be made."""
    if os.geteuid() != 0:
        pytest.skip("takes root")
    for program, package in (("ip", "iproute2"), (SSHD, "openssh-server"), ("ssh", "openssh-client")):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: apt install {package}")


def remove_stale() -> None:
    """Remove the namespaces of tests that were killed, with everything that runs in them."""
    for name in (line.split()[0] for line in run("ip", "netns", "list").splitlines()):
        owner = name.removeprefix(CELL).partition("-")[0]
        if name.startswith(CELL) and not Path("/proc", owner).exists():
            for pid in run("ip", "netns", "pids", name).split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            run("ip", "netns", "delete", name)


def add_namespace(name: str, stack: ExitStack) -> None:
    """Add a namespace; the hub has the bridge. A namespace goes with its cards."""
    run("ip", "netns", "add", name)
    stack.callback(run, "ip", "netns", "delete", name)
    run("ip", "-n", name, "link", "set", "lo", "up")


def add_host(cell: NamespaceCell, name: str, number: int, stack: ExitStack) -> NamespaceHost:
    """Add a host to the bridge, with keys and addresses."""
    if not cell.hosts:
        run("ip", "-n", cell.hub, "link", "add", "bridge", "type", "bridge")
        add_addresses(cell.hub, "bridge", 1)
    host = NamespaceHost(name, number, cell.directory / name, f"{cell.hub}-{number}")
    (host.directory / "bin").mkdir(parents=True)
    (host.directory / "boot_id").write_text(f"{uuid.uuid4()}\n")
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(host.directory / "host_key"))
    addresses = {"address": host.address, "address_6": host.address_6}
    keys = cell.directory / "user_key.pub"
    (host.directory / "sshd_config").write_text(
        SSHD_CONFIG.format(directory=host.directory, keys=keys, **addresses)
    )
    add_namespace(host.namespace, stack)
    card = f"host{number}"
    run(
        "ip",
        "-n",
        cell.hub,
        "link",
        "add",
        card,
        "type",
        "veth",
        "peer",
        "name",
        "eth0",
        "netns",
        host.namespace,
    )
    run("ip", "-n", cell.hub, "link", "set", card, "master", "bridge", "up")
    add_addresses(host.namespace, "eth0", number)
    return host


def add_addresses(namespace: str, card: str, number: int) -> None:
    """Give a card both addresses. The one of IPv6 is used at once, without asking whether others have it."""
    run("ip", "-n", namespace, "address", "add", f"{NETWORK}.{number}/24", "dev", card)
    run("ip", "-n", namespace, "address", "add", f"{NETWORK_6}:{number:x}/64", "dev", card, "nodad")
    run("ip", "-n", namespace, "link", "set", card, "up")


@contextmanager
def sshd(host: NamespaceHost, size: str) -> Iterator[None]:
    """Run the host's sshd; at the end kill all of the host's processes."""
    # Not by ip netns exec, which mounts another /sys, without control groups.
    command = ["nsenter", f"--net=/run/netns/{host.namespace}", "unshare", "--uts", "--mount"]
    command += ["sh", "-c", STARTING, "sh", str(host.directory), host.name, size]
    log = host.directory / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        wait_until(lambda: log.read_text().count("Server listening") == 2 or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield
    finally:
        for pid in host.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
