"""A real gdb on programs with and without debug information."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pgdyno.host.tracing.gdb import read_types
from pgdyno.model.facts import Unknown
from pgdyno.profiling.misses.element_types import parse_elements

# Types called like PostgreSQL's, with holes of our own: 7 bytes before the pointer, 6 at the end.
SOURCE = """
typedef struct HASHELEMENT { char first; void *link; short last; } HASHELEMENT;
typedef struct { int key[4]; int id; } BufferLookupEnt;
typedef struct LWLock { short tranche; int state; struct { char a; int b; } waiters; } LWLock;
typedef union LWLockPadded { LWLock lock; char pad[32]; } LWLockPadded;
HASHELEMENT head; BufferLookupEnt entry; LWLockPadded lock;
int main(void) { return 0; }
"""
NAMES = ("HASHELEMENT", "BufferLookupEnt", "LWLock", "LWLockPadded", "PGPROC")
needs_gdb = pytest.mark.skipif(
    shutil.which("gdb") is None or shutil.which("gcc") is None, reason="gdb or gcc is not installed"
)


def compiled(directory: Path, *options: str) -> Path:
    (directory / "main.c").write_text(SOURCE)
    program = directory / "main"
    subprocess.run(["gcc", *options, "-o", program, directory / "main.c"], check=True)
    return program


@needs_gdb
def test_sizes_alignment_and_holes_are_those_of_the_source(tmp_path: Path) -> None:
    words = read_types(compiled(tmp_path, "-g"), NAMES, list)
    assert not isinstance(words, Unknown)
    entry, lock = parse_elements(words, 64)
    # 24 bytes of a head, 13 of them unused, and 20 of an entry in 24.
    assert (entry.element_bytes, entry.alignment_bytes, entry.unused_bytes) == (48, 8, 17)
    assert (entry.fewest_lines, entry.most_lines, entry.shares_lines) == (1, 2, True)
    # 16 bytes, of which 2 follow the tranche and 3 the character; and 16 of padding.
    assert (lock.element_bytes, lock.alignment_bytes, lock.unused_bytes) == (32, 4, 21)


@needs_gdb
def test_a_stripped_program_is_told_with_the_package_to_install(tmp_path: Path) -> None:
    found = read_types(compiled(tmp_path, "-s"), NAMES, list)
    assert found == Unknown(
        "there is no debug information of this program: it is in the package postgresql-NN-dbgsym (PGDG; "
        "Debian has an archive for such packages, debian-debug) or postgresqlNN-debuginfo (RPM), of exactly "
        "the server's version, or in a build of your own with --enable-debug"
    )


@needs_gdb
def test_debug_information_in_a_file_of_its_own_is_found(tmp_path: Path) -> None:
    program = compiled(tmp_path, "-g")
    apart = tmp_path / "main.debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, apart], check=True)
    subprocess.run(["strip", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={apart}", program], check=True)
    words = read_types(program, NAMES, list)
    assert not isinstance(words, Unknown)
    assert len(parse_elements(words, 64)) == 2


def test_without_gdb_its_package_is_named(tmp_path: Path) -> None:
    found = read_types(tmp_path / "postgres", NAMES, list, find=lambda _: None)
    assert found == Unknown("gdb is not installed: apt-get install gdb, dnf install gdb")
