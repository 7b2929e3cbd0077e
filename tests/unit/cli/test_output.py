"""What commands print of texts that servers, hosts and files say: nothing that a terminal acts on."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from rich.console import Group, RenderableType
from rich.progress import TextColumn
from rich.table import Table
from tests.hostile_strings import HOSTILE, WRITABLE

from pgdyno.base.text import printable
from pgdyno.cli.main import COMMANDS, print_unexpected
from pgdyno.cli.output import Bar, Lines, as_typed, echo, print_file, print_json, print_wide
from pgdyno.model.cells.cell import TypedAt

STEERING = [
    "\x07",
    "\x08",
    "\x1b",
    "\r",
    "\x7f",
    "\x9b",
    "\x9d",
    "\u200f",
    "\u202e",
    "\u2066",
    "\u2028",
    "\udc80",
]


def steering(text: str) -> set[str]:
    return {
        one for one in text if one != "\n" and unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
    }


@pytest.mark.parametrize("character", STEERING)
def test_what_steers_a_terminal_is_replaced(character: str) -> None:
    assert printable(f"a{character}b") == "a\ufffdb"


@pytest.mark.parametrize(
    "text", ["plain", "two\nlines", "é € 🐘", "10\u202f000", "0.5\u00a0%", "[bold]x[/bold]"]
)
def test_what_does_not_is_left(text: str) -> None:
    assert printable(text) == text


def test_a_tab_becomes_spaces() -> None:
    assert printable("unexpectedly\n\tThis") == "unexpectedly\n    This"


def test_a_text_is_printed_without_it(capsys: pytest.CaptureFixture[str]) -> None:
    for text in HOSTILE:
        echo(text)
        echo(text, err=True)
        Lines().step(text)
    printed = capsys.readouterr()
    assert steering(printed.out) == steering(printed.err) == set()
    assert "{{ lookup('pipe', 'id') }}" in printed.out


@pytest.mark.parametrize("cell", HOSTILE[:5] + HOSTILE[8:])
def test_a_table_is_printed_without_it_and_without_markup(
    cell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where a table forgets to make a text of a cell."""
    if any("\ud800" <= one <= "\udfff" for one in cell):
        cell = cell.encode("ascii", "backslashreplace").decode()  # rich measures no half of a character
    table = Table(box=None)
    table.add_column("x", no_wrap=True)
    table.add_row(f"[bold red]:smile:{cell}")
    shown: RenderableType = Group(table, cell)
    print_wide(shown)
    printed = capsys.readouterr().out
    assert steering(printed) == set()
    assert "[bold red]:smile:" in printed


def test_json_has_escapes_for_it_and_reads_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"texts": HOSTILE})
    printed = capsys.readouterr().out
    assert steering(printed) == set()
    assert json.loads(printed)["texts"] == list(HOSTILE)


def test_json_has_no_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"rates": {"a": [float("inf"), float("nan"), 1.5]}})
    assert json.loads(capsys.readouterr().out)["rates"] == {"a": [None, None, 1.5]}


def test_the_text_of_a_file_is_exact_in_a_file_and_harmless_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "value: \x1b[2J\u202e\n"
    print_file(text)
    assert capsys.readouterr().out == text
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_file(text)
    assert capsys.readouterr().out == "value: \ufffd[2J\ufffd\n"


def test_a_progress_bar_has_no_markup_and_nothing_that_steers() -> None:
    bar = Bar()
    try:
        for text in WRITABLE:
            bar.step(f"[blink]{text}")
            (task,) = bar._progress.tasks
            assert steering(task.description) == set()
            column = bar._progress.columns[0]
            assert isinstance(column, TextColumn)
            assert str(column(task)) == task.description
    finally:
        bar.close()


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_progress_in_a_log_is_a_line_a_step_and_a_line_after_ten_silent_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    lines = Lines(clock)
    lines.step("loading")
    for second in range(1, 26):  # twice a second, as a capture does
        for half in (0.0, 0.5):
            clock.now_s = 100.0 + second + half
            lines.advance(second + half, 40.0)
    lines.step("measuring")
    clock.now_s = 140.0
    lines.advance(40.0, 42.0)
    lines.step("concluding")
    assert capsys.readouterr().err.splitlines() == [
        "     0 s  loading",
        "    10 s  about 30 s left",
        "    20 s  about 20 s left",
        "    26 s  measuring (about 14 s left)",
        "    40 s  concluding",
    ]


USER = TypedAt("lab hosts.toml", "ssh -F /home/ada/config db1 pgdyno")
HERE = [
    ("pgdyno revert restores it", "pgdyno revert --cell 'lab hosts.toml' restores it"),
    ("see pgdyno status; or pgdyno revert --all",
     "see pgdyno status --cell 'lab hosts.toml'; or pgdyno revert --cell 'lab hosts.toml' --all"),
    ("pgdyno report X, or continue with --resume X",
     "ssh -F /home/ada/config db1 pgdyno report X, or continue with --resume X"),
    ("pgdyno status --cell b.toml", "pgdyno status --cell b.toml"),
    ("pgdyno runs no code of a dump; pgdyno-driver run; pgdyno", None),
]  # fmt: skip


@pytest.mark.parametrize(("said", "typed"), HERE)
def test_a_command_is_named_as_the_user_types_it(
    said: str, typed: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert as_typed(said) == said
    for name, value in USER.variables().items():
        monkeypatch.setenv(name, value)
    assert as_typed(said) == (typed or said)


def test_every_other_command_is_run_by_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in USER.variables().items():
        monkeypatch.setenv(name, value)
    assert {as_typed(f"pgdyno {name}") for name in COMMANDS if name not in {"fleet", "cell"}} == {
        f"{USER.by_hand} {name}"
        if name in {"setup", "server", "build", "levers", "explain-degree", "switch", "workload", "awake",
                    "report", "experiments", "bundle"}
        else f"pgdyno {name} --cell 'lab hosts.toml'"
        for name in COMMANDS if name not in {"fleet", "cell"}
    }  # fmt: skip


def test_the_hint_of_an_error_is_one_of_these_texts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in USER.variables().items():
        monkeypatch.setenv(name, value)
    print_unexpected(ValueError, ValueError("odd"), None)
    assert "and pgdyno revert --cell 'lab hosts.toml' undoes it\n" in capsys.readouterr().err
