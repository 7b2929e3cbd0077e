"""Distributions, as os-release(5) allows them; how the kernel was built."""

from __future__ import annotations

import gzip
from contextlib import nullcontext as does_not_raise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.tree import NO_SUCH_FILE, Tree
from pgdyno.host.machine.kernel import inspect_kernel, options_of_compiler, parse_os_release


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"', "Debian GNU/Linux 12 (bookworm)"),
        ("PRETTY_NAME='Arch Linux'", "Arch Linux"),
        ("PRETTY_NAME=Void", "Void"),
        (r'PRETTY_NAME="A \"quoted\" name"', 'A "quoted" name'),
    ],
)
def test_the_distributions_name_may_be_quoted(line: str, name: str) -> None:
    assert parse_os_release(f"NAME=x\n{line}\nID=x\n") == name


def test_a_file_without_a_name_or_with_a_broken_one_is_unknown() -> None:
    assert parse_os_release("NAME=x\n") == Unknown("no PRETTY_NAME")
    assert parse_os_release('PRETTY_NAME="x\n') == Unknown('PRETTY_NAME is not quoted correctly: "x')


@given(st.text())
def test_no_text_makes_the_parser_fail(text: str) -> None:
    with does_not_raise():
        parse_os_release(text)


CONFIGURATION = """\
# CONFIG_PROPELLER_CLANG is not set
CONFIG_CC_VERSION_TEXT="clang version 19.1.7"
CONFIG_ARCH_SUPPORTS_AUTOFDO_CLANG=y
CONFIG_AUTOFDO_CLANG=y
"""
CLANG = "Linux version 6.18.0 (b@h) (clang version 19.1.7, LLD 19.1.7) #1 SMP"
GCC = "Linux version 6.18.0 (b@h) (gcc (Debian 12.2.0-14) 12.2.0, GNU ld (GNU Binutils) 2.40) #1 SMP"


def kernel_with(root: Path, path: str, content: bytes) -> Fact[tuple[str, ...]]:
    for name, text in (("proc/sys/kernel/osrelease", b"6.18.0\n"), (path, content)):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text)
    return inspect_kernel(Tree(root)).profile_options


@pytest.mark.parametrize("path", ["boot/config-6.18.0", "lib/modules/6.18.0/config"])
def test_profile_options_are_those_that_the_configuration_sets(tmp_path: Path, path: str) -> None:
    found = kernel_with(tmp_path, path, CONFIGURATION.encode())
    assert found == Fact(("CONFIG_AUTOFDO_CLANG",), f"/{path}")


def test_the_running_kernels_own_configuration_comes_first(tmp_path: Path) -> None:
    kernel_with(tmp_path, "boot/config-6.18.0", b"")
    both = f"{CONFIGURATION}CONFIG_PROPELLER_CLANG=y\n".encode()
    found = kernel_with(tmp_path, "proc/config.gz", gzip.compress(both))
    assert found == Fact(("CONFIG_AUTOFDO_CLANG", "CONFIG_PROPELLER_CLANG"), "/proc/config.gz")


@pytest.mark.parametrize("content", [b"", b"plain text", gzip.compress(CONFIGURATION.encode())[:-9]])
def test_a_configuration_that_cannot_be_unpacked_leaves_the_next_to_tell(
    tmp_path: Path, content: bytes
) -> None:
    kernel_with(tmp_path, "boot/config-6.18.0", CONFIGURATION.encode())
    assert kernel_with(tmp_path, "proc/config.gz", content).source == "/boot/config-6.18.0"


def test_without_a_configuration_the_compiler_may_tell(tmp_path: Path) -> None:
    assert kernel_with(tmp_path, "proc/version", GCC.encode()) == Fact((), "/proc/version")
    assert isinstance(options_of_compiler(CLANG), Unknown)


def test_a_host_that_shows_neither_leaves_it_unknown(tmp_path: Path) -> None:
    assert inspect_kernel(Tree(tmp_path)).profile_options == Fact(NO_SUCH_FILE, "/proc/config.gz")
