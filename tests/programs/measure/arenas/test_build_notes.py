"""What the reader of a comparison of two builds is told, with builds made of captured texts."""

from __future__ import annotations

from pathlib import Path

from pgdyno.measure.arenas.scratch_arena import build_note, patch_note
from pgdyno.postgres.process.account import caller
from pgdyno.postgres.process.installation import Installation

CAPTURED = Path(__file__).parents[3] / "fixtures/pg_config"
GCC_12 = "gcc (Debian 12.2.0-14+deb12u1) 12.2.0"
GCC_14 = "gcc (Debian 14.2.0-19) 14.2.0"


def build(directory: Path, name: str, compiler: str, *, has_pg_config: bool = True) -> Installation:
    """Make an installation that says of itself what the captured one said."""
    programs = directory / name
    programs.mkdir()
    version = name.removeprefix("source-")
    text = f"\0\0PostgreSQL {version}.1 on x86_64-pc-linux-gnu, compiled by {compiler}, 64-bit\0\0"
    (programs / "postgres").write_bytes(b"\x7fELF\xff" + text.encode())
    if has_pg_config:
        (programs / "pg_config").write_text(f"#!/bin/sh\ncat '{CAPTURED / name}.txt'\n")
        (programs / "pg_config").chmod(0o755)
    return Installation(programs, f"{version}.1", int(version), name)


def test_the_compilers_version_is_compared_as_it_stands_in_the_servers_program(tmp_path: Path) -> None:
    one, other = build(tmp_path, "source-17", GCC_12), build(tmp_path, "source-18", GCC_14)
    assert build_note(one, other, caller()) == (
        "CONFOUNDED: source-17 and source-18 differ in more than their version: source-17 was compiled with "
        f"{GCC_12}, source-18 with {GCC_14}; only source-18 has io_uring, which exists from PostgreSQL 18 on"
    )


def test_differences_that_are_accepted_stay_listed(tmp_path: Path) -> None:
    one, other = build(tmp_path, "source-17", GCC_12), build(tmp_path, "source-18", GCC_14)
    confounded, accepted = (
        build_note(one, other, caller(), is_accepted=accepts) for accepts in (False, True)
    )
    assert accepted == confounded.replace("CONFOUNDED", "accepted")


def test_builds_that_are_alike_need_no_acceptance(tmp_path: Path) -> None:
    one, other = build(tmp_path, "source-17", GCC_12), build(tmp_path, "source-18", GCC_12)
    for accepts in (False, True):
        assert build_note(one, other, caller(), is_accepted=accepts) == (
            "source-17 and source-18 were built the same way; "
            "only source-18 has io_uring, which exists from PostgreSQL 18 on"
        )


def test_a_build_that_nobody_knows_is_confounded_unless_it_is_accepted(tmp_path: Path) -> None:
    one = build(tmp_path, "source-17", GCC_12)
    other = build(tmp_path, "source-18", GCC_12, has_pg_config=False)
    assert build_note(one, other, caller()) == (
        "CONFOUNDED: the configuration of source-18 is unknown (no such program)"
    )
    assert build_note(one, other, caller(), is_accepted=True).startswith("accepted: the configuration of")


def test_a_program_without_such_a_text_is_compared_by_the_compilers_name(tmp_path: Path) -> None:
    one, other = build(tmp_path, "source-17", GCC_12), build(tmp_path, "source-18", GCC_14)
    (other.bin_directory / "postgres").write_bytes(b"\x7fELF")
    assert not other.version_text().is_known
    assert build_note(one, other, caller()).startswith("source-17 and source-18 were built the same way")


def test_a_server_from_patched_sources_says_so_itself(tmp_path: Path) -> None:
    patched = build(tmp_path, "source-18", GCC_12)
    assert patch_note(patched, caller()) is None
    text = (CAPTURED / "source-18.txt").read_text().replace("'--with-lz4'", "'PGDYNO_PATCHES=first,second'")
    (tmp_path / "said").write_text(text)
    (patched.bin_directory / "pg_config").write_text(f"#!/bin/sh\ncat '{tmp_path}/said'\n")
    assert patch_note(patched, caller()) == (
        "PATCHED: PostgreSQL 18.1 (source-18) is not PostgreSQL as it was released: first, second"
    )
    assert patch_note(build(tmp_path, "source-17", GCC_12, has_pg_config=False), caller()) is None
