"""Formats read by the programs that they are for; a program that is not installed skips its tests."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.fix_plan import kernel_file, plan_of, rich_plan, rich_server, setting
from tests.fix_settings import server_of

from pgdyno.plan.formats import ansible, patroni, sysctl, systemd, terraform, tuned, udev

pytestmark = pytest.mark.tools

TUNED = Path(os.environ.get("PGDYNO_TUNED_ROOT", "/"))
"""Where Debian's package tuned is unpacked: its parser is enough, and does without its daemon."""


def program(name: str, package: str) -> str:
    """Return where a program is: beside this Python or on the path."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: {package}")
    return found


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def verified_unit(directory: Path, drop_in: str) -> subprocess.CompletedProcess[str]:
    """Let systemd read a unit with this drop-in."""
    (directory / "postgresql.service").write_text("[Service]\nExecStart=/bin/true\n", encoding="utf-8")
    (directory / "postgresql.service.d").mkdir(exist_ok=True)
    (directory / "postgresql.service.d/60-pgdyno.conf").write_text(drop_in, encoding="utf-8")
    return run(
        program("systemd-analyze", "apt install systemd"),
        "verify",
        "--man=no",
        str(directory / "postgresql.service"),
    )


def test_systemd_reads_the_drop_in(tmp_path: Path) -> None:
    text = systemd.render(plan_of(setting("io_method", "worker", "io_uring")), rich_server())
    verified = verified_unit(tmp_path, text)
    assert "60-pgdyno.conf" not in verified.stderr
    spoilt = verified_unit(tmp_path, text.replace("LimitNOFILE=65536", "LimitNOFILE=plenty"))
    assert re.search(r"60-pgdyno\.conf:\d+: Failed to parse", spoilt.stderr)  # so it does read the file


def test_sysctl_reads_the_file_and_would_set_what_was_planned(tmp_path: Path) -> None:
    sysctl_program = program("sysctl", "apt install procps")
    if "--dry-run" not in run(sysctl_program, "--help").stdout:
        pytest.skip("sysctl --dry-run came with procps 4, and this one is older")
    file = tmp_path / "60-pgdyno.conf"
    plan = plan_of(
        kernel_file("/proc/sys/vm/swappiness", "60", "10"),
        kernel_file("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 6291456", "4096 131072 16777216"),
    )
    file.write_text(sysctl.render(plan, rich_server()), encoding="utf-8")
    read = run(sysctl_program, "--dry-run", "-p", str(file))
    assert read.stdout == "vm.swappiness = 10\nnet.ipv4.tcp_rmem = 4096 131072 16777216\n", read.stderr


def test_udev_reads_the_rules(tmp_path: Path) -> None:
    udevadm = program("udevadm", "apt install udev")
    if "verify" not in run(udevadm, "--help").stdout:
        pytest.skip("udevadm verify came with systemd 254, and this one is older")
    file = tmp_path / "60-pgdyno.rules"
    file.write_text(udev.render(rich_plan(), rich_server()), encoding="utf-8")
    verified = run(udevadm, "verify", str(file))
    assert verified.returncode == 0, verified.stdout + verified.stderr


_LOAD_PROFILE = """
import json, sys
from tuned.profiles import Factory, Loader, Locator, Merger
from tuned.profiles.variables import Variables
loader = Loader(Locator(sys.argv[1:]), Factory(), Merger(), None, Variables())
units = loader.load("pgdyno").units
shown = {name: {"type": one.type, "devices": one.devices, **one.options} for name, one in units.items()}
print(json.dumps(shown))
"""


def test_tuned_reads_the_profile_and_it_wins_over_the_one_that_it_includes(tmp_path: Path) -> None:
    modules, profiles = TUNED / "usr/lib/python3/dist-packages", TUNED / "usr/lib/tuned"
    if not (modules / "tuned").is_dir() or not (profiles / "postgresql").is_dir():
        pytest.skip("TuneD is not installed: apt install tuned, or unpack it and set PGDYNO_TUNED_ROOT")
    (tmp_path / "pgdyno").mkdir()
    (tmp_path / "pgdyno/tuned.conf").write_text(tuned.render(rich_plan(), rich_server()), encoding="utf-8")
    loaded = run(
        "/usr/bin/python3", "-c", _LOAD_PROFILE, str(profiles), str(tmp_path), PYTHONPATH=str(modules)
    )
    assert loaded.returncode == 0, loaded.stderr
    units = json.loads(loaded.stdout.splitlines()[0])
    assert units["sysctl"]["vm.swappiness"] == "10"
    assert units["sysctl"]["kernel.sched_autogroup_enabled"] == "0"  # of the profile that is included
    assert units["vm"]["transparent_hugepages"] == "madvise"
    assert units["disk"]["devices"] == "!nvme0n1"
    assert units["disk_nvme0n1"] == {
        "type": "disk", "devices": "nvme0n1", "elevator": "none", "readahead": "128",
    }  # fmt: skip


def playbook(directory: Path) -> Path:
    """Write the playbook so that all its files would lie below a directory of the test."""
    for place in ("sysctl.d", "tmpfiles.d", "udev/rules.d"):
        (directory / "etc" / place).mkdir(parents=True)
    (directory / "postgresql.conf").write_text("port = 5432\n", encoding="utf-8")
    text = ansible.render(rich_plan(), rich_server()).replace('dest: "/etc/', f'dest: "{directory}/etc/')
    file = directory / "pgdyno.yml"
    file.write_text(text, encoding="utf-8")
    return file


def test_ansible_reads_the_playbook_and_would_write_what_was_planned(tmp_path: Path) -> None:
    ansible_playbook = program("ansible-playbook", "pip install ansible-core")
    file = playbook(tmp_path)
    settings = {
        "ANSIBLE_LOCAL_TEMP": str(tmp_path / "local"),
        "ANSIBLE_REMOTE_TEMP": str(tmp_path / "remote"),
        "ANSIBLE_HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
    }
    assert run(ansible_playbook, "--syntax-check", str(file), **settings).returncode == 0
    variables = json.dumps({"postgresql_conf": str(tmp_path / "postgresql.conf"), "ansible_become": False})
    checked = run(ansible_playbook, str(file), "--check", "--diff", "-e", variables, **settings)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "changed=5" in checked.stdout
    assert "failed=0" in checked.stdout
    assert "+shared_buffers = '6GB'\n" in checked.stdout
    assert "+include 'pgdyno.conf'\n" in checked.stdout
    assert "+vm.swappiness = 10\n" in checked.stdout
    assert "+w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 3224\n" in checked.stdout
    assert "{{ braces }}" in checked.stdout  # a reason is no template
    assert not (tmp_path / "pgdyno.conf").exists()


def test_terraform_reads_the_resource_as_it_is_formatted(tmp_path: Path) -> None:
    binary = program("terraform", "https://developer.hashicorp.com/terraform/install")
    (tmp_path / "main.tf").write_text(terraform.render(rich_plan(), rich_server()), encoding="utf-8")
    formatted = run(binary, "fmt", "-check", "-diff", str(tmp_path))
    assert formatted.returncode == 0, formatted.stdout + formatted.stderr


BY_PATRONI = """
import json, sys
from patroni.postgresql.validator import transform_postgresql_parameter_value
parameters, known = json.load(sys.stdin)
refused = [
    name
    for name, value in parameters.items()
    if transform_postgresql_parameter_value(180000, name, value, set(known)) is None
]
print(json.dumps(refused))
"""
"""A program of its own: importing Patroni changes the umask of the process."""


def test_patroni_accepts_every_value_for_this_version() -> None:
    if importlib.util.find_spec("patroni") is None:
        pytest.skip("Patroni is not installed: pip install patroni")
    parameters = yaml.safe_load(patroni.render(rich_plan(), rich_server()))["postgresql"]["parameters"]
    assert parameters
    asked = json.dumps([parameters, sorted(server_of(18).settings)])
    told = subprocess.run(
        [sys.executable, "-c", BY_PATRONI], input=asked, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout) == []
