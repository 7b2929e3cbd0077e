"""Libraries in a process: read from this very process, and from texts of /proc as it writes them."""

from __future__ import annotations

import hashlib
import os
from io import BytesIO
from pathlib import Path

import pytest

from pgdyno.base.facts import Unknown
from pgdyno.host.files.tree import Tree
from pgdyno.host.processes.elf import defined_functions
from pgdyno.host.processes.loaded_libraries import inspect_libraries, loader_variables, mapped_programs

MAPS = """\
55d0c0a00000-55d0c0b00000 r--p 00000000 fe:00 11 /usr/lib/postgresql/15/bin/postgres
55d0c0b00000-55d0c1200000 r-xp 00100000 fe:00 11 /usr/lib/postgresql/15/bin/postgres
7f1b00000000-7f1b08000000 rw-s 00000000 00:01 1024 /dev/zero (deleted)
7f1b10000000-7f1b10100000 r-xp 00000000 fe:00 12 /opt/my libraries/libeat my.so
7f1b10100000-7f1b10200000 r-xp 00000000 fe:00 13 /usr/lib/x86_64-linux-gnu/libc.so.6
7f1b10200000-7f1b10300000 r-xp 00000000 00:00 0
7ffc00000000-7ffc00002000 r-xp 00000000 00:00 0 [vdso]
"""


def own_library(name: str) -> Path:
    """Return a library that this process has mapped."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    found = [one.path for one in mapped_programs(maps) if name in one.name]
    if not found:
        pytest.skip(f"this Python has no {name} mapped")
    return Path(found[0])


def test_files_of_code_are_found_once_with_blanks_in_their_names() -> None:
    assert tuple(one.path for one in mapped_programs(MAPS)) == (
        "/usr/lib/postgresql/15/bin/postgres",
        "/opt/my libraries/libeat my.so",
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
    )


def test_the_loaders_variables_are_kept_without_directories() -> None:
    environment = (
        "PGPASSWORD=secret\0LD_PRELOAD=/home/alice/libeatmydata.so libjemalloc.so.2\0"
        "LD_LIBRARY_PATH=/home/alice/lib\0OLD_PRELOAD=x"
    )
    digest = hashlib.sha256(b"/home/alice/lib").hexdigest()
    assert loader_variables(environment) == {
        "LD_PRELOAD": "libeatmydata.so libjemalloc.so.2",
        "LD_LIBRARY_PATH": f"sha256:{digest[:12]}",
    }


def test_the_c_library_defines_fsync_and_other_libraries_only_use_it() -> None:
    names = {"fsync", "fdatasync", "malloc", "no_such_function"}
    with own_library("libc.so.6").open("rb") as file:
        assert defined_functions(file, names) == frozenset({"fsync", "fdatasync", "malloc"})
    with own_library("libm.so.6").open("rb") as file:
        assert defined_functions(file, names) == frozenset()


def test_this_process_replaces_nothing() -> None:
    found = inspect_libraries(Tree(Path("/")), os.getpid(), {"fsync", "fdatasync"})
    assert found.replaced == {}
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a 64-bit little-endian ELF file"),
        (b"#!/bin/sh\n" * 100, "not a 64-bit little-endian ELF file"),
        (b"\x7fELF\x01\x01" + b"\0" * 100, "not a 64-bit little-endian ELF file"),
    ],
)
def test_what_is_no_library_is_unknown(content: bytes, reason: str) -> None:
    assert defined_functions(BytesIO(content), {"fsync"}) == Unknown(reason)


def test_a_library_that_is_cut_short_is_unknown() -> None:
    whole = own_library("libm.so.6").read_bytes()
    assert defined_functions(BytesIO(whole[: len(whole) // 2]), {"fsync"}) == Unknown("truncated file")


def test_a_process_of_somebody_else_is_unknown_with_the_reason(tmp_path: Path) -> None:
    found = inspect_libraries(Tree(tmp_path), 1, {"fsync"})
    assert found.unknown == ("/proc/1/environ: no such file", "/proc/1/maps: no such file")


def test_a_library_that_calls_itself_the_c_library_is_looked_at_unless_it_lies_where_that_does(
    tmp_path: Path,
) -> None:
    library = own_library("libc.so.6")
    process = tmp_path / "proc" / "7"
    (process / "root" / "opt").mkdir(parents=True)
    (process / "root" / "opt" / "libc.so.6").write_bytes(library.read_bytes())
    (process / "environ").write_text("A=1\0")
    (process / "maps").write_text(
        "7f1b10100000-7f1b10200000 r-xp 00000000 fe:00 13 /opt/libc.so.6\n"
        "7f1b10200000-7f1b10300000 r-xp 00000000 fe:00 13 /usr/lib/x86_64-linux-gnu/libc.so.6\n"
    )
    found = inspect_libraries(Tree(tmp_path), 7, {"fsync"})
    assert found.replaced == {"libc.so.6": ("fsync",)}


def test_a_c_library_that_was_upgraded_under_a_running_server_replaces_nothing(tmp_path: Path) -> None:
    process = tmp_path / "proc" / "7"
    path = "/usr/lib/x86_64-linux-gnu/libc.so.6 (deleted)"
    for place in (process / "map_files/7f1b10200000-7f1b10300000", process / "root" / path[1:]):
        place.parent.mkdir(parents=True)
        place.write_bytes(own_library("libc.so.6").read_bytes())
    (process / "environ").write_text("A=1\0")
    (process / "maps").write_text(f"7f1b10200000-7f1b10300000 r-xp 00000000 fe:00 13 {path}\n")
    found = inspect_libraries(Tree(tmp_path), 7, {"fsync"})
    assert (found.replaced, found.unknown) == ({}, ())


def mapping(file: Path, path: str) -> str:
    """Return the line of /proc/PID/maps for a file that is mapped by a path."""
    status = file.stat()
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    return f"00400000-00500000 r-xp 00000000 {device} {status.st_ino} {path}\n"


@pytest.fixture
def process(tmp_path: Path) -> Path:
    """The directory in /proc of a process that has mapped libm, which lies in /opt."""
    process = tmp_path / "proc" / "7"
    (process / "root" / "opt").mkdir(parents=True)
    (process / "environ").write_text("A=1\0")
    library = process / "root" / "opt" / "libm.so"
    library.write_bytes(own_library("libm.so.6").read_bytes())
    (process / "maps").write_text(mapping(library, "/opt/libm.so"))
    return process


def test_a_library_is_looked_at_by_its_name_if_that_leads_to_the_mapped_file(process: Path) -> None:
    found = inspect_libraries(Tree(process.parent.parent), 7, {"fsync"})
    assert (found.replaced, found.unknown) == ({}, ())


def test_another_file_of_a_mapped_ones_name_proves_nothing(process: Path) -> None:
    library = process / "root" / "opt" / "libm.so"
    library.rename(library.with_name("elsewhere"))
    library.write_bytes(own_library("libm.so.6").read_bytes())
    found = inspect_libraries(Tree(process.parent.parent), 7, {"fsync"})
    assert found.unknown == ("libm.so: not proven to be the mapped file",)


def test_a_file_without_a_name_is_unknown_whatever_is_called_like_its_end(process: Path) -> None:
    library = process / "root" / "opt" / "libm.so"
    line = mapping(library, "/opt/libm.so (deleted)")
    library.rename(library.with_name("elsewhere"))
    (process / "maps").write_text(line)
    found = inspect_libraries(Tree(process.parent.parent), 7, {"fsync"})
    assert found.unknown == ("libm.so (deleted): no such file",)
    library.with_name("libm.so (deleted)").write_bytes(own_library("libm.so.6").read_bytes())
    found = inspect_libraries(Tree(process.parent.parent), 7, {"fsync"})
    assert found.unknown == ("libm.so (deleted): not proven to be the mapped file",)


def test_a_pipe_in_a_librarys_place_is_not_waited_for(process: Path) -> None:
    (process / "root" / "opt" / "libm.so").unlink()
    os.mkfifo(process / "root" / "opt" / "libm.so")
    found = inspect_libraries(Tree(process.parent.parent), 7, {"fsync"})
    assert found.unknown == ("libm.so: not a regular file",)


def test_the_kernels_own_link_to_a_mapped_file_is_taken_first(process: Path) -> None:
    links = process / "map_files"
    links.mkdir()
    (links / "400000-500000").symlink_to(own_library("libc.so.6"))
    found = inspect_libraries(Tree(process.parent.parent), 7, {"fsync"})
    assert found.replaced == {"libm.so": ("fsync",)}
