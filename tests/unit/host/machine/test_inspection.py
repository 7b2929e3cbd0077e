"""The machine that the tests run on, against what Python's standard library says about it."""

from __future__ import annotations

import gzip
import os
import platform
import resource
import shutil
from contextlib import nullcontext as does_not_raise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fix_servers import RealServer
from tests.unit.host.machines import FixtureTree, load

from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.host.files.tree import NO_SUCH_FILE, Tree
from pgdyno.host.machine.inspection import (
    inspect_host,
    inspect_kernel,
    inspect_tree,
    options_of_compiler,
    parse_os_release,
)


def test_the_running_host_is_what_the_standard_library_says() -> None:
    host = inspect_host()
    assert host.hostname.value == platform.node()
    assert host.kernel.release.value == platform.release()
    assert host.cpu.architecture.value == platform.machine()
    assert host.cpu.logical_count.value == os.cpu_count()
    assert host.memory.page_bytes.value == os.sysconf("SC_PAGE_SIZE")
    assert host.limits.cpuset.value == tuple(sorted(os.sched_getaffinity(0)))


def test_the_running_process_has_the_limits_that_the_kernel_enforces() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert inspect_host().limits.rlimits.or_else({})["Max open files"] == str(soft)


def test_free_space_is_that_of_the_data_directorys_file_system(tmp_path: Path) -> None:
    (mount,) = inspect_host(data_directory=tmp_path).mounts.or_else(())
    total = shutil.disk_usage(tmp_path).total
    assert str(tmp_path).startswith(mount.target)
    assert 0 <= mount.available_bytes.or_else(-1) <= total


def test_a_data_directory_is_stated_where_the_postmasters_may_not_be_read() -> None:
    machine = load("bare-metal-2-socket")
    tree = FixtureTree(machine.tree.root, ("/proc/2113/cwd",))
    (mount,) = inspect_tree(tree, pid=2113, data_directory=Path("/pgdata/other")).mounts.or_else(())
    assert mount.target == "/pgdata"
    assert inspect_tree(tree, pid=2113).mounts == unknown("permission denied", "/proc/2113/cwd")


@pytest.mark.server
def test_a_running_servers_limits_and_mount_are_found_by_its_postmaster(pg18: RealServer) -> None:
    host = inspect_host(pid=pg18.pid)
    assert host.limits.rlimits.source == f"/proc/{pg18.pid}/limits"
    (mount,) = host.mounts.or_else(())
    assert str(pg18.data_directory).startswith(mount.target)


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
