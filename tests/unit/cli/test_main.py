"""Help texts as a terminal of 80 columns shows them."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from pgdyno.cli.main import cli

COLUMNS = 80


def help_pages(command: click.Command, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """Return the path and the help of a command and of all below it."""
    context = click.Context(command, parent, info_name=command.name, terminal_width=COLUMNS)
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from help_pages(below, context)


PAGES = dict(help_pages(cli))
every_page = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)


def test_commands_of_commands_are_among_the_pages() -> None:
    assert {"cli", "cli levers", "cli server install"} <= set(PAGES)


@every_page
def test_lists_of_commands_are_not_cut_off(page: str) -> None:
    listed = page.partition("\nCommands:\n")[2].partition("\n\n")[0]
    cut = [line for line in listed.splitlines() if line.endswith("...")]
    assert not cut, "the first sentence of the command's docstring is too long for 80 columns"


@every_page
def test_markup_is_not_shown(page: str) -> None:
    assert "``" not in page
    assert "\\b" not in page
