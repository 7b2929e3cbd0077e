"""Scripts for providers' command lines, run by bash: what the provider's program is told."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from tests.fix_plan import plan_of, rich_plan, rich_server, setting

from pgdyno.base.errors import FormatError
from pgdyno.model.plans.plan import Plan
from pgdyno.plan import formats
from pgdyno.plan.formats import aurora, azure, cloudsql, rds

IN_BASE_UNITS = {  # 6 GB in 8 kB, 24 MB in kB, 16 GB in MB, 15 min in s, 500 µs in ms
    "shared_buffers": "786432",
    "work_mem": "24576",
    "max_wal_size": "16384",
    "checkpoint_timeout": "900",
    "max_connections": "200",
    "random_page_cost": "1.1",
    "autovacuum_vacuum_cost_delay": "0.5",
    "jit": "off",
    "huge_pages": "try",
    "io_method": "io_uring",
    "wal_compression": "lz4",
    "log_line_prefix": "%m [%p] '%u' ",
}
_RECORDER = '#!/usr/bin/env bash\n{ printf \'%s\\x1f\' "${0##*/}" "$@"; printf \'\\x1e\'; } >> "$CALLS"\n'


def run(directory: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script where the providers' programs only write down what they are told."""
    for program in ("aws", "az", "gcloud"):
        (directory / program).write_text(_RECORDER, encoding="utf-8")
        (directory / program).chmod(0o755)
    environment = {"PATH": f"{directory}:{os.environ['PATH']}", "CALLS": str(directory / "calls")}
    return subprocess.run(
        ["bash", "-s", "--", *arguments],
        input=text,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def calls(directory: Path, text: str, *arguments: str) -> list[list[str]]:
    """Return the commands that a script runs."""
    ended = run(directory, text, *arguments)
    assert ended.returncode == 0, ended.stderr
    recorded = directory / "calls"
    told = recorded.read_text(encoding="utf-8") if recorded.exists() else ""
    return [call.split("\x1f")[:-1] for call in told.split("\x1e")[:-1]]


def left_out(text: str) -> list[str]:
    """Return what a text says it leaves out, without the reasons."""
    return re.findall(r"^# cannot be changed here: (\S+) \(", text, re.MULTILINE)


def test_rds_takes_base_units_booleans_as_0_and_1_and_no_huge_pages_try(tmp_path: Path) -> None:
    text = rds.render(rich_plan(), rich_server())
    [call] = calls(tmp_path, text, "mine")
    assert call[:6] == [
        "aws", "rds", "modify-db-parameter-group", "--db-parameter-group-name", "mine", "--parameters",
    ]  # fmt: skip
    restarts = {"shared_buffers", "max_connections", "io_method"}
    expected = {**IN_BASE_UNITS, "jit": "0"}
    del expected["huge_pages"]
    assert [json.loads(word) for word in call[6:]] == [
        {
            "ParameterName": name,
            "ParameterValue": value,
            "ApplyMethod": "pending-reboot" if name in restarts else "immediate",
        }
        for name, value in expected.items()
    ]
    assert "# cannot be changed here: huge_pages (allowed: on, off; planned: try)\n" in text


def test_amazon_is_told_twenty_parameters_at_a_time(tmp_path: Path) -> None:
    plan = plan_of(*[setting("work_mem", "4MB", "8MB")] * 45)
    told = calls(tmp_path, rds.render(plan, rich_server()), "mine")
    assert [len(call) - 6 for call in told] == [20, 20, 5]


def test_aurora_changes_the_clusters_group_and_leaves_out_what_amazons_lists_do_not_have(
    tmp_path: Path,
) -> None:
    text = aurora.render(rich_plan(), rich_server())
    [call] = calls(tmp_path, text, "mine")
    assert call[2:5] == ["modify-db-cluster-parameter-group", "--db-cluster-parameter-group-name", "mine"]
    told = {word["ParameterName"] for word in map(json.loads, call[6:])}
    assert told == set(IN_BASE_UNITS) - {"max_wal_size", "checkpoint_timeout", "jit", "wal_compression"}
    assert left_out(text)[:4] == ["max_wal_size", "checkpoint_timeout", "jit", "wal_compression"]


def test_azure_sets_parameter_by_parameter_and_only_values_that_it_lists(tmp_path: Path) -> None:
    text = azure.render(rich_plan(), rich_server())
    expected = {
        name: value for name, value in IN_BASE_UNITS.items() if name not in {"io_method", "wal_compression"}
    }
    assert calls(tmp_path, text, "group", "server") == [
        [
            "az", "postgres", "flexible-server", "parameter", "set", "--resource-group", "group",
            "--server-name", "server", "--name", name, "--value", value,
        ]
        for name, value in expected.items()
    ]  # fmt: skip
    assert left_out(text)[:2] == ["io_method", "wal_compression"]


def test_a_value_above_what_a_provider_takes_is_left_out_with_the_bound_in_readable_units(
    tmp_path: Path,
) -> None:
    text = azure.render(plan_of(setting("max_wal_size", "1GB", "96GB")), rich_server())
    assert calls(tmp_path, text, "group", "server") == []
    assert "# cannot be changed here: max_wal_size (maximum: 64GB; planned: 96GB)\n" in text
    at_the_bound = azure.render(plan_of(setting("max_wal_size", "1GB", "64GB")), rich_server())
    assert calls(tmp_path, at_the_bound, "group", "server")[0][-1] == "65536"


def test_cloud_sql_is_told_all_flags_at_once_with_those_to_be_kept(tmp_path: Path) -> None:
    text = cloudsql.render(rich_plan(), rich_server())
    told = calls(tmp_path, text, "mine", "cloudsql.enable_pgaudit=on")
    flags = {**IN_BASE_UNITS, "cloudsql.enable_pgaudit": "on"}
    del flags["jit"]
    assert told == [
        [
            "gcloud", "sql", "instances", "patch", "mine",
            "--database-flags=^;^" + ";".join(f"{name}={value}" for name, value in flags.items()),
        ]
    ]  # fmt: skip
    assert left_out(text)[0] == "jit"


def test_cloud_sql_is_told_nothing_where_nothing_is_left_since_that_would_reset_all_flags(
    tmp_path: Path,
) -> None:
    ended = run(tmp_path, cloudsql.render(plan_of(setting("jit", "on", "off")), rich_server()), "mine")
    assert (ended.returncode, ended.stderr) == (1, "no flag to set\n")
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (rds, "name the parameter group"),
        (aurora, "name the parameter group"),
        (azure, "name the resource group"),
        (cloudsql, "name the instance"),
    ],
)
def test_a_script_without_its_argument_says_what_is_missing(
    tmp_path: Path, module: ModuleType, message: str
) -> None:
    ended = run(tmp_path, module.render(rich_plan(), rich_server()))
    assert ended.returncode != 0
    assert message in ended.stderr
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize("name", ["rds", "aurora", "azure"])
def test_an_empty_plan_tells_nothing(tmp_path: Path, name: str) -> None:
    text = formats.load(name).render(Plan((), (), (), None), rich_server())
    assert calls(tmp_path, text, "one", "two") == []


def test_former_values_are_named_as_they_are_written_there() -> None:
    text = rds.render(
        plan_of(setting("shared_buffers", "128MB", "6GB"), setting("jit", "on", "off")), rich_server()
    )
    assert "  # undo: back to 16384 (128MB)\n" in text
    assert "  # undo: back to 1 (on)\n" in text
    never_set = rds.render(plan_of(setting("work_mem", None, "8MB")), rich_server())
    assert "  # undo: reset it to the provider's default\n" in never_set


def test_what_no_source_speaks_of_is_written_down_and_marked() -> None:
    text = rds.render(plan_of(setting("work_mem", "4MB", "8MB"), setting("jit", "on", "off")), rich_server())
    mark = "not verified: no source states whether Amazon RDS allows changing it"
    assert text.count(mark) == 1
    assert text.index("# jit: on → off") < text.index(mark)


def test_a_value_with_gclouds_separator_of_flags_is_refused() -> None:
    plan = plan_of(setting("log_line_prefix", "%m ", "%m;log_statement=all"))
    with pytest.raises(FormatError) as caught:
        cloudsql.render(plan, rich_server())
    assert caught.value.message == (
        'cannot write "log_line_prefix=%m;log_statement=all" into gcloud\'s list of flags'
    )
    assert caught.value.detail == 'it contains ";"'


def test_a_value_that_az_would_read_from_a_file_is_refused() -> None:
    plan = plan_of(setting("log_line_prefix", "%m ", "@/etc/passwd"))
    with pytest.raises(FormatError) as caught:
        azure.render(plan, rich_server())
    assert caught.value.message == 'cannot write "@/etc/passwd" into a command of az'
    assert caught.value.detail == "it begins with @, which names a file there"
