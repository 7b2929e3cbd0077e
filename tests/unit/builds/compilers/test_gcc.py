"""GCC's flags."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.builds.compiling.test_build_plan import COUNTS, OBJECTS, plan

from pgdyno.builds.compilers.gcc import Gcc


def test_gcc_keeps_static_libraries_readable() -> None:
    final = replace(plan(), compiler=Gcc()).final(COUNTS, OBJECTS)
    assert final["PROFILE"].split()[-2:] == ["-flto=auto", "-ffat-lto-objects"]
    assert final["AR"] == "gcc-ar"
