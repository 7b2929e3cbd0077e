"""``ansible-inventory`` that fails, or lists anything else than the hosts of a cell."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pgdyno.base.errors import HostsFileError
from pgdyno.model.cells.cell import CellHost, CellHosts, HostRole
from pgdyno.remote.inventory import read_cell, read_inventory


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


INI = """
# the lab
gate.example.org

[server]
db1 ansible_host=10.0.0.1 pgdyno_address=192.168.1.1 pgdyno_postgresql=/usr/lib/postgresql/17/bin

[load]
client[01:02] ansible_user=ada # two of them

[lab:children]
server
load

[lab:vars]
ansible_user=postgres
ansible_ssh_private_key_file=key
ansible_ssh_common_args='-o ProxyJump=ops@gate.example.org'
"""
YAML = """
all:
  vars: {ansible_user: postgres}
  hosts:
    odd: {ansible_password: "{{ secret }}"}
  children:
    machines:
      vars: {ansible_port: 2222, ansible_ssh_common_args: -J gate}
      children:
        load:
          hosts:
            c1: {ansible_host: "fd00::2", pgdyno_cpus: 0-3}
            c2: {pgdyno_cpus: 4, ansible_user: ada}
      hosts:
        db1: {pgdyno_role: server, ansible_port: 22}
"""


@pytest.fixture
def ansible(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Path(sys.executable).parent
    if not (programs / "ansible-inventory").exists():
        pytest.skip("ansible-core is not installed")
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)


def read(directory: Path, name: str, text: str) -> CellHosts:
    (directory / name).write_text(text)
    (directory / "key").touch()
    return read_cell(directory / name)


@pytest.mark.tools
@pytest.mark.usefixtures("ansible")
@pytest.mark.parametrize("name", ["lab.ini", "hosts"])
def test_an_inventory_in_ini_is_a_cell(tmp_path: Path, name: str) -> None:
    key, jump = tmp_path / "key", "ops@gate.example.org"
    server = CellHost(
        "db1", HostRole.SERVER, "postgres@10.0.0.1", jump, key, "192.168.1.1", "/usr/lib/postgresql/17/bin"
    )
    clients = [CellHost(f"client{n}", HostRole.LOAD, f"ada@client{n}", jump, key) for n in ("01", "02")]
    assert read(tmp_path, name, INI) == CellHosts(server, tuple(clients), file_name=name)


@pytest.mark.tools
@pytest.mark.usefixtures("ansible")
def test_an_inventory_in_yaml_is_a_cell_and_other_hosts_are_left_alone(tmp_path: Path) -> None:
    assert read(tmp_path, "lab.yml", YAML) == CellHosts(
        CellHost("db1", HostRole.SERVER, "ssh://postgres@db1:22", "gate"),
        (
            CellHost("c1", HostRole.LOAD, "ssh://postgres@[fd00::2]:2222", "gate", cpus=(0, 1, 2, 3)),
            CellHost("c2", HostRole.LOAD, "ssh://ada@c2:2222", "gate", cpus=(4,)),
        ),
        file_name="lab.yml",
    )


@pytest.mark.tools
@pytest.mark.usefixtures("ansible")
def test_variables_of_groups_beside_it_count(tmp_path: Path) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "load.yml").write_text("ansible_user: ada\n")
    found = read(tmp_path, "lab.ini", "[server]\ndb1\n[load]\nc1\n")
    assert [host.destination for host in found.all] == ["db1", "ada@c1"]


@pytest.mark.tools
@pytest.mark.usefixtures("ansible")
def test_an_encrypted_value_is_named(tmp_path: Path) -> None:
    encrypted = "!vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  3132\n"
    text = "all: {children: {server: {hosts: {db1: }}, load: {hosts: {c1: }}}}\n"
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "server.yml").write_text(f"ansible_user: {encrypted}")
    with pytest.raises(HostsFileError) as caught:
        read(tmp_path, "lab.yml", text)
    assert '"db1": ansible_user: must be plain text' in (caught.value.detail or "")


@pytest.mark.tools
@pytest.mark.usefixtures("ansible")
@pytest.mark.parametrize(("name", "text"), [("lab.ini", "[server]\ndb1 10.0.0.1\n"), ("lab.yml", "a: {\n")])
def test_a_file_that_is_no_inventory_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(HostsFileError) as caught:
        read(tmp_path, name, text)
    assert caught.value.message == f'ansible-inventory could not read "{tmp_path / name}"'
    assert name in (caught.value.detail or "")
