"""``ansible-inventory`` that fails, or lists anything else than the hosts of a cell."""

from __future__ import annotations

import stat
import subprocess
import time
from pathlib import Path

import pytest

from pgdyno.base.errors import HostsFileError
from pgdyno.remote.cells.given_cell import read_cell
from pgdyno.remote.inventory import read_inventory


def program(directory: Path, text: str) -> None:
    """Put a program in the place of ansible-inventory."""
    file = directory / "ansible-inventory"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def test_values_are_checked_like_those_of_hosts_toml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    hosts = '"db1": {"ansible_host": "-oProxyCommand=x"}'
    groups = '"server": {"hosts": ["db1"]}, "load": {"hosts": ["c1"]}'
    program(tmp_path, f'echo \'{{"_meta": {{"hostvars": {{{hosts}}}}}, {groups}}}\'')
    (tmp_path / "lab.ini").touch()
    with pytest.raises(HostsFileError) as caught:
        read_cell(tmp_path / "lab.ini")
    assert "not a destination of ssh" in (caught.value.detail or "")


@pytest.mark.parametrize(
    ("text", "message", "detail"),
    [
        ("echo wrong >&2; exit 4", 'ansible-inventory could not read "{file}"', "wrong"),
        ("exit 4", 'ansible-inventory could not read "{file}"', None),
        (
            "echo wrong",
            'ansible-inventory did not list "{file}" as JSON',
            "Expecting value: line 1 column 1 (char 0)",
        ),
    ],
)
def test_a_failing_program_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str, detail: str | None
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    program(tmp_path, text)
    with pytest.raises(HostsFileError) as caught:
        read_inventory(tmp_path / "lab.ini")
    assert caught.value.message == message.format(file=tmp_path / "lab.ini")
    assert caught.value.detail == detail


def is_running(status: Path) -> bool:
    """Whether a process runs, by its file in /proc."""
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_what_a_slow_inventory_has_started_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    started = tmp_path / "started"
    program(tmp_path, f"sleep 1000 & echo $! > {started}; wait")

    def expire(_process: object, timeout: float) -> None:
        while not started.exists() or not started.read_text().endswith("\n"):
            time.sleep(0.02)
        raise subprocess.TimeoutExpired("ansible-inventory", timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", expire)
    with pytest.raises(HostsFileError, match=r'did not list ".*" within 60 s'):
        read_inventory(tmp_path / "lab.ini")
    status = Path("/proc", started.read_text().strip(), "stat")
    for _ in range(500):  # the kernel takes a moment
        if not is_running(status):
            return
        time.sleep(0.02)
    pytest.fail("it goes on")


def test_nothing_of_the_callers_configures_ansible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("ANSIBLE_INVENTORY_PLUGINS", str(tmp_path))
    monkeypatch.setenv("ANSIBLE_CONFIG", str(tmp_path / "theirs.cfg"))
    monkeypatch.chdir(tmp_path)
    program(tmp_path, f"env > {tmp_path}/seen; pwd > {tmp_path}/there; cat $ANSIBLE_CONFIG; echo '{{}}'")
    assert read_inventory(tmp_path / "lab.ini") == {"hosts": {}}
    seen = dict(line.split("=", 1) for line in (tmp_path / "seen").read_text().splitlines() if "=" in line)
    there = (tmp_path / "there").read_text().strip()
    assert "ANSIBLE_INVENTORY_PLUGINS" not in seen
    assert seen["ANSIBLE_HOME"] == there != str(tmp_path)
    assert seen["ANSIBLE_CONFIG"] == f"{there}/ansible.cfg"
