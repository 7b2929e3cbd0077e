"""Hostile texts, quoted for each language and read by the program that the language is for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ruamel.yaml import YAML
from tests.contract.test_formats import plan_saying, server_saying
from tests.fix_plan import kernel_file, plan_of, rich_server
from tests.fix_servers import RealServer
from tests.hostile_strings import WRITABLE, expressible

from pgdyno.cli.output import print_json
from pgdyno.model.plans.plan import KERNEL, Change, Effect
from pgdyno.plan.formats import _script, ansible, conf, sql, sysctl, terraform, tuned
from pgdyno.plan.formats._places import tmpfiles_line
from pgdyno.plan.formats._yaml import document, quoted, untemplated, verbatim

pytestmark = pytest.mark.tools
TUNED = Path(os.environ.get("PGDYNO_TUNED_ROOT", "/"))


def program(name: str, package: str) -> str:
    """Return where a program is: beside this Python or on the path."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: {package}")
    return found


def output(*command: str, **environment: str) -> str:
    ended = subprocess.run(
        command, env=os.environ | environment, capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    assert ended.returncode == 0, (ended.stdout + ended.stderr).decode()
    return ended.stdout.decode()


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_a_shell_reads_every_word_as_it_is(shell: str, tmp_path: Path) -> None:
    words = expressible(_script.quoted)
    assert tuple(words) == WRITABLE
    script = tmp_path / "words"
    script.write_bytes(("printf '%s\\0' " + " ".join(words.values()) + "\n").encode())
    assert tuple(output(program(shell, f"apt install {shell}"), str(script)).split("\0")[:-1]) == WRITABLE


def test_terraform_reads_every_text_as_it_is(tmp_path: Path) -> None:
    binary = program("terraform", "https://developer.hashicorp.com/terraform/install")
    texts = expressible(terraform.quoted)
    assert tuple(texts) == WRITABLE
    outputs = [f'output "t{at}" {{\n  value = {text}\n}}\n' for at, text in enumerate(texts.values())]
    (tmp_path / "main.tf").write_bytes("".join(outputs).encode())
    output(binary, f"-chdir={tmp_path}", "init", "-input=false")
    output(binary, f"-chdir={tmp_path}", "apply", "-auto-approve", "-input=false")
    read = json.loads(output(binary, f"-chdir={tmp_path}", "output", "-json"))
    assert tuple(read[f"t{at}"]["value"] for at in range(len(WRITABLE))) == WRITABLE


def test_yaml_1_1_and_1_2_read_every_text_as_it_is() -> None:
    assert tuple(expressible(quoted)) == WRITABLE
    text = document([], {"texts": [quoted(one) for one in WRITABLE]})
    assert yaml.safe_load(text)["texts"] == list(WRITABLE)
    assert YAML(typ="safe").load(text)["texts"] == list(WRITABLE)


NO_TEXTS_BELOW_A_TAG = {
    "", "<<", "on", "off", "yes", "y", "null", "~", "15:00", "010", "1e3", "0x10", ".inf", "2001-01-01",
}  # fmt: skip
"""YAML 1.1 has other types for them, which Ansible looks for in texts that are marked unsafe."""


def run_playbook(file: Path, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    found = program("ansible-playbook", "pip install ansible-core")
    settings = {
        "ANSIBLE_LOCAL_TEMP": str(directory / "local"),
        "ANSIBLE_REMOTE_TEMP": str(directory / "remote"),
        "ANSIBLE_HOME": str(directory),
        "LC_ALL": "C.UTF-8",
    }
    return subprocess.run(
        [found, str(file), *arguments],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_ansible_takes_no_text_for_a_template(tmp_path: Path) -> None:
    target, planted = tmp_path / "texts.json", tmp_path / "planted"
    taken = expressible(lambda text: str(untemplated(text).value))
    assert set(WRITABLE) - set(taken) == NO_TEXTS_BELOW_A_TAG
    texts = [*taken, f"{{{{ lookup('pipe', 'touch {planted}') }}}}"]
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {"texts": [untemplated(one) for one in texts], "more": [verbatim(one) for one in texts]},
        "tasks": [
            {
                "name": untemplated(texts[-1]),
                "ansible.builtin.copy": {
                    "dest": quoted(str(target)),
                    "content": quoted("{{ [texts, more] | to_json }}"),
                },
            }
        ],
    }
    file = tmp_path / "play.yml"
    file.write_bytes(document([], [play]).encode())
    ended = run_playbook(file, tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert json.loads(target.read_text(encoding="utf-8")) == [texts, texts]
    assert not planted.exists()


def test_a_playbook_runs_nothing_that_a_server_has_told(tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    evil = f"{{{{ lookup('pipe', 'touch {planted}') }}}}"
    text = ansible.render(plan_saying(evil), server_saying(f"18.6 {evil}", f"/{evil}/postgresql.conf"))
    file = tmp_path / "pgdyno.yml"
    file.write_text(text.replace("become: true", "become: false"), encoding="utf-8")
    told = json.dumps({"ansible_become": False})
    ended = run_playbook(file, tmp_path, "--check", "--diff", "-e", told)
    assert evil in ended.stdout  # the play's name, as it is
    assert not planted.exists()


@pytest.mark.server
def test_postgres_reads_every_value_in_its_configuration_as_it_is(scratch_pg18: RealServer) -> None:
    values = expressible(conf.quoted)
    assert tuple(values) == WRITABLE
    lines = [f"hostile.t{at} = {value}\n" for at, value in enumerate(values.values())]
    scratch_pg18.append_configuration("".join(lines))
    rows = scratch_pg18.execute(
        "SELECT name, setting, error FROM pg_file_settings WHERE name LIKE 'hostile.%' ORDER BY seqno"
    )
    assert [(value, error) for _, value, error in rows] == [(text, None) for text in WRITABLE]


@pytest.mark.server
@pytest.mark.parametrize("conforming", ["on", "off"])
def test_psql_hands_every_literal_to_the_server_as_it_is(scratch_pg18: RealServer, conforming: str) -> None:
    literals = expressible(sql.quoted)
    assert tuple(literals) == WRITABLE
    script = scratch_pg18.directory / "literals.sql"
    scratch_pg18.execute("CREATE DATABASE hostile ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0")
    lines = [f"SELECT encode(convert_to({one}, 'UTF8'), 'hex');\n" for one in literals.values()]
    head = f"SET client_encoding = 'UTF8';\nSET standard_conforming_strings = {conforming};\n"
    script.write_bytes((head + "".join(lines)).encode())
    where = ("-h", str(scratch_pg18.socket_directory), "-p", str(scratch_pg18.port), "-U", "postgres")
    read = scratch_pg18.run("psql", "-XAtq", *where, "-v", "ON_ERROR_STOP=1", "-f", str(script), "hostile")
    lines = read.stdout.split("\n")[:-1]
    assert [text.replace("\\n", "") for text in lines] == [one.encode().hex() for one in WRITABLE]


def change(path: str, value: str) -> Change:
    return Change("a lever", KERNEL, path, "old", value, Effect.IMMEDIATE)


def test_systemd_writes_every_value_as_it_is(tmp_path: Path) -> None:
    binary = program("systemd-tmpfiles", "apt install systemd")
    targets: dict[str, Path] = {}

    def line(text: str) -> str:
        file = targets.setdefault(text, tmp_path / f"value{len(targets)}")
        return tmpfiles_line(change(str(file), text))

    lines = expressible(line)
    assert {"%n", "%%", "\\", "\\n", "\\x41", "-", "$(id)", "a # b", "é € 🐘"} <= set(lines)
    for text in lines:
        targets[text].touch()
    (tmp_path / "tmpfiles.conf").write_bytes("\n".join([*lines.values(), ""]).encode())
    output(binary, "--create", str(tmp_path / "tmpfiles.conf"))
    assert {text: targets[text].read_text(encoding="utf-8") for text in lines} == {one: one for one in lines}


def test_sysctl_reads_every_value_as_it_is(tmp_path: Path) -> None:
    binary = program("sysctl", "apt install procps")
    if "--dry-run" not in output(binary, "--help"):
        pytest.skip("sysctl --dry-run came with procps 4, and this one is older")
    lines = expressible(lambda text: sysctl.setting(change("/proc/sys/kernel/core_pattern", text)))
    assert {"%n", "$(id)", "a # b", "=x", "|", "a=b", "é € 🐘"} <= set(lines)
    file = tmp_path / "sysctl.conf"
    for text, line in lines.items():
        file.write_bytes((line + "\n").encode())
        read = output(binary, "--dry-run", "-p", str(file))
        assert read == f"kernel.core_pattern = {text}\n"


def test_jq_reads_every_text_of_our_json_as_it_is(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    binary = program("jq", "apt install jq")
    print_json({"texts": WRITABLE})
    printed = capsysbinary.readouterr().out
    read = subprocess.run(
        [binary, "-j", '.texts[] + "\\u0000"'], input=printed, capture_output=True, check=True
    )
    assert tuple(read.stdout.decode().split("\0")[:-1]) == WRITABLE


_LOAD = """
import json, sys
from tuned.profiles import Factory, Loader, Locator, Merger
from tuned.profiles.variables import Variables
loader = Loader(Locator(sys.argv[1:2]), Factory(), Merger(), None, Variables())
read = {name: dict(loader.load(name).units["sysctl"].options)["kernel.core_pattern"] for name in sys.argv[2:]}
print(json.dumps(read))
"""


def test_tuned_reads_every_value_as_it_is(tmp_path: Path) -> None:
    modules = TUNED / "usr/lib/python3/dist-packages"
    if not (modules / "tuned").is_dir():
        pytest.skip("TuneD is not installed: apt install tuned, or unpack it and set PGDYNO_TUNED_ROOT")
    profiles = expressible(_profile)
    names = {f"p{at}": text for at, text in enumerate(profiles)}
    for name, text in names.items():
        (tmp_path / name).mkdir()
        alone = profiles[text].replace("include=postgresql\n", "")
        (tmp_path / name / "tuned.conf").write_bytes(alone.encode())
    told = output("/usr/bin/python3", "-c", _LOAD, str(tmp_path), *names, PYTHONPATH=str(modules))
    assert json.loads(told.splitlines()[0]) == names


def _profile(text: str) -> str:
    return tuned.render(plan_of(kernel_file("/proc/sys/kernel/core_pattern", "core", text)), rich_server())
