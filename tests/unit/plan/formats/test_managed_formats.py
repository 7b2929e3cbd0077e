"""Formats for servers that others run: what is written down, in which units, and what is left out."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import hcl2
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fix_plan import plan_of, rich_plan, rich_server, setting

from pgdyno.base.errors import SettingError
from pgdyno.model.plans.plan import Plan
from pgdyno.plan import formats
from pgdyno.plan.formats import cloudsql, cnpg, crunchy, patroni, rds, terraform, zalando

AS_WRITTEN = {
    "shared_buffers": "6GB",
    "work_mem": "24MB",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "15min",
    "max_connections": "200",
    "random_page_cost": "1.1",
    "autovacuum_vacuum_cost_delay": "500us",
    "jit": "off",
    "huge_pages": "try",
    "io_method": "io_uring",
    "wal_compression": "lz4",
    "log_line_prefix": "%m [%p] '%u' ",
}
IN_BASE_UNITS = {  # 6 GB in 8 kB, 24 MB in kB, 16 GB in MB, 15 min in s, 500 µs in ms
    **AS_WRITTEN,
    "shared_buffers": "786432",
    "work_mem": "24576",
    "max_wal_size": "16384",
    "checkpoint_timeout": "900",
    "autovacuum_vacuum_cost_delay": "0.5",
}


def without(names: set[str], settings: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name not in names}


def left_out(text: str) -> list[str]:
    """Return what a text says it leaves out, without the reasons."""
    return re.findall(r"^# cannot be changed here: (\S+) \(", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("patroni", ["postgresql", "parameters"]),
        ("cnpg", ["spec", "postgresql", "parameters"]),
        ("zalando", ["spec", "postgresql", "parameters"]),
        ("crunchy", ["spec", "patroni", "dynamicConfiguration", "postgresql", "parameters"]),
    ],
)
def test_yaml_has_every_value_as_the_string_that_was_planned(name: str, path: list[str]) -> None:
    content: Any = yaml.safe_load(formats.load(name).render(rich_plan(), rich_server()))
    for key in path:
        assert list(content) == [key]
        content = content[key]
    assert content == AS_WRITTEN  # a YAML 1.1 parser: a bare off would be False, a bare 200 a number


@pytest.mark.parametrize("name", ["patroni", "cnpg", "zalando", "crunchy"])
def test_an_empty_plan_is_an_empty_mapping_of_settings(name: str) -> None:
    content: Any = yaml.safe_load(formats.load(name).render(plan_of(), rich_server()))
    while content:
        [content] = content.values()
    assert content == {}


@pytest.mark.parametrize("name", ["patroni", "cnpg", "zalando", "crunchy", "ansible"])
@settings(max_examples=30)
@given(reason=st.text(max_size=200))
def test_no_reason_escapes_its_comment_in_yaml(name: str, reason: str) -> None:
    line = dataclasses.replace(setting("work_mem", "4MB", "8MB"), reason=reason)
    plain = dataclasses.replace(line, reason="a reason")
    module, server = formats.load(name), rich_server()
    read, expected = (read_yaml(module.render(plan_of(one), server)) for one in (line, plain))
    if name != "ansible":  # there the comment is part of a file's content
        assert read == expected
    assert shape(read) == shape(expected)


class _Unsafe(yaml.SafeLoader):
    """Knows Ansible's tag for texts that are no templates."""


def _scalar(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    assert isinstance(node, yaml.ScalarNode)
    return loader.construct_scalar(node)


_Unsafe.add_constructor("!unsafe", _scalar)


def read_yaml(text: str) -> Any:
    return yaml.load(text, Loader=_Unsafe)  # noqa: S506 — a safe loader with one more tag


def shape(content: Any) -> Any:
    """Return a document's keys without its texts."""
    if isinstance(content, dict):
        return {key: shape(value) for key, value in content.items()}
    return [shape(value) for value in content] if isinstance(content, list) else type(content)


def test_terraform_is_a_parameter_group_of_the_servers_family() -> None:
    read = hcl2.loads(terraform.render(rich_plan(), rich_server()))
    group = unquoted(read["resource"][0])["aws_db_parameter_group"]["pgdyno"]
    assert group["family"] == "postgres18"
    assert {one["name"]: one["value"] for one in group["parameter"]} == {
        **without({"huge_pages"}, IN_BASE_UNITS),
        "jit": "0",
    }
    assert {one["name"] for one in group["parameter"] if one["apply_method"] == "pending-reboot"} == {
        "shared_buffers", "max_connections", "io_method",
    }  # fmt: skip


def unquoted(content: Any) -> Any:
    """Return what the parser gives without the quotes that it keeps around texts."""
    if isinstance(content, dict):
        return {unquoted(key): unquoted(value) for key, value in content.items()}
    if isinstance(content, list):
        return [unquoted(value) for value in content]
    return json.loads(content) if isinstance(content, str) and content.startswith('"') else content


def test_terraform_does_not_take_a_value_for_a_template() -> None:
    assert terraform.quoted('${x} %{y} "z"') == '"$${x} %%{y} \\"z\\""'


def test_kubernetes_is_told_which_huge_pages_a_pod_has_to_ask_for() -> None:
    remark = 'hugepages-2Mi: "6448Mi"'  # 3224 pages of 2 MB
    for module in (cnpg, zalando, crunchy):
        assert remark in module.render(rich_plan(), rich_server())
        assert "hugepages" not in module.render(plan_of(setting("work_mem", "4MB", "8MB")), rich_server())


def test_patroni_is_restarted_through_patroni_standbys_first_where_they_need_it() -> None:
    text = " ".join(patroni.render(rich_plan(), rich_server()).split("\n#   "))
    assert "# max_connections: increase on standbys first, decrease on the primary first.\n" in text
    assert "patronictl restart CLUSTER" in text
    reloaded = patroni.render(plan_of(setting("work_mem", "4MB", "8MB")), rich_server())
    assert "patronictl restart" not in reloaded


@pytest.mark.parametrize(
    "name", ["patroni", "cnpg", "zalando", "crunchy", "rds", "aurora", "cloudsql", "azure"]
)
def test_changes_of_the_machine_are_left_out_with_the_words_that_settings_are(name: str) -> None:
    text = formats.load(name).render(rich_plan(), rich_server())
    assert "vm.swappiness" in left_out(text)
    assert "/sys/block/nvme0n1/queue/scheduler" in left_out(text)


def test_operators_fix_what_their_documentation_says() -> None:
    plan = plan_of(setting("hot_standby", "on", "off"), setting("ssl_key_file", "x", "y"))
    assert left_out(patroni.render(plan, rich_server())) == ["hot_standby"]
    assert left_out(zalando.render(plan, rich_server())) == ["hot_standby"]
    assert left_out(cnpg.render(plan, rich_server())) == ["hot_standby", "ssl_key_file"]
    assert left_out(crunchy.render(plan, rich_server())) == ["hot_standby", "ssl_key_file"]


def test_a_setting_that_the_server_does_not_know_is_refused() -> None:
    with pytest.raises(SettingError, match='unrecognized configuration parameter "no_such_setting"'):
        rds.render(plan_of(setting("no_such_setting", "1", "2")), rich_server())


def test_a_plan_that_is_left_out_altogether_is_said_to_be_empty() -> None:
    text = cloudsql.render(plan_of(setting("jit", "on", "off")), rich_server())
    assert "# pgdyno: 0 settings for PostgreSQL 18.6; none needs a restart.\n" in text


def test_plans_are_not_changed_by_being_written_down() -> None:
    plan: Plan = rich_plan()
    for name in formats.names():
        formats.load(name).render(plan, rich_server())
    assert plan == rich_plan()
