"""ssh's command line: host keys are checked, and arguments arrive as they are."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from pgdyno.model.cells.cell import CellHost, HostRole
from pgdyno.remote.ssh import by_hand, ssh_command, ssh_environment

HOST = CellHost("db1", HostRole.SERVER, "ada@db1", jump="gate", key=Path("/keys/db 1"))


def test_options_come_before_the_host_and_the_command_is_one_argument() -> None:
    command = ["python3", "-c", "print('$HOME;')"]
    argv = ssh_command(HOST, Path("/etc/lab"), command)
    assert argv[:9] == ["ssh", "-F", "/etc/lab", "-J", "gate", "-i", "/keys/db 1", "-o", "IdentitiesOnly=yes"]
    assert argv[-3:-1] == ["--", "ada@db1"]
    assert shlex.split(argv[-1]) == command


def test_nothing_is_asked_and_host_keys_are_checked() -> None:
    options = set(ssh_command(HOST, None, ["true"]))
    assert {"BatchMode=yes", "StrictHostKeyChecking=yes", "ControlMaster=no", "ForwardAgent=no"} <= options


def test_a_master_connection_is_used_unless_the_command_is_to_be_alone() -> None:
    assert not any("ControlPath" in one for one in ssh_command(HOST, None, ["true"]))
    alone = ssh_command(HOST, None, ["true"], is_alone=True)
    assert {"ControlPath=none", "ControlMaster=no"} <= set(alone[: alone.index("--")])


def test_there_is_no_dialogue_for_an_old_ssh_either(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_ASKPASS", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "something")
    found = ssh_environment()
    assert (found["SSH_ASKPASS_REQUIRE"], found["SSH_AUTH_SOCK"]) == ("never", "something")
    assert not {"DISPLAY", "WAYLAND_DISPLAY", "SSH_ASKPASS"} & found.keys()


def test_the_command_for_people_can_be_typed() -> None:
    assert by_hand(HOST, None) == "ssh -J gate -i '/keys/db 1' -o IdentitiesOnly=yes ada@db1"
