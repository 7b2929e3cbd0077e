"""Values of a running kernel, on a directory that looks like one."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fix_disk import small_disk
from tests.unit.apply.machines import make_machine

from pgdyno.apply.writers.kernel_file import KernelFileWriter, reset_with_key
from pgdyno.base.errors import PrivilegeError, SettingError
from pgdyno.base.ports import Found

SWAPPINESS, BYTES, RATIO = (f"/proc/sys/vm/{name}" for name in ("swappiness", "dirty_bytes", "dirty_ratio"))
BOOT = "/proc/sys/kernel/random/boot_id"
POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        SWAPPINESS: "60",
        BYTES: "0",
        RATIO: "20",
        BOOT: "first",
        "/proc/sys/vm/compact_memory": "",
        f"{POOL}/nr_hugepages": "100",
        f"{POOL}/surplus_hugepages": "0",
        "/proc/meminfo": "MemTotal: 90000 kB\nMemAvailable: 20000 kB\nHugepagesize: 2048 kB",
    }
    for path, value in files.items():
        put(tmp_path, path, value)
    return tmp_path


def put(root: Path, path: str, value: str) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{value}\n")


def shown(root: Path, path: str) -> str:
    return (root / path.lstrip("/")).read_text()


def test_what_was_found_comes_back(root: Path) -> None:
    writer = KernelFileWriter(root)
    found = writer.read(SWAPPINESS)
    writer.write(SWAPPINESS, "5")
    assert (writer.verify(SWAPPINESS), shown(root, SWAPPINESS)) == ("5", "5\n")
    writer.restore(SWAPPINESS, found)
    writer.restore(SWAPPINESS, found)
    assert shown(root, SWAPPINESS) == "60\n"
    assert found == Found("60", {"setting": "60", "boot_id": "first"})


def test_a_limit_in_bytes_is_undone_by_the_ratio_that_it_put_out_of_force(root: Path) -> None:
    writer = KernelFileWriter(root)
    found = writer.read(BYTES)
    assert found.state["counterpart"] == "20"
    writer.write(BYTES, "536870912")
    put(root, RATIO, "0")  # as the kernel does
    writer.restore(BYTES, found)
    assert shown(root, RATIO) == "20\n"


def test_a_ratio_that_somebody_else_has_set_meanwhile_is_left_to_them(root: Path) -> None:
    writer = KernelFileWriter(root)
    found = writer.read(BYTES)
    writer.write(BYTES, "536870912")
    put(root, BYTES, "0")
    put(root, RATIO, "7")
    writer.restore(BYTES, found)
    assert shown(root, RATIO) == "7\n"


def test_bytes_that_were_set_before_are_written_back_themselves(root: Path) -> None:
    put(root, BYTES, "1048576")
    put(root, RATIO, "0")
    writer = KernelFileWriter(root)
    found = writer.read(BYTES)
    writer.write(BYTES, "536870912")
    writer.restore(BYTES, found)
    assert (shown(root, BYTES), shown(root, RATIO)) == ("1048576\n", "0\n")


def test_after_a_restart_of_the_machine_nothing_is_restored(root: Path) -> None:
    writer = KernelFileWriter(root)
    found = writer.read(SWAPPINESS)
    put(root, BOOT, "second")
    put(root, SWAPPINESS, "30")
    assert writer.is_gone(found)
    writer.restore(SWAPPINESS, found)
    assert shown(root, SWAPPINESS) == "30\n"


def test_a_file_that_is_not_there_is_no_setting_of_this_kernel(root: Path) -> None:
    missing = "/proc/sys/kernel/sched_min_granularity_ns"
    for attempt in (KernelFileWriter(root).read, KernelFileWriter(root).check):
        with pytest.raises(SettingError) as caught:
            attempt(missing)
        assert str(caught.value) == (
            'this kernel has no "kernel.sched_min_granularity_ns"\n'
            "DETAIL:  /proc/sys/kernel/sched_min_granularity_ns does not exist"
        )


@pytest.mark.root
def test_a_file_system_that_is_read_only_is_seen_before_anything_is_changed() -> None:
    """As /proc/sys is in most containers."""
    with small_disk() as disk:
        put(disk.directory, SWAPPINESS, "60")
        subprocess.run(["mount", "-o", "remount,ro", str(disk.directory)], check=True)
        writer = KernelFileWriter(disk.directory)
        attempts: list[Callable[[], None]] = [
            lambda: writer.check(SWAPPINESS),
            lambda: writer.write(SWAPPINESS, "5"),
        ]
        for attempt in attempts:
            with pytest.raises(PrivilegeError) as caught:
                attempt()
            assert str(caught.value) == (
                "cannot change vm.swappiness\n"
                "DETAIL:  /proc/sys/vm/swappiness: Read-only file system\n"
                "HINT:  run pgdyno as root, on the machine itself rather than in a container"
            )


def test_looking_whether_a_file_may_be_written_leaves_it_as_it_is(root: Path) -> None:
    KernelFileWriter(root).check(SWAPPINESS)
    assert shown(root, SWAPPINESS) == "60\n"


def test_a_value_that_is_refused_is_said_with_the_kernels_words(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_file: int, _content: bytes) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr("os.write", refuse)
    with pytest.raises(SettingError) as caught:
        KernelFileWriter(root).write(SWAPPINESS, "9999")
    assert str(caught.value) == 'the kernel rejects "9999" for vm.swappiness\nDETAIL:  Invalid argument'


def test_a_file_that_goes_away_meanwhile_is_said(root: Path) -> None:
    with pytest.raises(SettingError, match=r'this kernel has no "vm\.nonesuch"'):
        KernelFileWriter(root).write("/proc/sys/vm/nonesuch", "1")


def test_a_rehearsal_writes_what_is_there(root: Path) -> None:
    writer = KernelFileWriter(root)
    for path in (SWAPPINESS, BYTES, RATIO):
        writer.rehearse(path, writer.read(path))
    assert [shown(root, path) for path in (SWAPPINESS, BYTES, RATIO)] == ["60\n", "0\n", "20\n"]


def test_two_limits_of_0_could_not_be_given_back(root: Path) -> None:
    """The kernel lets dirty_bytes be as it is when dirty_ratio is set to what it shows already: 0."""
    put(root, RATIO, "0")
    writer = KernelFileWriter(root)
    with pytest.raises(SettingError) as caught:
        writer.rehearse(BYTES, writer.read(BYTES))
    assert str(caught.value) == (
        "vm.dirty_bytes is not changed, because it could not be restored\n"
        "DETAIL:  vm.dirty_bytes and vm.dirty_ratio are both 0: writing one may not change the other\n"
        "HINT:  omit it"
    )


def test_a_scheduler_is_read_with_what_the_kernel_sets_anew(root: Path) -> None:
    queue = "/sys/block/sda/queue"
    put(root, f"{queue}/scheduler", "none [mq-deadline]")
    put(root, f"{queue}/nr_requests", "64")
    put(root, f"{queue}/iosched/fifo_batch", "3")
    writer = KernelFileWriter(root)
    found = writer.read(f"{queue}/scheduler")
    assert found.value == "mq-deadline"
    assert reset_with_key(found) == {f"{queue}/nr_requests": "64", f"{queue}/iosched/fifo_batch": "3"}


def test_what_the_kernel_keeps_free_for_huge_pages_is_found_with_their_policy(tmp_path: Path) -> None:
    policy, kept_free = "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/sys/vm/min_free_kbytes"
    root = make_machine(tmp_path, {policy: "always [madvise] never", kept_free: "67584"})
    assert reset_with_key(KernelFileWriter(root).read(policy)) == {kept_free: "67584"}
