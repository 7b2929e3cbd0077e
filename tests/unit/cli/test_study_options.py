"""Options of studies: each in the help once with the studies that take it, and refused elsewhere."""

from __future__ import annotations

from typing import Any

import click
import pytest

from pgdyno.base.errors import UsageError
from pgdyno.cli.main import main
from pgdyno.cli.study_options import StudyCommand, refuse_all_but, taken_out


def test_given_options_are_taken_out_by_their_name() -> None:
    options: dict[str, Any] = {
        "study_option_page_sizes": ("4kB", "2MB"),
        "study_option_shared": True,
        "study_option_none": (),
        "clients": 4,
    }
    assert taken_out(options) == {"page-sizes": ("4kB", "2MB"), "shared": ("",)}
    assert options == {"clients": 4}


def test_options_that_would_be_ignored_are_refused() -> None:
    refuse_all_but(["scale"], {"scale": ("1",)}, "the study")
    with pytest.raises(UsageError) as caught:
        refuse_all_but(["scale"], {"scale": ("1",), "step": ("q1",), "queries": ("1",)}, "the study")
    assert str(caught.value) == (
        "the study takes no --step and no --queries\nHINT:  leave out --step and --queries"
    )


def test_each_option_is_one_parameter_beside_the_commands_own() -> None:
    command = StudyCommand("x", params=[click.Option(["--own"])])
    names = [one.opts[0] for one in command.get_params(click.Context(command))]
    assert names[0] == "--own"
    assert len(set(names)) == len(names) > 5


def test_the_help_has_them_in_a_section_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "--help"])
    own, studies = capsys.readouterr().out.split("\nOptions of studies:\n")
    assert "\n  --budget " in own
    assert "\n  --budget " not in studies
    assert "insert-benchmark: " in studies
