"""Every format, of a plan and a server in which every text is hostile: nothing escapes from its place."""

from __future__ import annotations

import dataclasses
import json
import re
from functools import cache
from typing import Any

import hcl2
import pytest
import yaml
from tests.fix_plan import kernel_file, plan_of, rich_server, setting
from tests.hostile_strings import HOSTILE, is_utf8_without_nul, outcome

from pgdyno import formats
from pgdyno.model.errors import FormatError, SettingError
from pgdyno.model.plans.plan import Finding, MemoryItem, MemoryProof, Plan, PlanLine, Skipped
from pgdyno.model.servers.server import Server

YAML = ("ansible", "cnpg", "crunchy", "patroni", "zalando")
HARMLESS = "harmless"
each_format = pytest.mark.parametrize("name", formats.names())
each_text = pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:30]))


class _Unsafe(yaml.SafeLoader):
    """Knows Ansible's tag for texts that are no templates."""


def _marked(loader: yaml.SafeLoader, node: yaml.Node) -> tuple[str, object]:
    assert isinstance(node, yaml.ScalarNode)
    return "unsafe", loader.construct_scalar(node)


_Unsafe.add_constructor("!unsafe", _marked)


def read_yaml(text: str) -> Any:
    return yaml.load(text, Loader=_Unsafe)  # noqa: S506 — a safe loader with one more tag


def told(text: str) -> tuple[PlanLine, ...]:
    """Return planned lines whose values are harmless and about which all that is said is this text."""
    lines = (
        setting("log_line_prefix", text, "%m "),
        kernel_file("/proc/sys/vm/swappiness", text, "10"),
        kernel_file("/sys/block/sda/queue/scheduler", text, "none"),
        kernel_file("/sys/kernel/mm/transparent_hugepage/enabled", text, "madvise"),
        kernel_file("/proc/irq/41/smp_affinity_list", text, "0"),
    )
    return tuple(
        dataclasses.replace(
            line, reason=text, evidence=text, undo=text, change=dataclasses.replace(line.change, lever=text)
        )
        for line in lines
    )


def plan_saying(text: str) -> Plan:
    proof = MemoryProof((MemoryItem(text, text, 1),), 2, text)
    return Plan(told(text), (Skipped(text, text),), (Finding("note", text, text),), proof)


def server_saying(version: str, config_file: str) -> Server:
    server = rich_server()
    changed = {"config_file": config_file, "log_line_prefix": config_file}
    gucs = {name: dataclasses.replace(server.settings[name], setting=text) for name, text in changed.items()}
    return dataclasses.replace(server, version=version, settings={**server.settings, **gucs})


def commands(text: str, mark: str) -> list[str]:
    """Return the lines that are no comments."""
    return [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith(mark)]


def shape(content: Any) -> Any:
    """Return a document's keys and types, without its texts."""
    if isinstance(content, dict):
        return {key: shape(value) for key, value in content.items()}
    return [shape(value) for value in content] if isinstance(content, list) else type(content)


@cache
def harmless(name: str) -> str:
    return formats.load(name).render(plan_saying(HARMLESS), rich_server())


@pytest.mark.parametrize("name", sorted(set(formats.names()) - {"ansible", "json"}))
@each_text
def test_nothing_that_is_said_of_a_value_leaves_its_comment(name: str, text: str) -> None:
    rendered = formats.load(name).render(plan_saying(text), rich_server())
    mark = "--" if name == "sql" else "#"
    assert commands(rendered, mark) == commands(harmless(name), mark)
    assert all(character.isprintable() or character == "\n" for character in rendered)


@each_text
def test_json_has_every_text_as_it_is_and_nothing_that_a_terminal_acts_on(text: str) -> None:
    rendered = formats.load("json").render(plan_saying(text), server_saying(text, text))
    read = json.loads(rendered)
    assert {line["reason"] for line in read["lines"]} == {text}
    assert read["server"]["version"] == text
    assert all(character.isprintable() or character == "\n" for character in rendered)


@each_text
def test_all_of_a_playbook_that_a_server_has_told_is_marked_unsafe(text: str) -> None:
    file = f"/{text}/postgresql.conf"
    server = server_saying(text, file)
    if not is_utf8_without_nul(text):
        with pytest.raises(FormatError, match=r"^cannot write "):
            formats.load("ansible").render(plan_saying(text), server)
        return
    [play] = read_yaml(formats.load("ansible").render(plan_saying(text), server))
    [expected] = read_yaml(harmless("ansible"))
    assert shape(play) == shape(expected)
    assert play["name"] == ("unsafe", f"settings for PostgreSQL {text}, as planned by pgdyno")
    assert play["vars"]["postgresql_conf"] == ("unsafe", file)
    assert play["vars"]["postgresql_unit"] == ("unsafe", "postgresql.service")
    templates = [one for one in walk(play) if "{{" in one]
    assert templates == [one for one in walk(expected) if "{{" in one]


def walk(content: Any) -> list[str]:
    """Return all texts that are not marked."""
    if isinstance(content, dict):
        content = [*content.keys(), *content.values()]
    if isinstance(content, list):
        return [text for one in content for text in walk(one)]
    return [content] if isinstance(content, str) else []


@each_text
def test_the_version_stays_within_its_text_in_hcl(text: str) -> None:
    if not is_utf8_without_nul(text):
        with pytest.raises(FormatError, match=r"^cannot write "):
            formats.load("terraform").render(plan_of(), server_saying(text, text))
        return
    rendered = formats.load("terraform").render(plan_of(), server_saying(text, text))
    if text in ("${", "%{"):
        pytest.skip("python-hcl2 takes an escaped template for one that has to end; Terraform does not")
    [block] = hcl2.loads(rendered)["resource"]
    [group] = [one for key, one in block['"aws_db_parameter_group"'].items() if key == '"pgdyno"']
    assert set(group) >= {"name_prefix", "family", "description", "lifecycle"}
    assert len(re.findall(r'^resource "', rendered, re.MULTILINE)) == 1


@each_format
@each_text
def test_a_hostile_value_is_written_within_its_place_or_refused(name: str, text: str) -> None:
    value = setting("log_line_prefix", "old", text)
    files = [
        kernel_file("/proc/sys/vm/swappiness", "60", text),
        kernel_file("/sys/block/sda/queue/scheduler", "none", text),
        kernel_file("/sys/kernel/mm/transparent_hugepage/enabled", "always", text),
    ]
    server = server_saying(text, text)
    rendered = outcome(lambda: formats.load(name).render(plan_of(value, *files), server))
    if isinstance(rendered, SettingError):
        refused = "line feed" if "\n" in text else "NUL byte"
        assert (name, "\n" in text or "\0" in text) == ("sql", True)
        assert rendered.message.endswith(f"to a value with a {refused} in it")
    elif isinstance(rendered, FormatError):
        assert rendered.message.startswith("cannot write ")
    elif name in YAML:
        assert read_yaml(str(rendered))
    else:
        assert str(rendered).encode()


@each_format
@pytest.mark.parametrize(
    "path", ["sda\nevil", "sda {{ x }}", 'sda" RUN+="id', "sd*", "sd%n", "../x", "-x", "[a]"]
)
def test_a_device_with_a_hostile_name_is_refused_by_what_would_write_it(name: str, path: str) -> None:
    plan = plan_of(kernel_file(f"/sys/block/{path}/queue/scheduler", "none", "bfq"))
    if name not in ("ansible", "tuned", "udev"):
        formats.load(name).render(plan, rich_server())
        return
    with pytest.raises(FormatError) as caught:
        formats.load(name).render(plan, rich_server())
    assert caught.value.message.startswith('cannot write "/sys/block/')
    assert caught.value.detail == "it is not a path of letters, digits and . _ : ! @ + , ~ -"
