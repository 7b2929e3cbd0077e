"""Options that a study has no use for are refused before anything runs, and named."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from pgdyno.base.errors import UsageError
from pgdyno.cli.main import cli
from pgdyno.cli.measuring import Measuring, parsed_variant, refuse_with_cell, warn_of_load
from pgdyno.model.cells.cell import CellHost, CellHosts, HostRole
from pgdyno.postgres.process.installation import Installation
from pgdyno.studies import bundled as studies
from pgdyno.studies import run

SIZES = {
    "preset": "quick",
    "step": "qr100",
    "rows": "10/20/30",
    "step-seconds": "3",
    "mode": "corrected",
    "query": "SELECT 1",
    "writes": "",
    "protocol": "simple",
}
TAKEN = {
    "insert-benchmark": {"preset", "step", "rows", "step-seconds", "mode"},
    "huge-pages": {"preset"},
    "parallel-degree": {"preset", "query", "writes"},
    "clients": {"protocol"},
}


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def ran(*_: object) -> None:
        raise AssertionError("it was run")

    mine = Installation(Path("/nowhere"), "18.1", 18, "embedded")
    monkeypatch.setattr(Measuring, "installation", lambda _: mine)
    monkeypatch.setattr(run, "measure", ran)


def refused(text: str) -> UsageError:
    """Return the error of ``pgdyno run`` with these words."""
    error = CliRunner().invoke(cli, ["run", *shlex.split(text)], standalone_mode=False).exception
    assert isinstance(error, UsageError), error
    return error


@pytest.mark.parametrize("study", sorted(studies.load()))
@pytest.mark.parametrize("option", SIZES)
def test_a_study_takes_its_own_sizes_and_no_others(study: str, option: str) -> None:
    own = {one.name for one in studies.load()[study].options}
    assert (option in own) == (option in TAKEN.get(study, set()))
    if option not in TAKEN.get(study, set()):
        error = refused(
            f"{study} --embedded --{option} {shlex.quote(SIZES[option]) if SIZES[option] else ''}"
        )
        assert error.message == f"the study {study} takes no --{option}"
        assert error.hint == f"leave out --{option}"


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (
            "clients --embedded --step qr100 --rows 1/2/3 --mode faithful",
            "the study clients takes no --step and no --rows and no --mode",
            "leave out --step and --rows and --mode",
        ),
        ("clients --dsn x --preset disk", "the study clients takes no --preset", "leave out --preset"),
        (
            "parallel-degree --dsn x --query TABLE --mode faithful --protocol simple",
            "the study parallel-degree takes no --mode and no --protocol",
            "leave out --mode and --protocol",
        ),
        ("clients --embedded --preset ''", "the study clients takes no --preset", "leave out --preset"),
        ("some.toml --embedded --preset disk", "an experiment file takes no --preset", "leave out --preset"),
        (
            "clients --embedded --generator pgbench",
            "this study has its own workloads",
            "leave out --generator",
        ),
        (
            "insert-benchmark --embedded --generator sysbench --scale 3",
            "this study has its own workloads",
            "leave out --scale and --generator",
        ),
        (
            "clients --dsn x --generator pgbench --accept",
            "a running server is measured as it is: it takes no --accept, --generator",
            "leave them out",
        ),
    ],
)
def test_the_error_names_the_study_and_what_to_leave_out(words: str, message: str, hint: str) -> None:
    error = refused(words)
    assert (error.message, error.hint) == (message, hint)


def test_help_tells_an_option_that_studies_share_once() -> None:
    told = " ".join(CliRunner().invoke(cli, ["run", "--help"]).output.split())
    assert told.count("tables that clients work on") == 1
    assert "--tables shared|own clients, loop: tables that clients work on" in told


@pytest.mark.parametrize("command", ["apply", "advise"])
def test_unmeasured_changes_are_of_the_machine(command: str) -> None:
    done = CliRunner().invoke(cli, [command, "--dsn", "x", "--unmeasured", "--layers", "application"])
    assert isinstance(done.exception, UsageError)
    error = done.exception
    assert error.message == "--unmeasured requires a layer of the machine, and none is planned"
    assert (error.detail, error.hint) == (
        "layers: application",
        "add --layers all, or --layers application,system,hardware",
    )


@pytest.mark.parametrize("command", [["bench", "pgbench-select"], ["compare", "a", "b"]])
def test_a_protocol_is_that_of_scripts(command: list[str]) -> None:
    named = [] if command[0] == "bench" else ["--workload", "pgbench-select"]
    found = CliRunner().invoke(cli, [*command, *named, "--embedded", "--protocol", "simple"])
    assert isinstance(found.exception, UsageError)
    assert found.exception.message == "--protocol requires --script"


def test_a_script_of_sysbench_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "own.lua"
    script.write_text("function event() end")
    found = CliRunner().invoke(cli, ["bench", "--embedded", "--script", str(script)])
    assert isinstance(found.exception, UsageError)
    assert found.exception.message == f'script "{script}" is not a script of pgbench'


def test_a_variant_of_the_command_line_has_the_sql_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "orders.sql").write_text("\ufeffCREATE INDEX ON orders (customer_id);\n", encoding="utf-8")
    variant = parsed_variant(f"idx:sql={tmp_path}/orders.sql")
    assert variant.statements == ("CREATE INDEX ON orders (customer_id)",)


@pytest.mark.parametrize(
    ("contents", "detail"), [(None, "No such file or directory"), (b"\xff", "it is not UTF-8 text")]
)
def test_a_file_of_sql_that_cannot_be_read_is_named(
    tmp_path: Path, contents: bytes | None, detail: str
) -> None:
    if contents is not None:
        (tmp_path / "orders.sql").write_bytes(contents)
    with pytest.raises(UsageError) as caught:
        parsed_variant(f"idx:sql={tmp_path}/orders.sql")
    assert caught.value.message == f'could not read the SQL file "{tmp_path}/orders.sql"'
    assert caught.value.detail == detail
    assert caught.value.hint == "name a file: idx:sql=orders.sql"


def test_options_that_conflict_are_named_together() -> None:
    refuse_with_cell({"--dsn": None, "--generator": ""})
    with pytest.raises(UsageError) as caught:
        refuse_with_cell({"--dsn": "x", "--isolate": False, "--resume": "y"})
    assert str(caught.value) == (
        "--cell cannot be combined with --dsn and --resume\n"
        "HINT:  load from other hosts takes no CPUs here, and goes to scratch servers"
    )


def test_a_command_without_load_hosts_names_those_it_leaves_idle(capsys: pytest.CaptureFixture[str]) -> None:
    loads = tuple(CellHost(name, HostRole.LOAD, name) for name in ("one", "two"))
    warn_of_load("tune", CellHosts(CellHost("db", HostRole.SERVER, "db"), loads))
    assert "db generates the load itself: tune does not use load hosts yet (one, two)" in (
        capsys.readouterr().err
    )
