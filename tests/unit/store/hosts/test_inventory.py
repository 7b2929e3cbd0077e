"""Ansible inventories as cells: the variables that are followed, and clear words for all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.model.cells.cell import CellHost, CellHosts, HostRole
from pgdyno.model.errors import HostsFileError
from pgdyno.store.hosts.cell_file import read_cell_file

INI = """
# the lab
gate.example.org

[web]
www[1:3]

[server]
db1 ansible_host=10.0.0.1 pgdyno_address=192.168.1.1 pgdyno_postgresql=/usr/lib/postgresql/17/bin

[load]
client[01:02] ansible_user=ada ; not a comment
""".replace(" ; not a comment", " # two of them")
VARS = """
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
    odd: {ansible_password: "{{ secret }}", token: !vault "abc"}
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
MANY = "a0: &a0 {}\n" + "".join(
    f"a{n}: &a{n} {{children: {{b: *a{n - 1}, c: *a{n - 1}}}}}\n" for n in range(1, 12)
)
HOSTS = "a: {children: {g0: &g {hosts: {" + ", ".join(f"h{n}: " for n in range(600)) + "}}"
HOSTS += "".join(f", g{n}: *g" for n in range(1, 200)) + "}}\n"


def read(directory: Path, name: str, text: str) -> CellHosts:
    path = directory / name
    path.write_text(text)
    (directory / "key").touch()
    return read_cell_file(path)


def refused(directory: Path, name: str, text: str) -> HostsFileError:
    with pytest.raises(HostsFileError) as caught:
        read(directory, name, text)
    return caught.value


@pytest.mark.parametrize("name", ["lab.ini", "hosts"])
def test_an_inventory_in_ini_is_a_cell(tmp_path: Path, name: str) -> None:
    key, jump = tmp_path / "key", "ops@gate.example.org"
    assert read(tmp_path, name, INI + VARS) == CellHosts(
        CellHost(
            "db1",
            HostRole.SERVER,
            "postgres@10.0.0.1",
            jump,
            key,
            "192.168.1.1",
            "/usr/lib/postgresql/17/bin",
        ),
        (
            CellHost("client01", HostRole.LOAD, "ada@client01", jump, key),
            CellHost("client02", HostRole.LOAD, "ada@client02", jump, key),
        ),
        file_name=name,
    )


def test_an_inventory_in_yaml_is_a_cell_and_other_hosts_are_left_alone(tmp_path: Path) -> None:
    assert read(tmp_path, "lab.yml", YAML) == CellHosts(
        CellHost("db1", HostRole.SERVER, "ssh://postgres@db1:22", "gate"),
        (
            CellHost("c1", HostRole.LOAD, "ssh://postgres@[fd00::2]:2222", "gate", cpus=(0, 1, 2, 3)),
            CellHost("c2", HostRole.LOAD, "ssh://ada@c2:2222", "gate", cpus=(4,)),
        ),
        file_name="lab.yml",
    )


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("ansible_password=x", "ansible_password: ssh is given no password: use a key"),
        ("ansible_ssh_pass=x", "ansible_ssh_pass: ssh is given no password: use a key"),
        ("ansible_ssh_host=x", "ansible_ssh_host: an old name: leave out ssh_"),
        (
            "ansible_host='{{ address }}'",
            "ansible_host: templates and encrypted values are not worked out here",
        ),
        ("ansible_connection=local", "ansible_connection: hosts of a cell are reached by ssh"),
        (
            "ansible_ssh_common_args='-o ProxyJump=a -o StrictHostKeyChecking=no'",
            "ansible_ssh_common_args: only ProxyJump is followed (-o ProxyJump=HOST, -J HOST)",
        ),
        (
            "ansible_ssh_extra_args=-4",
            "ansible_ssh_extra_args: not followed: write a Host of your ~/.ssh/config instead",
        ),
    ],
)
def test_a_variable_that_is_not_followed_is_named(tmp_path: Path, variable: str, said: str) -> None:
    error = refused(tmp_path, "lab.ini", f"[server]\ndb1 {variable}\n[load]\nc1\n")
    assert error.message == f'"{tmp_path}/lab.ini" has hosts that cannot be reached as it says'
    assert error.detail == f'"db1": {said}'


def test_an_encrypted_value_is_named(tmp_path: Path) -> None:
    text = "server: {hosts: {db1: {ansible_user: !vault abc}}}\nload: {hosts: {c1: }}\n"
    error = refused(tmp_path, "lab.yaml", text)
    said = "ansible_user: templates and encrypted values are not worked out here"
    assert error.detail == f'"db1": {said}'


def test_a_list_in_place_of_a_text_is_named_and_never_written_out(tmp_path: Path) -> None:
    variables = "{v0: &v0 [x, x], v1: &v1 [*v0, *v0], ansible_host: *v1, pgdyno_role: *v1}"
    text = f"server: {{hosts: {{db1: {variables}}}}}\nload: {{hosts: {{c1: }}}}\n"
    error = refused(tmp_path, "lab.yaml", text)
    said = "ansible_host, pgdyno_role: a text is wanted, not a list or a mapping"
    assert error.detail == f'"db1": {said}'


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("lab.ini", "[server]\ndb1 10.0.0.1\n", 'line 2: "10.0.0.1" is not a variable like ansible_host='),
        ("lab.ini", "[server]\ndb[1:99]-[1:99]\n", 'line 2: "db[1:99]-[1:99]" are more than 1000 hosts'),
        ("lab.ini", "[server]\ndb[1:x]\n", 'line 2: "[1:x]" is no range like [1:9] or [a:f]'),
        ("lab.ini", "[server]\ndb1 a='x\n", "line 2: No closing quotation"),
        ("lab.yml", "server: [db1]\n", '"server" is no mapping of names'),
        ("lab.yml", "server: {\n", "expected the node content"),
        ("lab.yml", "a: {}\na: {}\n", 'found duplicate key "a"'),
        ("lab.yml", "a: &x {children: {b: *x}}\n", "it nests too deep"),
        ("lab.yml", MANY, "more than 1000 groups"),
        ("lab.yml", HOSTS, "more than 100000 hosts and variables"),
        ("lab.yml", "a: {vars: &v {x: 1}}\nb: {vars: {<<: *v}}\n", 'merge keys ("<<") are not read'),
        (
            "lab.yml",
            "a: {vars: {x: &x [y, y], ? [*x, *x] : 1}}\n",
            "a list or a mapping has the place of a name",
        ),
        ("lab.ini", "[a:children]\nb\n[b:children]\na\n[b]\nx\n", "groups are below themselves: "),
    ],
)
def test_a_file_that_is_no_inventory_is_told(tmp_path: Path, name: str, text: str, said: str) -> None:
    error = refused(tmp_path, name, text)
    assert error.message == f'"{tmp_path}/{name}" is no inventory of Ansible'
    assert said in (error.detail or "")


def test_values_are_checked_like_those_of_hosts_toml(tmp_path: Path) -> None:
    error = refused(tmp_path, "lab.ini", "[server]\ndb1 ansible_host=-oProxyCommand=x\n[load]\nc1\n")
    assert "not a destination of ssh" in (error.detail or "")
    error = refused(tmp_path, "lab.ini", "[postgresql]\ndb1\n")
    assert error.message == f'"{tmp_path}/lab.ini" has 0 servers and 0 load hosts'
    assert error.hint == (
        "put hosts into the groups [server] and [load], or give them pgdyno_role=server and pgdyno_role=load"
    )
