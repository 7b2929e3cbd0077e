"""``ansible-inventory`` that fails, or lists anything else than the hosts of a cell."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pgdyno.app.cells.given_cell import read_cell
from pgdyno.model.errors import HostsFileError
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
        ("echo '[]'", 'ansible-inventory did not list groups of "{file}"', None),
        ('echo \'{"load": ["c1"]}\'', 'ansible-inventory did not list groups of "{file}"', None),
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
