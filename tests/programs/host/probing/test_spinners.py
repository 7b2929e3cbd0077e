"""Where CPUs may be kept busy by processes of the lowest priority: machines made of files, and this one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fix_servers import wait_until
from tests.unit.apply.machines import put

from pgdyno.base.errors import PrivilegeError
from pgdyno.base.facts import Unknown
from pgdyno.host.files.tree import Tree
from pgdyno.host.probing.spinners import find_top, spinning, why_no_spinners

CPU = "/sys/devices/system/cpu"
GROUP = "/sys/fs/cgroup"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A virtual machine of two cores, with control groups of version 2."""
    files = {
        "/proc/cpuinfo": "processor : 0\nflags : fpu hypervisor",
        "/proc/self/status": "Name:\tpgdyno\nNSpid:\t7",
        "/proc/self/cgroup": "0::/shell",
        "/proc/self/mountinfo": "22 1 0:20 / / rw - ext4 /dev/vda rw\n"
        "30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
        f"{GROUP}/cgroup.subtree_control": "cpu memory",
        f"{GROUP}/shell/cpu.max": "max 100000",
        f"{GROUP}/shell/cgroup.procs": "7",
        "/sys/devices/system/clocksource/clocksource0/available_clocksource": "kvm-clock tsc",
        "/sys/class/dmi/id/product_name": "m7a.large",
        f"{CPU}/online": "0-1",
        f"{CPU}/cpu0/topology/thread_siblings_list": "0",
        f"{CPU}/cpu1/topology/thread_siblings_list": "1",
    }
    for path, text in files.items():
        put(tmp_path, path, text)
    (tmp_path / "proc/self/ns").mkdir()
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    return tmp_path


def refused(root: Path) -> str | None:
    return why_no_spinners(Tree(root), (0, 1))


def test_a_virtual_machine_with_cores_of_its_own_may_spin(root: Path) -> None:
    assert refused(root) is None
    assert find_top(Tree(root)) == Path(f"{root}{GROUP}")


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        (
            f"{GROUP}/shell/cpu.max",
            "150000 100000",
            "a quota limits the CPU time, which spinning would use up",
        ),
        (
            f"{CPU}/cpu1/topology/thread_siblings_list",
            "1,3",
            "CPU 1 shares its core with another CPU, which spinning would slow down",
        ),
        (
            "/sys/class/dmi/id/product_name",
            "t3a.medium",
            "t3a.medium has CPU credits, which spinning would use up",
        ),
        (
            f"{GROUP}/cgroup.subtree_control",
            "memory",
            "the root control group does not enable the CPU controller for its children",
        ),
    ],
)
def test_where_it_would_cost_somebody_it_is_refused(root: Path, path: str, text: str, reason: str) -> None:
    put(root, path, text)
    assert refused(root) == reason


def test_in_a_container_it_is_refused(root: Path) -> None:
    put(root, "/proc/self/cgroup", "0::/docker/7")
    put(root, "/proc/self/mountinfo", "22 1 0:20 / / rw - overlay overlay rw")
    assert refused(root) == "in a container, spinning would slow down the machine's other users"


def test_what_is_not_known_is_a_reason(root: Path) -> None:
    (root / f"{CPU}/cpu0/topology/thread_siblings_list".lstrip("/")).unlink()
    assert refused(root) == "CPUs sharing a core are unknown: no such file"
    (root / f"{GROUP}/shell/cgroup.procs".lstrip("/")).unlink()
    assert refused(root) == (
        "the CPU quota is unknown: not a control group: it was removed, or another file system is mounted "
        "over it"
    )


def test_a_kernel_without_idle_groups_is_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(PrivilegeError) as caught, spinning([0], tmp_path):
        pytest.fail("it spins")
    group = tmp_path / f"pgdyno-awake-{os.getpid()}"
    assert str(caught.value) == f"this kernel has no idle control groups\nDETAIL:  no cpu.idle in {group}"
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def top() -> Iterator[Path]:
    """The real root of control groups; nothing of ours is left in it."""
    obstacle = why_no_spinners(Tree(), os.sched_getaffinity(0))
    found = find_top(Tree())
    if obstacle is not None or isinstance(found, Unknown):
        pytest.skip(f"CPUs may not be kept busy here: {obstacle}")
    yield found
    assert not list(found.glob(f"pgdyno-awake-{os.getpid()}"))


def test_each_cpu_has_a_process_below_all_others(top: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    with spinning(cpus, top) as pids:
        assert [os.sched_getaffinity(pid) for pid in pids] == [{cpu} for cpu in cpus]
        assert {os.sched_getscheduler(pid) for pid in pids} == {os.SCHED_IDLE}
        assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in pids} == {19}
        group = top / f"pgdyno-awake-{os.getpid()}"
        assert (group / "cpu.idle").read_text() == "1\n"
        assert {int(pid) for pid in (group / "cgroup.procs").read_text().split()} == {*pids}
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_they_end_with_whoever_started_them(top: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from pgdyno.host.probing.spinners import spinning\n"
        f"with spinning([0], Path({str(top)!r})) as pids:\n"
        "    print(*pids, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        starter.kill()
    wait_until(lambda: not Path(f"/proc/{pid}").exists())
    left = top / f"pgdyno-awake-{starter.pid}"
    with spinning([0], top):
        assert not left.exists()
