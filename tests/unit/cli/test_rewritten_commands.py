"""Commands in texts of a carried command: as the user types them, who sits at another machine."""

from __future__ import annotations

import pytest

from pgdyno.cli._rewritten_commands import as_typed
from pgdyno.cli.main import COMMANDS, print_unexpected
from pgdyno.model.cells.cell import TypedAt

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
