"""Every format, of a plan and a server in which every text is hostile: nothing escapes from its place."""

from __future__ import annotations

import dataclasses
import json
import re
from functools import cache, partial
from typing import Any

import hcl2
import pytest
import yaml
from tests.fix_plan import kernel_file, plan_of, rich_server, setting
from tests.hostile_strings import HOSTILE, is_utf8_without_nul, outcome

from pgdyno.base.errors import FormatError, SettingError
from pgdyno.model.plans.plan import Finding, MemoryItem, MemoryProof, Plan, PlanLine, Skipped
from pgdyno.plan import formats
from pgdyno.postgres.server import Server

YAML = ("ansible", "cnpg", "crunchy", "patroni", "zalando")
HARMLESS = "harmless"
each_format = pytest.mark.parametrize("name", formats.names())


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


# All texts are one test: thousands of tests would take longer to be counted than to be run.
@pytest.mark.parametrize("name", sorted(set(formats.names()) - {"ansible", "json"}))
def test_nothing_that_is_said_of_a_value_leaves_its_comment(name: str) -> None:
    mark = "--" if name == "sql" else "#"
    expected = commands(harmless(name), mark)
    for text in HOSTILE:
        rendered = formats.load(name).render(plan_saying(text), rich_server())
        assert commands(rendered, mark) == expected, ascii(text)
        assert all(character.isprintable() or character == "\n" for character in rendered), ascii(text)


def test_json_has_every_text_as_it_is_and_nothing_that_a_terminal_acts_on() -> None:
    for text in HOSTILE:
        rendered = formats.load("json").render(plan_saying(text), server_saying(text, text))
        read = json.loads(rendered)
        assert {line["reason"] for line in read["lines"]} == {text}
        assert read["server"]["version"] == text
        assert all(character.isprintable() or character == "\n" for character in rendered), ascii(text)


def test_all_of_a_playbook_that_a_server_has_told_is_marked_unsafe() -> None:
    [expected] = read_yaml(harmless("ansible"))
    templates = [one for one in walk(expected) if "{{" in one]
    for text in HOSTILE:
        file = f"/{text}/postgresql.conf"
        server = server_saying(text, file)
        if not is_utf8_without_nul(text):
            with pytest.raises(FormatError, match=r"^cannot write "):
                formats.load("ansible").render(plan_saying(text), server)
            continue
        [play] = read_yaml(formats.load("ansible").render(plan_saying(text), server))
        assert shape(play) == shape(expected), ascii(text)
        assert play["name"] == ("unsafe", f"settings for PostgreSQL {text}, as planned by pgdyno")
        assert play["vars"]["postgresql_conf"] == ("unsafe", file)
        assert play["vars"]["postgresql_unit"] == ("unsafe", "postgresql.service")
        assert [one for one in walk(play) if "{{" in one] == templates, ascii(text)


def walk(content: Any) -> list[str]:
    """Return all texts that are not marked."""
    if isinstance(content, dict):
        content = [*content.keys(), *content.values()]
    if isinstance(content, list):
        return [text for one in content for text in walk(one)]
    return [content] if isinstance(content, str) else []


def test_the_version_stays_within_its_text_in_hcl() -> None:
    terraform = formats.load("terraform")
    for text in HOSTILE:
        server = server_saying(text, text)
        if not is_utf8_without_nul(text):
            with pytest.raises(FormatError, match=r"^cannot write "):
                terraform.render(plan_of(), server)
            continue
        rendered = terraform.render(plan_of(), server)
        if text in ("${", "%{"):
            continue  # python-hcl2 takes an escaped template for one that has to end; Terraform does not
        [block] = hcl2.loads(rendered)["resource"]
        [group] = [one for key, one in block['"aws_db_parameter_group"'].items() if key == '"pgdyno"']
        assert set(group) >= {"name_prefix", "family", "description", "lifecycle"}, ascii(text)
        assert len(re.findall(r'^resource "', rendered, re.MULTILINE)) == 1, ascii(text)


@each_format
def test_hostile_values_are_written_within_their_places_or_refused(name: str) -> None:
    for text in HOSTILE:
        value = setting("log_line_prefix", "old", text)
        files = [
            kernel_file("/proc/sys/vm/swappiness", "60", text),
            kernel_file("/sys/block/sda/queue/scheduler", "none", text),
            kernel_file("/sys/kernel/mm/transparent_hugepage/enabled", "always", text),
        ]
        plan, server = plan_of(value, *files), server_saying(text, text)
        rendered = outcome(partial(formats.load(name).render, plan, server))
        if isinstance(rendered, SettingError):
            refused = "line feed" if "\n" in text else "NUL byte"
            assert (name, "\n" in text or "\0" in text) == ("sql", True)
            assert rendered.message.endswith(f"to a value containing a {refused}")
        elif isinstance(rendered, FormatError):
            assert rendered.message.startswith("cannot write ")
        elif name in YAML:
            assert read_yaml(str(rendered)), ascii(text)
        else:
            assert str(rendered).encode(), ascii(text)


def test_a_value_longer_than_any_line_is_read_from_yaml_as_it_is() -> None:
    text = "a b " * 20_000
    written = formats.load("patroni").render(plan_of(setting("log_line_prefix", "old", text)), rich_server())
    assert read_yaml(written)["postgresql"]["parameters"]["log_line_prefix"] == text


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
    assert caught.value.detail == "a path may contain only letters, digits and . _ : ! @ + , ~ -"
