"""Keep CPUs awake with one lowest-priority process on each.

A process under SCHED_IDLE yields to every other process of its control group. For the group to yield to all
other groups, it must be directly below the root and have ``cpu.idle`` = 1 (Linux 5.15,
admin-guide/cgroup-v2.rst).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import PrivilegeError, ServerError
from pgdyno.base.facts import Unknown
from pgdyno.host.cpu_idling import MAY_SHRINK, POLL_NS, POLLING
from pgdyno.host.files.kernel_files import cpu_list
from pgdyno.host.files.tree import EMPTY, NO_SUCH_FILE, Tree
from pgdyno.host.machine.cgroups import Hierarchy, read_hierarchy, read_membership
from pgdyno.host.machine.cpu import inspect_cpu
from pgdyno.host.machine.limits import NO_LIMIT, cpu_limits

_PROGRAM = Path(__file__).with_name("_spin_program.py")
_PREFIX, _IDLE = "pgdyno-awake-", "cpu.idle"
_UNLIMITED = (NO_LIMIT, NO_SUCH_FILE, EMPTY)
_SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
_PRODUCT = "/sys/class/dmi/id/product_name"
_BURSTABLE = re.compile(r"t[1-4][a-z]*\.\w+")
"""Machine types with CPU credits. Only Amazon's machines show their type in a file."""
Spin = Callable[[], AbstractContextManager[tuple[int, ...] | None]]
"""Starts processes that keep CPUs awake, and returns their ids; None if none are started."""
_WORDS = ("idle=", "cpuidle", "haltpoll", "intel_idle", "processor.max_cstate", "nohlt", "nohz")


@dataclass(frozen=True)
class Spinners:
    """Processes that keep a machine's CPUs awake, one on each."""

    tree: Tree
    cpus: Collection[int]

    def why_not(self) -> str | None:
        """Return the reason of ``why_no_spinners`` for these CPUs; None if they can be kept busy."""
        return why_no_spinners(self.tree, self.cpus)

    def spin(self) -> AbstractContextManager[tuple[int, ...]]:
        """Keep the CPUs busy for the duration of a context. Raises: PrivilegeError, ServerError."""
        top = find_top(self.tree)
        if isinstance(top, Unknown):
            raise PrivilegeError("could not keep CPUs busy", detail=top.reason)
        return spinning(self.cpus, top)


def why_no_spinners(tree: Tree, cpus: Collection[int]) -> str | None:
    """Return why these CPUs must not be kept busy, or not at the lowest priority; None if they can."""
    place = find_top(tree)
    return (
        _contained(tree)
        or _limited(tree)
        or next(filter(None, (_shared_core(tree, cpu) for cpu in sorted(cpus))), None)
        or _credited(tree)
        or (place.reason if isinstance(place, Unknown) else None)
    )


def burstable_type(tree: Tree) -> str:
    """Return the machine's type if it is known to have CPU credits, else an empty text."""
    product = tree.text(_PRODUCT).or_else("")
    return product if _BURSTABLE.fullmatch(product) else ""


def _contained(tree: Tree) -> str | None:
    machine = inspect_cpu(tree, "self").virtualisation.value
    if isinstance(machine, Unknown):
        return f"the kernel's platform is unknown: {machine.reason}"
    is_container = machine.startswith("container")
    return "in a container, spinning would slow down the machine's other users" if is_container else None


def _limited(tree: Tree) -> str | None:
    limits = cpu_limits(tree, read_membership(tree, "self"))
    found = next((limit.value for limit in limits if limit.value not in _UNLIMITED), None)
    if isinstance(found, Unknown):
        return f"the CPU quota is unknown: {found.reason}"
    return None if found is None else "a quota limits the CPU time, which spinning would use up"


def _shared_core(tree: Tree, cpu: int) -> str | None:
    siblings = tree.read(_SIBLINGS.format(cpu), cpu_list).value
    if isinstance(siblings, Unknown):
        return f"CPUs sharing a core are unknown: {siblings.reason}"
    is_shared = len(siblings) > 1
    return (
        f"CPU {cpu} shares its core with another CPU, which spinning would slow down" if is_shared else None
    )


def _credited(tree: Tree) -> str | None:
    product = burstable_type(tree)
    return f"{product} has CPU credits, which spinning would use up" if product else None


def find_top(tree: Tree) -> Path | Unknown:
    """Return the root control group for CPU time, where a group can be made, or the reason why none can."""
    hierarchy = read_hierarchy(tree, read_membership(tree, "self"), "cpu").value
    if isinstance(hierarchy, Unknown) or not hierarchy.directories:
        return Unknown("no control group hierarchy with the CPU controller is mounted")
    top = Path(tree.locate(hierarchy.directories[0]))
    if not _gives_cpu(hierarchy, top):
        return Unknown("the root control group does not enable the CPU controller for its children")
    if not os.access(top, os.W_OK | os.X_OK):
        return Unknown("only root can make a control group")
    return top


def _gives_cpu(hierarchy: Hierarchy, top: Path) -> bool:
    file = top / "cgroup.subtree_control"
    return hierarchy.version == 1 or (file.is_file() and "cpu" in file.read_text().split())


@contextmanager
def spinning(cpus: Collection[int], top: Path) -> Iterator[tuple[int, ...]]:
    """Keep these CPUs busy for the duration of a context; yields the process ids.

    The processes exit with pgdyno, whatever ends it. The next call removes the group of a killed pgdyno.
    Raises: PrivilegeError if the kernel has no idle groups, or refuses one; ServerError if a process exits.
    """
    _remove_left(top)
    group = _make_group(top)
    try:
        with ExitStack() as stack:
            yield tuple(stack.enter_context(_spinner(cpu, group)) for cpu in sorted(cpus))
    finally:
        group.rmdir()


def _make_group(top: Path) -> Path:
    group = top / f"{_PREFIX}{os.getpid()}"
    try:
        group.mkdir()
        if (group / _IDLE).exists():
            (group / _IDLE).write_text("1\n")
            return group
        group.rmdir()
    except OSError as error:
        raise PrivilegeError(
            f"could not make the control group {group}", detail=os.strerror(error.errno or 0)
        ) from error
    raise PrivilegeError("this kernel has no idle control groups", detail=f"no {_IDLE} in {group}")


@contextmanager
def _spinner(cpu: int, group: Path) -> Iterator[int]:
    command = [sys.executable, "-I", "-S", str(_PROGRAM), str(cpu), str(group / "cgroup.procs")]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C goes to pgdyno only, which then kills it
    ) as process:
        try:
            if process.stdout is None or process.stdout.readline() != "spinning\n":
                raise ServerError(f"could not start a process to keep CPU {cpu} awake")
            yield process.pid
        finally:
            process.kill()
            process.wait()


def remove_left_groups(tree: Tree) -> None:
    """Remove the groups of exited pgdyno processes; the kernel keeps groups with running processes."""
    top = find_top(tree)
    if not isinstance(top, Unknown):
        _remove_left(top)


def _remove_left(top: Path) -> None:
    for group in top.glob(f"{_PREFIX}*"):
        if not Path("/proc", group.name.removeprefix(_PREFIX)).exists():
            with suppress(OSError):
                group.rmdir()


def boot_line(tree: Tree) -> tuple[str, ...]:
    """Return the parameters of the kernel's command line that concern idling."""
    return tuple(word for word in tree.text("/proc/cmdline").or_else("").split() if word.startswith(_WORDS))


def polling_wanted(tree: Tree) -> dict[str, str]:
    """Return the values that make idle CPUs poll, by path, in the order of writing.

    Files that already have the value are left out.
    """
    return {path: value for path, value in POLLING.items() if tree.text(path).or_none() != value}


def why_no_polling(tree: Tree) -> str | None:
    """Return the reason why the kernel cannot be made to poll temporarily; None if it can."""
    if not tree.text(POLL_NS).is_known:
        return "the kernel has no module haltpoll"
    if tree.text(MAY_SHRINK).or_none() == "N" and POLL_NS in polling_wanted(tree):
        return f"{MAY_SHRINK} is N: CPUs would continue polling afterwards"
    return None
