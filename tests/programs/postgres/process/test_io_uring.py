"""Why a server cannot use io_uring: the words of PostgreSQL 18.6, as it wrote them on Linux 6.18."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.host.probes import IoUringCause
from pgdyno.postgres.process.account import caller
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.io_uring import io_uring_obstacle, obstacle_of

STAMP = "2026-11-21 14:04:25.587 GMT [32134] "
SKIPPED = f'{STAMP}LOG:  skipping missing configuration file "/data/postgresql.auto.conf"\n'
NO_LIBURING = (
    f'{STAMP}FATAL:  invalid value for parameter "io_method": "io_uring"\n'
    f"{STAMP}HINT:  Available values: sync, worker.\n"
)
BEFORE_18 = f'{STAMP}FATAL:  unrecognized configuration parameter "io_method"\n'
TOO_FEW_FILES = (
    f"{SKIPPED}{STAMP}FATAL:  could not setup io_uring queue: Too many open files\n"
    f'{STAMP}HINT:  Consider increasing "ulimit -n" to at least 1142.\n'
)


def queue(reason: str) -> str:
    return f"{SKIPPED}{STAMP}FATAL:  could not setup io_uring queue: {reason}\n"


@pytest.mark.parametrize("said", [NO_LIBURING, BEFORE_18])
def test_a_build_without_liburing_is_to_be_replaced(said: str) -> None:
    found = obstacle_of(said, "0")
    assert found.cause is IoUringCause.NOT_COMPILED_IN
    assert found.hint.endswith("pgdyno server install --from-source 18 --with-liburing")


def test_the_values_that_a_build_has_are_told() -> None:
    assert str(obstacle_of(NO_LIBURING, "0")) == (
        'not compiled in (invalid value for parameter "io_method": "io_uring". '
        "Available values: sync, worker); "
        "choose a build with liburing: pgdyno server install --from-source 18 --with-liburing"
    )


@pytest.mark.parametrize(
    ("switch", "hint"),
    [
        ("2", "kernel.io_uring_disabled is 2, which disables io_uring for all users"),
        ("1", "make the servers' user a member of the group that kernel.io_uring_group names"),
        ("0", "look for a seccomp filter or a security module"),
        (None, "look for a seccomp filter or a security module"),
    ],
)
@pytest.mark.parametrize("reason", ["Operation not permitted", "Permission denied"])
def test_what_the_kernel_forbids_is_told_apart_by_its_switch(
    reason: str, switch: str | None, hint: str
) -> None:
    found = obstacle_of(queue(reason), switch)
    assert found.cause is IoUringCause.FORBIDDEN
    assert found.evidence == f"could not setup io_uring queue: {reason}"
    assert hint in found.hint


def test_a_kernel_without_io_uring_forbids_it_too() -> None:
    found = obstacle_of(queue("Function not implemented"), None)
    assert found.cause is IoUringCause.FORBIDDEN
    assert "io_uring requires Linux 5.1" in found.hint


def test_too_little_memory_that_may_be_locked() -> None:
    found = obstacle_of(queue("Cannot allocate memory"), "0")
    assert found.cause is IoUringCause.MEMLOCK
    assert "ulimit -l" in found.hint


def test_too_few_files_with_how_many_it_takes() -> None:
    found = obstacle_of(TOO_FEW_FILES, "0")
    assert found.cause is IoUringCause.OPEN_FILES
    assert 'Consider increasing "ulimit -n" to at least 1142' in found.evidence
    assert "ulimit -n" in found.hint


@pytest.mark.parametrize(
    ("said", "evidence"),
    [
        (queue("Bad address"), "could not setup io_uring queue: Bad address"),
        (f'{STAMP}FATAL:  data directory "/data" has wrong ownership\n', 'data directory "/data" has wrong'),
        ("Killed\n", "Killed"),
    ],
)
def test_what_is_not_known_is_passed_on_in_the_servers_words(said: str, evidence: str) -> None:
    found = obstacle_of(said, "0")
    assert found.cause is IoUringCause.UNCLEAR
    assert found.evidence.startswith(evidence)


def test_a_check_that_does_not_end_leaves_it_unclear(tmp_path: Path) -> None:
    program = tmp_path / "postgres"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    installation = Installation(tmp_path, "18.0", 18, str(tmp_path))
    found = io_uring_obstacle(installation, caller(), tmp_path, timeout_s=0.2)
    assert found is not None
    assert found.cause is IoUringCause.UNCLEAR
    assert found.evidence == f'"{program}" did not end within 0.2 s'
