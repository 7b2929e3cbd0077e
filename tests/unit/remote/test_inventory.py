"""Ansible inventories as cells: the variables that are followed, and clear words for all others.

The documents are as ``ansible-inventory --list`` shows them; tests/programs has it read files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgdyno.base.errors import HostsFileError
from pgdyno.remote.inventory import cell_document, read_inventory

FILE = Path("lab.ini")
LAB: dict[str, Any] = {
    "_meta": {
        "hostvars": {
            "db1": {
                "ansible_host": "10.0.0.1",
                "ansible_user": "postgres",
                "ansible_ssh_common_args": "-o ProxyJump=ops@gate",
                "ansible_ssh_private_key_file": "key",
                "pgdyno_address": "192.168.1.1",
                "pgdyno_postgresql": "/usr/lib/postgresql/17/bin",
            },
            "c1": {"ansible_host": "fd00::2", "ansible_port": 2222, "pgdyno_cpus": 4},
            "odd": {"ansible_password": "{{ secret }}", "pgdyno_cpus": ["x"]},
        }
    },
    "all": {"children": ["ungrouped", "server", "lab"]},
    "server": {"hosts": ["db1"]},
    "lab": {"children": ["load"]},
    "load": {"children": ["clients", "more"]},
    "clients": {"hosts": ["c1"], "children": ["load"]},
    "more": {"hosts": ["c2"]},
    "ungrouped": {"hosts": ["odd"]},
}


def with_variable(name: str, value: object) -> dict[str, Any]:
    """Return an inventory of a server with this variable and a load host."""
    hosts = {"server": {"hosts": ["db1"]}, "load": {"hosts": ["c1"]}}
    return {"_meta": {"hostvars": {"db1": {name: value}}}, **hosts}


def test_hosts_in_the_groups_or_below_them_are_the_cells() -> None:
    assert cell_document(FILE, LAB) == {
        "hosts": {
            "c1": {"role": "load", "ssh": "ssh://[fd00::2]:2222", "cpus": "4"},
            "c2": {"role": "load", "ssh": "c2"},
            "db1": {
                "role": "server",
                "ssh": "postgres@10.0.0.1",
                "key": "key",
                "address": "192.168.1.1",
                "postgresql": "/usr/lib/postgresql/17/bin",
                "jump": "ops@gate",
            },
        }
    }


def test_a_variable_gives_a_role_without_the_groups() -> None:
    roles = {"db1": {"pgdyno_role": "server"}, "c1": {"pgdyno_role": "load"}, "gate": {}}
    found = cell_document(FILE, {"_meta": {"hostvars": roles}})
    assert found == {"hosts": {"c1": {"role": "load", "ssh": "c1"}, "db1": {"role": "server", "ssh": "db1"}}}


@pytest.mark.parametrize(
    "arguments", ["-J gate", "-o ProxyJump=gate", "-oProxyJump=gate", "-o 'ProxyJump gate'"]
)
def test_jump_hosts_are_followed(arguments: str) -> None:
    hosts: Any = cell_document(FILE, with_variable("ansible_ssh_common_args", arguments))["hosts"]
    assert hosts["db1"]["jump"] == "gate"


PLAIN = "must be plain text; templates and encrypted values are not supported here"


@pytest.mark.parametrize(
    ("variable", "value", "mistake"),
    [
        ("ansible_password", "x", "ansible_password: passwords are not supported: use a key"),
        ("ansible_ssh_pass", "x", "ansible_ssh_pass: passwords are not supported: use a key"),
        ("ansible_ssh_host", "x", "ansible_ssh_host: an obsolete name: leave out ssh_"),
        ("ansible_host", "{{ address }}", f"ansible_host: {PLAIN}"),
        ("ansible_user", {"__ansible_vault": "$ANSIBLE_VAULT;1.1;AES256"}, f"ansible_user: {PLAIN}"),
        (
            "ansible_connection",
            {"__ansible_vault": "$ANSIBLE_VAULT;1.1;AES256"},
            f"ansible_connection: {PLAIN}",
        ),
        ("ansible_user", None, f"ansible_user: {PLAIN}"),
        ("pgdyno_cpus", True, f"pgdyno_cpus: {PLAIN}"),
        (
            "ansible_ssh_args",
            "-C",
            "ansible_ssh_args: not supported: use a Host entry in your ~/.ssh/config instead",
        ),
        (
            "ansible_ssh_private_key",
            "-----BEGIN",
            "ansible_ssh_private_key: not supported: name the key's file with ansible_ssh_private_key_file",
        ),
        ("pgdyno_address", ["x", "x"], f"pgdyno_address: {PLAIN}"),
        ("ansible_connection", "local", "ansible_connection: hosts of a cell must use ssh"),
        (
            "ansible_ssh_common_args",
            "-o ProxyJump=a -o StrictHostKeyChecking=no",
            "ansible_ssh_common_args: only ProxyJump is supported (-o ProxyJump=HOST, -J HOST)",
        ),
        (
            "ansible_ssh_extra_args",
            "-4",
            "ansible_ssh_extra_args: not supported: use a Host entry in your ~/.ssh/config instead",
        ),
    ],
)
def test_a_variable_that_is_not_followed_is_named(variable: str, value: object, mistake: str) -> None:
    with pytest.raises(HostsFileError) as caught:
        cell_document(FILE, with_variable(variable, value))
    assert caught.value.message == '"lab.ini" has hosts with unsupported variables'
    assert caught.value.detail == f'"db1": {mistake}'


@pytest.mark.parametrize("connection", ["ssh", "smart", "ansible.builtin.ssh"])
def test_hosts_may_name_the_connection_by_ssh(connection: str) -> None:
    hosts: Any = cell_document(FILE, with_variable("ansible_connection", connection))["hosts"]
    assert hosts["db1"] == {"role": "server", "ssh": "db1"}


def test_a_key_has_two_names() -> None:
    hosts: Any = cell_document(FILE, with_variable("ansible_private_key_file", "lab_key"))["hosts"]
    assert hosts["db1"]["key"] == "lab_key"


@pytest.mark.parametrize(
    ("listed", "where"),
    [
        ([], ""),
        ({"_meta": []}, ""),
        ({"_meta": {"hostvars": []}}, "hostvars: "),
        ({"_meta": {"hostvars": None}}, "hostvars: "),
        ({"_meta": {"hostvars": {"db1": "x"}}}, "hostvars.db1: "),
        ({"load": ["c1"]}, "load: "),
        ({"load": {"hosts": None}}, "load.hosts: "),
        ({"load": {"hosts": [{}]}}, "load.hosts.0: "),
        ({"load": {"children": [1]}}, "load.children.0: "),
    ],
)
def test_another_form_is_refused(listed: object, where: str) -> None:
    with pytest.raises(HostsFileError) as caught:
        cell_document(FILE, listed)
    assert caught.value.message == 'ansible-inventory did not list groups of hosts in "lab.ini"'
    assert (caught.value.detail or "").startswith(f"{where}Input should be a valid ")


def test_without_ansible_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostsFileError) as caught:
        read_inventory(tmp_path / "lab.ini")
    file = tmp_path / "lab.ini"
    assert caught.value.message == f'"{file}" is an Ansible inventory, and ansible-inventory is not installed'
    assert caught.value.hint == (
        "install ansible-core, or describe the cell in hosts.toml (docs/guides/two-machines.md)"
    )
