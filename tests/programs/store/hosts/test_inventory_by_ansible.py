"""Hosts of an inventory are reached as Ansible itself would reach them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.store.hosts.test_inventory import INI, VARS, YAML

from pgdyno.store.hosts.cell_file import read_cell_file

pytestmark = pytest.mark.tools

NESTED = """
[server]
db-c:2200

[load]
c[08:10:2].example.org

[hosts_of_ada:children]
load
server

[zone:children]
load

[all:vars]
ansible_user=of_all
ansible_host = "10.0.0.9"

[hosts_of_ada:vars]
ansible_user=ada

[zone:vars]
ansible_user=zoe

[load:vars]
ansible_port=2300
"""


def asked(path: Path) -> dict[str, dict[str, object]]:
    """Return the variables of each host, by Ansible."""
    program = Path(sys.executable).with_name("ansible-inventory")
    if not program.exists():
        pytest.skip("ansible-core is not installed")
    done = subprocess.run(
        [str(program), "--inventory", str(path), "--list"],
        capture_output=True,
        text=True,
        check=True,
        timeout=250,
        env={
            **os.environ,
            "ANSIBLE_HOME": str(path.parent / "ansible"),  # it ends if it cannot make one
            "ANSIBLE_LOCALHOST_WARNING": "0",
            "LC_ALL": "C.UTF-8",
        },
    )
    variables: dict[str, dict[str, object]] = json.loads(done.stdout)["_meta"]["hostvars"]
    return variables


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lab.ini", INI + VARS),
        ("lab.yml", YAML.replace("!vault", "")),
        ("nested.ini", NESTED),
    ],
)
def test_hosts_are_reached_as_by_ansible(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "key").touch()
    path = tmp_path / name
    path.write_text(text)
    theirs = asked(path)
    for host in read_cell_file(path).all:
        variables = theirs[host.name]
        address = str(variables.get("ansible_host", host.name))
        address = f"[{address}]" if ":" in address else address
        wanted = f"{variables['ansible_user']}@{address}"
        if "ansible_port" in variables:
            wanted = f"ssh://{wanted}:{variables['ansible_port']}"
        assert host.destination == wanted
        assert host.jump is None or str(variables["ansible_ssh_common_args"]).endswith(host.jump)
