"""Study-specific options, read from the studies on demand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from pgdyno.base.errors import UsageError

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.measure.bundled_study import Option

_PREFIX = "study_option_"


class StudyCommand(click.Command):
    """A command that accepts the options of all studies, and lists them in a separate section of its help."""

    @cached_property
    def study_parameters(self) -> tuple[click.Option, ...]:
        """One parameter per option name; several studies may share a name."""
        return tuple(_parameter(name, takers) for name, takers in _takers().items())

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own parameters and those of the studies."""
        return [*super().get_params(ctx), *self.study_parameters]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then those of the studies."""
        own = [one for one in super().get_params(ctx) if isinstance(one, click.Option)]
        for heading, shown in (("Options", own), ("Options of studies", self.study_parameters)):
            with formatter.section(heading):
                formatter.write_dl([record for one in shown if (record := one.get_help_record(ctx))])


def taken_out(options: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Remove the studies' options from ``options``; return the given texts by name, without leading "--"."""
    names = {name.removeprefix(_PREFIX): name for name in list(options) if name.startswith(_PREFIX)}
    found = {name.replace("_", "-"): options.pop(parameter) for name, parameter in names.items()}
    return {name: ("",) if value is True else value for name, value in found.items() if value}


def refuse_all_but(taken: Collection[str], given: Mapping[str, tuple[str, ...]], who: str) -> None:
    """Raise UsageError for options that ``who`` would ignore; names are without leading "--"."""
    refused = [f"--{name}" for name in given if name not in taken]
    if refused:
        raise UsageError(
            f"{who} takes no {' and no '.join(refused)}", hint=f"leave out {' and '.join(refused)}"
        )


def _takers() -> dict[str, dict[str, Option[Any]]]:
    """Return option name -> study -> option."""
    from pgdyno.studies.bundled import load

    found: dict[str, dict[str, Option[Any]]] = {}
    for study, bundled in load().items():
        for option in bundled.options:
            found.setdefault(option.name, {})[study] = option
    return found


def _parameter(name: str, takers: Mapping[str, Option[Any]]) -> click.Option:
    first = next(iter(takers.values()))
    text = " ".join(_help(takers))
    names = [f"--{name}", _PREFIX + name.replace("-", "_")]
    if first.is_flag:
        return click.Option(names, is_flag=True, help=text)
    return click.Option(names, multiple=True, metavar=first.metavar, help=text)


def _help(takers: Mapping[str, Option[Any]]) -> Iterator[str]:
    studies: dict[str, list[str]] = {}
    for study, option in takers.items():
        studies.setdefault(option.help, []).append(study)
    yield from (f"{', '.join(names)}: {text}" for text, names in studies.items())
