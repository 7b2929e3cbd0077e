"""What a hint tells people to type can be typed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import click
from tests.house.source import Module, modules

from pgdyno.cli.main import cli

OPTION = re.compile(r"--[a-z][a-z-]+")
OF_OTHERS = re.compile(r"\b(?:psql|pg_config|pip install|sysbench) --[a-z-]+")
"""Options of other programs, named together with them."""


def test_every_option_in_a_hint_exists_in_some_command() -> None:
    known = {
        option
        for command in commands(cli)
        for parameter in command.get_params(click.Context(command))
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    wrong = [
        f"{place}: no command has the option {option}"
        for place, hint in hints()
        for option in OPTION.findall(OF_OTHERS.sub("", hint))
        if option not in known
    ]
    assert not wrong, "\n".join(wrong)


def commands(group: click.Group) -> Iterator[click.Command]:
    """Yield every command and sub-command."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield command
        if isinstance(command, click.Group):
            yield from commands(command)


def hints() -> list[tuple[str, str]]:
    """Return every text that is passed as a hint, with its place."""
    found = [one for module in modules() for one in _hints_of(module)]
    assert len(found) > 100  # as there were when this test was written: it does find them
    return found


def _hints_of(module: Module) -> Iterator[tuple[str, str]]:
    """Yield what is passed as ``hint=`` and what is assigned to a name that is passed so or holds hints."""
    passed = [
        keyword.value
        for node in module.nodes
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "hint"
    ]
    names = {node.id for value in passed for node in ast.walk(value) if isinstance(node, ast.Name)}
    assigned = [
        node.value
        for node in module.nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and (target.id in names or "HINT" in target.id)
    ]
    for value in [*passed, *assigned]:
        for node in ast.walk(value):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{module.place}:{node.lineno}", node.value
