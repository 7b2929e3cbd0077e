"""What BOLT is called with and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.own_path import set_own_path

from pgdyno.base.errors import InstallationError
from pgdyno.builds.optimise.bolt import Bolt, find_bolt, reached, require_reached, taken_branches

SAID = """\
BOLT-INFO: 4189 out of 15349 functions in the binary (27.3%) have non-empty execution profile
BOLT-INFO: program-wide dynostats after all optimizations before SCTC and FOP:

          2612184837 : taken forward branches
          4021470460 : taken branches
          4852613001 : non-taken conditional branches
           401871696 : taken forward branches (-84.6%)
          1007965717 : taken branches (-74.9%)
"""


def test_what_bolt_says_is_understood() -> None:
    assert reached(SAID) == 4189
    assert taken_branches(SAID) == (4021470460, 1007965717)
    require_reached(SAID)


def test_counts_that_say_too_little_are_refused() -> None:
    with pytest.raises(InstallationError) as caught:
        require_reached(SAID.replace("4189 out of", "17 out of"))
    assert caught.value.message == "BOLT's profile covers only 17 functions"
    assert caught.value.hint == "name more workloads with --train, or remove bolt from the recipe"
    with pytest.raises(InstallationError, match="covers only 0 functions"):
        require_reached("")
    with pytest.raises(InstallationError, match="did not report the number of taken branches"):
        taken_branches("")


def test_an_older_bolt_without_its_library_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version, has_library in ((18, True), (21, False), (19, True)):
        home = tmp_path / f"llvm-{version}"
        (home / "bin").mkdir(parents=True)
        (home / "lib").mkdir()
        (home / "bin/llvm-bolt").write_text(f"#!/bin/sh\necho '  LLVM version {version}.1.0'\n")
        (home / "bin/llvm-bolt").chmod(0o755)
        if has_library:
            (home / "lib/libbolt_rt_instr.a").write_text("")
        (tmp_path / f"llvm-bolt-{version}").symlink_to(home / "bin/llvm-bolt")
    set_own_path(monkeypatch, tmp_path)
    assert find_bolt() == Bolt(tmp_path / "llvm-19/bin/llvm-bolt", "19.1.0")
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert find_bolt() is None


def test_computed_jumps_are_left_alone_where_bolt_would_lose_them() -> None:
    skipped = "--skip-funcs=ExecInterpExpr.*"
    here = Path("/usr/bin/llvm-bolt")
    for bolt_of, is_skipped in (
        (Bolt(here, "19.1.7"), True),
        (Bolt(here, "19.1.7", is_position_independent=False), False),
        (Bolt(here, "21.1.0"), False),
        (Bolt(here, "22.0.1"), False),
    ):
        assert (skipped in bolt_of.rearranging(Path("a"), Path("b"), Path("c"))) is is_skipped
        assert (skipped in bolt_of.counting(Path("a"), Path("b"), Path("c"))) is is_skipped
