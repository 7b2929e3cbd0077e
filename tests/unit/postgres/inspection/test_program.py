"""What a postmaster runs and was started with, on files as the kernel shows them; and on this process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.tree import NO_SUCH_FILE
from pgdyno.postgres.inspection.program import allocator_in, has_huge_pages, inspect_program, variables_in
from pgdyno.postgres.server import Program

GLIBC = "7f10c0000000-7f10c0026000 r--p 00000000 fe:01 4718651   /usr/lib/x86_64-linux-gnu/libc.so.6\n"
JEMALLOC = "7f10c1000000-7f10c1026000 r--p 00000000 fe:01 471    /usr/lib/x86_64-linux-gnu/libjemalloc.so.2\n"
HEAP = "55d0c0000000-55d0c0026000 rw-p 00000000 00:00 0          [heap]\n"


@pytest.mark.parametrize(
    ("maps", "name"),
    [
        (HEAP + GLIBC, "glibc"),
        (GLIBC + JEMALLOC, "jemalloc"),
        (GLIBC.replace("libc.so.6", "libc-2.31.so"), "glibc"),
        (GLIBC + JEMALLOC.replace("libjemalloc.so.2", "libtcmalloc_minimal.so.4 (deleted)"), "tcmalloc"),
        (GLIBC + JEMALLOC.replace("libjemalloc.so.2", "libmimalloc.so.2.0"), "mimalloc"),
        (GLIBC.replace("libc.so.6", "ld-musl-aarch64.so.1"), "musl"),
        (GLIBC.replace("libc.so.6", "libcrypto.so.3"), Unknown("no C library is mapped")),
        (HEAP, Unknown("no C library is mapped")),
    ],
)
def test_an_allocator_is_told_by_its_library(maps: str, name: str | Unknown) -> None:
    assert allocator_in(maps) == name


def test_of_the_environment_only_what_concerns_malloc_is_kept() -> None:
    environment = "PGPASSWORD=secret\0MALLOC_TOP_PAD_=67108864\0LD_PRELOAD=/a=b.so\0X_MALLOC_TOP_PAD_=1\0"
    assert variables_in(environment) == {"MALLOC_TOP_PAD_": "67108864", "LD_PRELOAD": "/a=b.so"}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("VmPTE:\t      80 kB\nHugetlbPages:\t  155648 kB\nCoreDumping:\t0\n", True),
        ("HugetlbPages:\t       0 kB\n", False),
        ("VmPTE:\t      80 kB\n", Unknown("this kernel does not report it")),
    ],
)
def test_huge_pages_are_seen_in_a_process(status: str, expected: object) -> None:
    assert has_huge_pages(status) == expected


def test_a_postmasters_files_are_read(tmp_path: Path) -> None:
    process = tmp_path / "proc/7"
    process.mkdir(parents=True)
    (process / "maps").write_text(GLIBC)
    (process / "environ").write_bytes(b"HOME=/\0GLIBC_TUNABLES=glibc.malloc.arena_max=1\0")
    (process / "exe").write_bytes(b"\x7fELF")
    (process / "status").write_text("Name:\tpostgres\nHugetlbPages:\t    2048 kB\n")
    (process / "stat").write_text(f"7 (postgres) S {'0 ' * 37}3 0 0\n")
    assert inspect_program(tmp_path, 7) == Program(
        atomics=Fact(Unknown("not a 64-bit little-endian ELF file"), "/proc/7/exe"),
        allocator=Fact("glibc", "/proc/7/maps"),
        malloc_variables=Fact({"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"}, "/proc/7/environ"),
        scheduling_policy=Fact("SCHED_BATCH", "/proc/7/stat"),
        has_huge_pages=Fact(value=True, source="/proc/7/status"),
    )


def test_an_empty_environment_is_known_and_a_process_that_is_gone_is_not(tmp_path: Path) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/environ").touch()
    found = inspect_program(tmp_path, 7)
    assert found.malloc_variables == Fact({}, "/proc/7/environ")
    assert (found.allocator.value, found.atomics.value) == (NO_SUCH_FILE, NO_SUCH_FILE)


def test_this_very_process_can_be_looked_at() -> None:
    found = inspect_program(Path("/"), os.getpid())
    assert found.allocator.is_known
    assert found.malloc_variables.is_known
    assert found.scheduling_policy == Fact("SCHED_OTHER", f"/proc/{os.getpid()}/stat")
    assert found.atomics.is_known == (os.uname().machine == "aarch64")
