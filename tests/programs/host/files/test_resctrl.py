"""Mounting with programs that are missing, fail or hang; none of them is the machine's."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.base.errors import ServerError
from pgdyno.host.files import resctrl
from pgdyno.host.files.resctrl import Resctrl


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only directory that programs are looked for in."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def put_program(directory: Path, name: str, line: str) -> None:
    program = directory / name
    program.write_text(f"#!/bin/sh\n{line}\n")
    program.chmod(0o755)


@pytest.mark.usefixtures("programs")
def test_a_missing_program_is_named() -> None:
    with pytest.raises(ServerError) as caught:
        Resctrl().mount(with_cdp=True)
    assert caught.value.message == "could not run mount -t resctrl -o cdp resctrl /sys/fs/resctrl"
    assert caught.value.detail == "No such file or directory"
    with pytest.raises(ServerError) as caught:
        Resctrl().unmount()
    assert caught.value.message == "could not run umount /sys/fs/resctrl"


def test_a_program_that_hangs_is_given_up(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resctrl, "_TIMEOUT_S", 0.1)
    put_program(programs, "umount", "exec /bin/sleep 60")
    with pytest.raises(ServerError) as caught:
        Resctrl().unmount()
    assert caught.value.message == "umount /sys/fs/resctrl did not end within 0 s"


def test_a_program_that_fails_is_quoted(programs: Path) -> None:
    put_program(programs, "mount", "echo 'mount: unknown filesystem type' >&2; exit 32")
    with pytest.raises(ServerError) as caught:
        Resctrl().mount(with_cdp=False)
    assert str(caught.value) == (
        "mount -t resctrl resctrl /sys/fs/resctrl failed\nDETAIL:  mount: unknown filesystem type"
    )
