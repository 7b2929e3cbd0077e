"""What the host's compiler is asked: headers, libraries, flags, and the instructions of a CPU."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.builds.needs import prerequisites
from pgdyno.builds.needs.prerequisites import HEADERS, Requirement, find_options
from pgdyno.builds.spec.instructions import instructions, lacking

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="not installed: gcc (apt install gcc libc6-dev)"
)


def test_headers_are_asked_of_the_compiler() -> None:
    assert prerequisites._has_header("gcc", HEADERS[0].name)
    assert not prerequisites._has_header("gcc", "pgdyno/no/such/header.h")


def test_a_header_without_its_library_is_another_architectures() -> None:
    wanted = {"stdlib.h": "c", "math.h": "of-no-architecture-here", "no/such.h": "m", "complex.h": "m"}
    assert prerequisites._there("gcc", wanted) == ["stdlib.h", "complex.h"]
    del wanted["math.h"]
    assert prerequisites._there("gcc", wanted) == ["stdlib.h", "complex.h"]


def test_flags_that_the_compiler_does_not_take_are_refused_before_anything_is_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prerequisites, "is_installed", lambda _: True)
    monkeypatch.setattr(prerequisites, "_there", lambda _, libraries: list(libraries))
    with pytest.raises(UsageError) as caught:
        find_options((17,), "-O2 -fno-such-flag", wants_liburing=False)
    assert caught.value.message == 'gcc does not accept --cflags "-O2 -fno-such-flag"'
    assert "-fno-such-flag" in (caught.value.detail or "")


def test_what_is_there_is_not_missed() -> None:
    include = ("echo", "-I/usr/include")
    for one in (
        Requirement("sh", "dash", program="sh"),
        Requirement("/", "base-files", path="/"),
        Requirement("stdlib.h", "libc6-dev", headers=("no/such.h", "stdlib.h"), arguments=include),
        Requirement("libm.so", "libc6-dev", arguments=("echo", "-lm")),
    ):
        assert prerequisites._is_there(one, "gcc")
    assert not prerequisites._is_there(Requirement("l.so", "l", arguments=("echo", "-lno-such")), "gcc")
    assert not prerequisites._is_there(Requirement("l.so", "l", arguments=("/no/such/perl",)), "gcc")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions are those of x86-64")
def test_code_for_this_cpu_runs_on_this_cpu() -> None:
    lines = Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
    flags = next(line for line in lines if line.startswith("flags")).split(":")[1].split()
    own = instructions("gcc", "native", "x86_64")
    assert "SSE2" in own
    assert "SSE2_MATH" not in own
    assert lacking(own, flags) == ()
    assert lacking(instructions("gcc", "x86-64-v3", "x86_64"), ["sse", "sse2"])[:3] == ("AVX", "AVX2", "BMI")
