"""Programs that move their machine code to huge pages: real ones, which the kernel is asked about."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.fix_huge_pages import needs_huge_pages

from pgdyno.builds.optimise.huge_text import LINKING, SOURCE, compiling, moved_bytes

MB = 1 << 20
PROGRAM = r"""
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

__asm__(".text\n.balign 64\nfar: .space 5 << 20, 0x90\nanswer: mov $42, %eax\nret\n");
__attribute__((used)) int ENTRY(int argc, char **argv) { return argc + (argv != 0); }
extern int answer(void);

static void show(const char *whose)
{
    char line[512];
    FILE *areas = fopen("/proc/self/smaps", "r");

    printf("%s %d\n", whose, answer());
    while (fgets(line, sizeof(line), areas))
        fputs(line, stdout);
    fflush(stdout);
}

int main(void)
{
    show("parent");
    if (fork() == 0) {
        show("child");
        _exit(0);
    }
    wait(0);
    return 0;
}
"""
"""Five megabytes of code, at the far end of which a function says 42; a server if ENTRY is its name."""
COUNTING = r"""
__asm__(".section .counting,\"awx\"\n.balign 64\ncounts: .space 5 << 20\n.text\n");
extern volatile long counts[];
__attribute__((destructor)) static void count(void) { counts[300000]++; }
"""
"""What BOLT adds to a program that counts: code and counts in one segment, which is written to."""

needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="not installed: gcc (apt install gcc libc6-dev)"
)
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the program tested is of x86-64")


def run(
    directory: Path, *, compiler: str, entry: str, linking: tuple[str, ...] = LINKING, more: str = ""
) -> list[str]:
    """Compile and run the program; return what it says of itself and of its child."""
    if shutil.which(compiler) is None:
        pytest.skip(f"not installed: {compiler} (apt install {compiler})")
    linker = ("-fuse-ld=lld",) if compiler.startswith("clang") else ()
    made, source, program = directory / "huge_text.o", directory / "program.c", directory / "program"
    subprocess.run(compiling(compiler, SOURCE, made), check=True)
    source.write_text(PROGRAM + more)
    flags = ("-O2", "-fPIE", "-pie", "-rdynamic", f"-DENTRY={entry}")
    argv = [compiler, *flags, str(source), *linker, *linking, str(made), "-o", str(program)]
    subprocess.run(argv, check=True)
    said = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    parent, child = said.split("child ")
    assert parent.startswith("parent 42\n")
    assert child.startswith("42\n")
    return [parent, child]


@needs_huge_pages
@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_a_server_and_its_children_run_on_huge_pages(tmp_path: Path, compiler: str) -> None:
    """Five megabytes of code lie on three pages of two, or, if the heap is in the way, on two."""
    for smaps in run(tmp_path, compiler=compiler, entry="PostmasterMain"):
        assert moved_bytes(smaps) in (4 * MB, 6 * MB)
        assert not re.search(r"^\S+ \S*w\S*x", smaps, re.MULTILINE)  # nothing is writable and executable


@needs_gcc
def test_other_programs_stay_as_they_are(tmp_path: Path) -> None:
    for smaps in run(tmp_path, compiler="gcc", entry="client_main"):
        assert moved_bytes(smaps) == 0


@needs_huge_pages
@needs_gcc
def test_code_that_does_not_begin_at_a_huge_page_is_moved_from_the_first_one_on(tmp_path: Path) -> None:
    for smaps in run(tmp_path, compiler="gcc", entry="PostmasterMain", linking=()):
        assert moved_bytes(smaps) in (2 * MB, 4 * MB, 6 * MB)


@needs_huge_pages
@needs_gcc
def test_code_that_is_written_to_stays_where_it_is(tmp_path: Path) -> None:
    """The program ends with a write to it, and would be ended by that."""
    for smaps in run(tmp_path, compiler="gcc", entry="PostmasterMain", more=COUNTING):
        assert moved_bytes(smaps) in (4 * MB, 6 * MB)
        assert re.search(r"^\S+ rwx", smaps, re.MULTILINE)


@needs_huge_pages
@needs_gcc
def test_where_the_kernel_gives_none_everything_stays_as_it_was(tmp_path: Path) -> None:
    """A process may be denied huge pages though the system has them: prctl(2), PR_SET_THP_DISABLE."""
    denied = "#include <sys/prctl.h>\n#include <unistd.h>\nint main(int n, char **words)\n"
    denied += "{ prctl(41, 1, 0, 0, 0); return n + execv(words[1], words + 1); }\n"
    run(tmp_path, compiler="gcc", entry="PostmasterMain")
    (tmp_path / "deny.c").write_text(denied)
    subprocess.run(["gcc", str(tmp_path / "deny.c"), "-o", str(tmp_path / "deny")], check=True)
    argv = [str(tmp_path / "deny"), str(tmp_path / "program")]
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    assert said.startswith("parent 42\n")
    assert moved_bytes(said) == 0
    assert not re.search(r"^\S+ r-xp 00000000 00:00 0 *$", said, re.MULTILINE)


def test_only_machine_code_counts() -> None:
    """Two areas of a process: its heap, and code of its own; the kernel's format."""
    smaps = (
        "55a000000000-55a000400000 r-xp 00000000 00:00 0 \n"
        "AnonHugePages:      4096 kB\nFilePmdMapped:         0 kB\nVmFlags: rd ex mr mw me hg \n"
        "55a0005e5000-55a000a28000 rw-p 00000000 00:00 0                          [heap]\n"
        "AnonHugePages:      2048 kB\nVmFlags: rd wr mr mw me ac \n"
    )
    assert moved_bytes(smaps) == 4 * MB
    assert moved_bytes("") == 0
