"""Programs of compared builds are read anew: none is faster for having been written a moment ago."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pgdyno.measure.arenas.scratch_arena import forget_programs
from pgdyno.postgres.process.installation import Installation

pytestmark = pytest.mark.skipif(
    shutil.which("fincore") is None, reason="fincore (util-linux) is not installed"
)


def installation(directory: Path, name: str) -> Installation:
    """Return an installation whose server's program is a megabyte, and in the page cache."""
    programs = directory / name / "bin"
    programs.mkdir(parents=True)
    (programs / "postgres").write_bytes(b"code" * (1 << 18))
    return Installation(programs, "18.6", 18, name)


def cached_bytes(of: Installation) -> int:
    argv = ["fincore", "--bytes", "--noheadings", "--output", "RES", of.program("postgres")]
    return int(subprocess.check_output(argv, text=True))


def test_programs_of_several_builds_are_forgotten(tmp_path: Path) -> None:
    if subprocess.check_output(["stat", "-f", "-c", "%T", str(tmp_path)], text=True).strip() == "tmpfs":
        pytest.skip("files of a tmpfs are nowhere but in memory")
    builds = [installation(tmp_path, name) for name in ("one", "other")]
    assert [cached_bytes(one) for one in builds] == [1 << 20, 1 << 20]
    forget_programs(builds)
    assert [cached_bytes(one) for one in builds] == [0, 0]
    assert Path(builds[0].program("postgres")).read_bytes() == b"code" * (1 << 18)


def test_where_all_arms_run_one_program_it_stays(tmp_path: Path) -> None:
    one = installation(tmp_path, "one")
    forget_programs([one, one])
    assert cached_bytes(one) == 1 << 20
