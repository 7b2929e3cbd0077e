"""Names of commands and options that do not exist."""

from __future__ import annotations

import pytest

from pgdyno.cli.main import main


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("inspec", 'did you mean "inspect"? pgdyno --help lists all commands'),
        ("explain_degree", 'did you mean "explain-degree"? pgdyno --help lists all commands'),
        ("xyzzy", "pgdyno --help lists all commands"),
    ],
)
def test_command_that_does_not_exist_is_a_usage_error_with_the_most_similar_one(
    name: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f'no command "{name}"' in said
    assert f"HINT:  {hint}\n" in said


def test_the_former_name_of_the_recipe_is_answered_with_the_present_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["build", "--source", "debian:18", "--profile", "pgo+lto"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "pgdyno: ERROR:  no such option: --profile  (PGD-100)\nHINT:  did you mean --recipe pgo+lto?\n"
    )
