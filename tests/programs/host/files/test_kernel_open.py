"""What is opened as a file of the kernel, and what is refused before it can be written to."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fix_machine import SWAPPINESS, Machine
from tests.unit.apply.machines import make_machine, put, value_of

from pgdyno.apply.writers.kernel_file import KernelFileWriter
from pgdyno.base.errors import RefusedError, SettingError
from pgdyno.base.ports import Found
from pgdyno.host.files import kernel_open
from pgdyno.host.files.kernel_open import hold_beneath, walk_beneath

QUEUE = "/sys/block/sda/queue/read_ahead_kb"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine whose block device is reached by a link, as in /sys, and a file that is not the kernel's."""
    machine = make_machine(tmp_path / "machine", {"/sys/devices/disk/sda/queue/read_ahead_kb": "128"})
    (machine / "sys/block").mkdir()
    (machine / "sys/block/sda").symlink_to("../devices/disk/sda")
    put(machine, "/etc/cron.d/backup", "# job [weekly]\nMAILTO=x\n0 3 * * * root backup")
    return machine


@pytest.fixture(params=["openat2", "without openat2"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also as on a kernel before 5.6."""
    if request.param == "without openat2":

        def unknown(*_: object) -> int:
            raise OSError(errno.ENOSYS, "Function not implemented")

        monkeypatch.setattr(kernel_open, "_openat2", unknown)


def why_refused(root: Path, path: str) -> str:
    """Try all that a trial does with a file; return why none of it is done."""
    writer, found = KernelFileWriter(root), Found("1", {"setting": "1"})
    attempts: list[Callable[[], object]] = [
        lambda: writer.read(path),
        lambda: writer.check(path),
        lambda: writer.rehearse(path, found),
        lambda: writer.write(path, "1"),
        lambda: writer.restore(path, found),
    ]
    said = set()
    for attempt in attempts:
        with pytest.raises(RefusedError) as caught:
            attempt()
        assert caught.value.exit_code == 4
        said.add(str(caught.value))
    (message,) = said
    return message


@pytest.mark.usefixtures("_either_way")
def test_links_within_sys_are_followed(root: Path) -> None:
    writer = KernelFileWriter(root)
    writer.check(QUEUE)
    writer.write(QUEUE, "256")
    assert value_of(root, "/sys/devices/disk/sda/queue/read_ahead_kb") == writer.value(QUEUE) == "256"


@pytest.mark.usefixtures("_either_way")
def test_a_link_out_of_sys_is_not(root: Path) -> None:
    (root / "sys/away").symlink_to("../etc/cron.d")
    (root / "sys/absolute").symlink_to(root / "etc/cron.d")
    before = value_of(root, "/etc/cron.d/backup")
    for name in ("away", "absolute"):
        assert why_refused(root, f"/sys/{name}/backup") == (
            f'"/sys/{name}/backup" is not a file of this kernel\n'
            f"DETAIL:  /sys/{name}/backup: a symbolic link in the path leads elsewhere; nothing was written"
        )
    assert value_of(root, "/etc/cron.d/backup") == before


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize("path", ["/proc/sys/vm/away", "/proc/irq/away", "/proc/sys/linked/swappiness"])
def test_below_proc_no_link_is_followed(root: Path, path: str) -> None:
    (root / "proc/irq").mkdir()
    for name in ("proc/sys/vm/away", "proc/irq/away"):
        (root / name).symlink_to("swappiness")
    (root / "proc/sys/linked").symlink_to("vm")
    said = why_refused(root, path)
    assert "the path contains a symbolic link" in said or "a component of the path is not a directory" in said
    assert value_of(root, SWAPPINESS) == "60"


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize("path", ["/proc/sys/../../etc/cron.d/backup", "/sys/../etc/cron.d/backup"])
def test_dots_do_not_lead_out(root: Path, path: str) -> None:
    assert "a symbolic link in the path leads elsewhere; nothing was written" in why_refused(root, path)


def test_other_directories_are_not_the_kernels(root: Path) -> None:
    before = value_of(root, "/etc/cron.d/backup")
    for path in ("/etc/cron.d/backup", "/proc/../etc/cron.d/backup", "/proc/sys", "/sysx/a"):
        assert "not below /proc/sys, /proc/irq or /sys; nothing was written" in why_refused(root, path)
    assert value_of(root, "/etc/cron.d/backup") == before


def test_a_directory_has_no_value(root: Path) -> None:
    assert "not a regular file; nothing was written" in why_refused(root, "/proc/sys/vm")


def test_what_shows_several_lines_is_not_written(root: Path) -> None:
    """The first of them, or the word in brackets, would take the place of all."""
    put(root, "/sys/devices/disk/sda/uevent", "# job [weekly]\nMAJOR=8")
    writer = KernelFileWriter(root)
    with pytest.raises(SettingError) as caught:
        writer.rehearse("/sys/block/sda/uevent", writer.read("/sys/block/sda/uevent"))
    assert str(caught.value) == (
        "/sys/block/sda/uevent is not changed, because it could not be restored\n"
        "DETAIL:  it shows several lines, but only one would be written\nHINT:  omit it"
    )
    assert value_of(root, "/sys/devices/disk/sda/uevent") == "# job [weekly]\nMAJOR=8"


def test_renaming_meanwhile_is_waited_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """openat2(2): EAGAIN where ".." is on the path and anything is renamed or mounted on the machine."""
    calls: list[object] = []
    openat2 = kernel_open._openat2

    def disturbed(*arguments: object) -> int:
        calls.append(arguments)
        if len(calls) < 3:
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        return openat2(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(kernel_open, "_openat2", disturbed)
    assert KernelFileWriter(root).value(QUEUE) == "128"
    assert len(calls) == 3


def test_nothing_stays_open(root: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    KernelFileWriter(root).write(QUEUE, "64")
    why_refused(root, "/sys/../etc/cron.d/backup")
    directory = os.open(root / "sys", os.O_PATH)
    for walk in (hold_beneath, walk_beneath):
        os.close(walk(directory, "block/sda/queue/read_ahead_kb", may_have_links=True))
        with pytest.raises(OSError, match="Invalid cross-device link"):
            walk(directory, "../etc", may_have_links=True)
    os.close(directory)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.root
@pytest.mark.usefixtures("_either_way")
def test_the_real_kernels_files_are_written_with_what_they_hold(machine: Machine) -> None:
    writer = KernelFileWriter()
    for path in filter(None, (SWAPPINESS, machine.queue and machine.read_ahead)):
        found = writer.read(path)
        writer.check(path)
        writer.rehearse(path, found)
        assert writer.value(path) == found.value == Path(path).read_text().strip()


_TRY = """
import sys
from pgdyno.apply.writers.kernel_file import KernelFileWriter
from pgdyno.base.errors import RefusedError
from pgdyno.base.ports import Found
writer, path = KernelFileWriter(), sys.argv[1]
for attempt in (writer.read, writer.check, lambda path: writer.rehearse(path, Found("1", {})), lambda path: writer.write(path, "1")):
    try:
        attempt(path)
    except RefusedError as error:
        print(error.detail)
"""  # noqa: E501 — a program of its own


def with_mounts(mounts: str, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of Python's where these mounts are, and nobody else sees them."""
    enter = ["unshare", "--mount", "--propagation", "private", "bash", "-c", f'{mounts} && exec "$@"', "bash"]
    done = subprocess.run(
        [*enter, sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    if "unshare failed" in done.stderr or "permission denied" in done.stderr.lower():
        pytest.skip(f"no mount namespaces here: {done.stderr}")
    return done


@pytest.mark.root
@pytest.mark.parametrize(
    ("path", "mount"),
    [
        (SWAPPINESS, "mount --bind {file} /proc/sys/vm/swappiness"),
        ("/sys/kernel/mm/transparent_hugepage/enabled",
         "mount --bind {file} /sys/kernel/mm/transparent_hugepage/enabled"),
        ("/sys/kernel/debug/backup", "mount --bind {directory} /sys/kernel/debug"),
        ("/sys/backup", "mount --bind {directory} /sys"),
    ],
)  # fmt: skip
def test_what_is_mounted_over_the_kernels_files_is_left_alone(tmp_path: Path, path: str, mount: str) -> None:
    file = tmp_path / "backup"
    file.write_text("precious\n")
    done = with_mounts(mount.format(file=file, directory=tmp_path), _TRY, path)
    why = "on a different file system than the kernel's; nothing was written"
    assert done.stdout == f"{path}: {why}\n" * 4, done.stderr
    assert file.read_text() == "precious\n"


_TRY_REGISTER = """
from pgdyno.apply.writers.msr import MsrWriter
from pgdyno.base.errors import RefusedError
for attempt in (MsrWriter().check, lambda key: MsrWriter().write(key, "0x0")):
    try:
        attempt("/dev/cpu/0/msr:0x1a4")
    except RefusedError as error:
        print(error.detail)
"""


@pytest.mark.root
@pytest.mark.skipif(not Path("/dev/cpu").is_dir(), reason="the module msr is not loaded")
def test_another_file_is_not_taken_for_registers(tmp_path: Path) -> None:
    device = tmp_path / "0/msr"
    device.parent.mkdir()
    device.write_text("precious" * 100)
    done = with_mounts(f"mount --bind {tmp_path} /dev/cpu", _TRY_REGISTER)
    expected = "/dev/cpu/0/msr: not the register device of CPU 0; nothing was written\n"
    assert done.stdout == expected * 2, done.stderr
    assert device.read_text() == "precious" * 100
