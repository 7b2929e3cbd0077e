"""Hosts of a cell: network namespaces of this machine, joined by a bridge, each with an sshd of its own.

The bridge is in a namespace as well, where pgdyno is started: nothing of the machine's own network changes.
Each host has files, a name and an identity (boot_id) of its own in a mount namespace. Everything is gone with
the last of their processes.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

CELL = "pgdyno-cell-"  # and the number of the process that tests: names of namespaces begin with it
NETWORK, NETWORK_6 = "10.213.9", "fd00:213:9:"

CLIENT_CONFIG = """
Host {name}
  HostName {address}
  User root
Host {name}-6
  HostName {address_6}
  User root
  HostKeyAlias {name}
"""

FOR_ALL = """
Host *
  IdentityFile {key}
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {known}
  GlobalKnownHostsFile /dev/null
"""


# Carries bytes to a host's sshd and back, each way so late; every so many-th part and the next ones later.
SLOW_WAY = """
import os, queue, socket, sys, threading, time
late_s, every, later_s = map(float, sys.argv[2:])
connection = socket.create_connection((sys.argv[1], 22))
def carry(read, write):
    late, count = queue.Queue(), 0
    def deliver():
        while True:
            due, part = late.get()
            time.sleep(max(0, due - time.monotonic()))
            write(part)
    threading.Thread(target=deliver, daemon=True).start()
    while part := read():
        count += 1
        is_later = every and count % every == 0
        late.put((time.monotonic() + (later_s if is_later else late_s), part))
there = (lambda: os.read(0, 65536), connection.sendall)
back = (lambda: connection.recv(65536), lambda part: os.write(1, part))
threading.Thread(target=carry, args=there, daemon=True).start()
carry(*back)
"""


@dataclass(frozen=True)
class NamespaceHost:
    """A host of the cell. ``directory`` has its keys, and programs that come first in its PATH."""

    name: str
    number: int
    directory: Path
    namespace: str

    @property
    def address(self) -> str:
        """Its address of IPv4."""
        return f"{NETWORK}.{self.number}"

    @property
    def address_6(self) -> str:
        """Its address of IPv6."""
        return f"{NETWORK_6}:{self.number:x}"

    @property
    def public_key(self) -> str:
        """The host's own key, without the comment."""
        return " ".join((self.directory / "host_key.pub").read_text().split()[:2])

    def plant(self, program: str, text: str) -> None:
        """Put a program before all others of this name."""
        path = self.directory / "bin" / program
        path.write_text(text)
        path.chmod(0o755)

    def link(self, state: str) -> None:
        """Cut its cable (down), or mend it (up)."""
        run("ip", "-n", self.namespace, "link", "set", "eth0", state)

    def pids(self) -> tuple[int, ...]:
        """Return its processes, sshd first: the oldest, not the lowest number, which may have begun anew."""
        return tuple(sorted(map(int, run("ip", "netns", "pids", self.namespace).split()), key=started_ticks))

    def temporary_files(self) -> list[str]:
        """Return the names in its directory of temporary files."""
        return sorted(path.name for path in Path(f"/proc/{self.pids()[0]}/root/run/tmp").iterdir())

    def end_sessions(self) -> None:
        """End everything but the sshd that listens."""
        for pid in self.pids()[1:]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True)
class NamespaceCell:
    """Hosts that can be reached from the namespace ``hub`` alone, with the files of ssh's user."""

    directory: Path
    hub: str
    hosts: dict[str, NamespaceHost] = field(default_factory=dict)

    def __getitem__(self, name: str) -> NamespaceHost:
        return self.hosts[name]

    def file(
        self,
        directory: Path,
        tables: Mapping[str, str],
        known: Mapping[str, str] | None = None,
        more: str = "",
    ) -> Path:
        """Write hosts.toml, and ssh's configuration and known keys beside it. Returns hosts.toml.

        ``tables``: lines by host; ``known``: keys other than the hosts' own, none if empty.
        """
        keys = {name: host.public_key for name, host in self.hosts.items()} | dict(known or {})
        addresses = {name: f"{name},{self[name].address}" for name in keys}
        (directory / "known_hosts").write_text(
            "".join(f"{addresses[name]} {key}\n" for name, key in keys.items() if key)
        )
        config = "".join(
            CLIENT_CONFIG.format(name=one.name, address=one.address, address_6=one.address_6)
            for one in self.hosts.values()
        )
        config += FOR_ALL.format(key=self.directory / "user_key", known=directory / "known_hosts")
        (directory / "ssh_config").write_text(more + config)
        text = 'ssh_config = "ssh_config"\n'
        text += "".join(f"[hosts.{name}]\n{lines}\n" for name, lines in tables.items())
        (directory / "hosts.toml").write_text(text)
        return directory / "hosts.toml"

    def pgdyno(self, *arguments: str) -> subprocess.Popen[str]:
        """Start pgdyno where it can reach the hosts."""
        # A test run in the background may ignore SIGINT, and its children would inherit that.
        command = ["env", "--default-signal=INT", "nsenter", f"--net=/run/netns/{self.hub}"]
        command += [sys.executable, "-m", "pgdyno", *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def own_pids(self) -> tuple[int, ...]:
        """Return the processes where pgdyno is started."""
        return tuple(map(int, run("ip", "netns", "pids", self.hub).split()))


def slow_way(directory: Path, name: str, late_s: float, every: int = 0, later_s: float = 0.0) -> str:
    """Return lines of ssh's configuration by which the way to a host is slow."""
    (directory / "slow_way.py").write_text(SLOW_WAY)
    command = f"{sys.executable} {directory}/slow_way.py %h {late_s} {every} {later_s}"
    return f"Host {name}\n  ProxyCommand {command}\n"


@contextmanager
def planted(host: NamespaceHost, python: str) -> Iterator[None]:
    """Put another python3 on a host for a while. What it leaves running is ended: nobody else would."""
    host.plant("python3", python)
    try:
        yield
    finally:
        (host.directory / "bin" / "python3").unlink()
        host.end_sessions()


def started_ticks(pid: int) -> float:
    """Return when a process started, in ticks since the machine did; infinity if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return math.inf
    return float(stat.rpartition(")")[2].split()[19])  # field 22; the name before may hold spaces


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=250).stdout
