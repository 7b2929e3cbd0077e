"""CPU time of CPUs and of processes, as the kernel writes it."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

from pgdyno.postgres.process.processes import CpuClock, cpu_ns, program_of, running_from


def test_processes_that_have_ended_meanwhile_are_left_out() -> None:
    nobody = 4_194_305  # above the largest process id that Linux gives
    clock = CpuClock.of([os.getpid(), nobody])
    assert clock.read_ns() > 0


def test_a_process_that_has_ended_stays_at_its_last_reading() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        clock = CpuClock.of([process.pid])
        before = clock.read_ns()
        process.communicate()
    assert clock.read_ns() == before


def test_all_threads_of_a_process_count_those_that_have_ended_too() -> None:
    worker = threading.Thread(target=sum, args=(range(1_000_000),))
    worker.start()
    worker.join()
    leader_ns = int(Path(f"/proc/{os.getpid()}/schedstat").read_text().split()[0])
    used_ns = cpu_ns(os.getpid())
    assert used_ns is not None
    assert used_ns > leader_ns


def test_processes_are_found_by_where_their_program_is() -> None:
    own = Path(f"/proc/{os.getpid()}/exe").readlink()
    assert os.getpid() in running_from(own.parent)
    assert os.getpid() not in running_from(own.parent / "elsewhere")


def test_of_an_emulated_program_the_emulator_is_not_meant(tmp_path: Path) -> None:
    """As it was found for a server for Arm on x86, and so it is for processes that it forks."""
    (tmp_path / "exe").symlink_to("/usr/bin/qemu-aarch64-static")
    arguments = (
        "/usr/libexec/qemu-binfmt/aarch64-binfmt-P",
        "/srv/pg/bin/postgres",
        "postgres",
        "-D",
        "/data",
    )
    (tmp_path / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in arguments))
    assert program_of(tmp_path) == Path("/srv/pg/bin/postgres")
    (tmp_path / "cwd").symlink_to("/opt/arm/bin")
    (tmp_path / "cmdline").write_bytes(b"qemu-aarch64\0./postgres\0")
    assert program_of(tmp_path) == Path("/opt/arm/bin/postgres")
    (tmp_path / "cmdline").write_bytes(b"")  # of one that has ended, and nobody has waited for
    assert program_of(tmp_path) == Path("/usr/bin/qemu-aarch64-static")
