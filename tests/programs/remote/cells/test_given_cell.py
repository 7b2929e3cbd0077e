"""Inventories as Ansible itself reads them are cells."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pgdyno.base.errors import HostsFileError
from pgdyno.model.cells.cell import CellHost, CellHosts, HostRole
from pgdyno.remote.cells.given_cell import read_cell

pytestmark = pytest.mark.tools

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


@pytest.fixture(autouse=True)
def ansible(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Path(sys.executable).parent
    if not (programs / "ansible-inventory").exists():
        pytest.skip("ansible-core is not installed")
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)


def read(directory: Path, name: str, text: str) -> CellHosts:
    (directory / name).write_text(text)
    (directory / "key").touch()
    return read_cell(directory / name)


@pytest.mark.parametrize("name", ["lab.ini", "hosts"])
def test_an_inventory_in_ini_is_a_cell(tmp_path: Path, name: str) -> None:
    key, jump = tmp_path / "key", "ops@gate.example.org"
    server = CellHost(
        "db1", HostRole.SERVER, "postgres@10.0.0.1", jump, key, "192.168.1.1", "/usr/lib/postgresql/17/bin"
    )
    clients = [CellHost(f"client{n}", HostRole.LOAD, f"ada@client{n}", jump, key) for n in ("01", "02")]
    assert read(tmp_path, name, INI) == CellHosts(server, tuple(clients), file_name=name)


def test_an_inventory_in_yaml_is_a_cell_and_other_hosts_are_left_alone(tmp_path: Path) -> None:
    assert read(tmp_path, "lab.yml", YAML) == CellHosts(
        CellHost("db1", HostRole.SERVER, "ssh://postgres@db1:22", "gate"),
        (
            CellHost("c1", HostRole.LOAD, "ssh://postgres@[fd00::2]:2222", "gate", cpus=(0, 1, 2, 3)),
            CellHost("c2", HostRole.LOAD, "ssh://ada@c2:2222", "gate", cpus=(4,)),
        ),
        file_name="lab.yml",
    )


def test_variables_of_groups_beside_it_count(tmp_path: Path) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "load.yml").write_text("ansible_user: ada\n")
    found = read(tmp_path, "lab.ini", "[server]\ndb1\n[load]\nc1\n")
    assert [host.destination for host in found.all] == ["db1", "ada@c1"]


def test_an_encrypted_value_is_named(tmp_path: Path) -> None:
    encrypted = "!vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  3132\n"
    text = "all: {children: {server: {hosts: {db1: }}, load: {hosts: {c1: }}}}\n"
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "server.yml").write_text(f"ansible_user: {encrypted}")
    with pytest.raises(HostsFileError) as caught:
        read(tmp_path, "lab.yml", text)
    assert '"db1": ansible_user: must be plain text' in (caught.value.detail or "")


@pytest.mark.parametrize(("name", "text"), [("lab.ini", "[server]\ndb1 10.0.0.1\n"), ("lab.yml", "a: {\n")])
def test_a_file_that_is_no_inventory_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(HostsFileError) as caught:
        read(tmp_path, name, text)
    assert caught.value.message == f'ansible-inventory could not read "{tmp_path / name}"'
    assert name in (caught.value.detail or "")
