"""Nothing that counts gets into an installation."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import nullcontext as does_not_raise
from pathlib import Path

import pytest

from pgdyno.base.errors import InstallationError
from pgdyno.builds.verifying.verification import require_no_instrumentation

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="not installed: gcc (apt install gcc libc6-dev)"
)
SOURCE = "int main(void) { return 0; }\n"


def compile_to(program: Path, *flags: str) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    argv = ["gcc", "-x", "c", *flags, "-o", str(program), "-"]
    subprocess.run(argv, input=SOURCE, text=True, check=True)


def test_an_everyday_program_counts_nothing(tmp_path: Path) -> None:
    with does_not_raise():
        compile_to(tmp_path / "bin/postgres", "-O2")
        require_no_instrumentation(tmp_path)


@pytest.mark.parametrize("flags", [("-fprofile-generate",), ("-fprofile-generate", "-c")])
def test_a_program_or_library_that_counts_is_named(flags: tuple[str, ...], tmp_path: Path) -> None:
    compile_to(tmp_path / "bin/postgres", "-O2")
    compile_to(tmp_path / "lib/libpgport.a", *flags)
    with pytest.raises(InstallationError) as caught:
        require_no_instrumentation(tmp_path)
    assert caught.value.message == "1 files of the finished build are still instrumented"
    assert caught.value.detail == "for example lib/libpgport.a"
