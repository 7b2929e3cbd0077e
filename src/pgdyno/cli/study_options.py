"""Options that only some studies take, read from the studies on demand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from pgdyno.base.errors import UsageError

if TYPE_CHECKING:  # imported late, so that --help stays fast
    from pgdyno.measure.bundled_study import Option

_PREFIX = "study_option_"


class StudyCommand(click.Command):
    """A command that takes the options of all studies, and shows them in a section of its help."""

    @cached_property
    def study_parameters(self) -> tuple[click.Option, ...]:
        """One parameter for each name, however many studies have an option of that name."""
        return tuple(_parameter(name, takers) for name, takers in _takers().items())

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own parameters and the studies'."""
        return [*super().get_params(ctx), *self.study_parameters]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then the studies'."""
        own = [one for one in super().get_params(ctx) if isinstance(one, click.Option)]
        for heading, shown in (("Options", own), ("Options of studies", self.study_parameters)):
            with formatter.section(heading):
                formatter.write_dl([record for one in shown if (record := one.get_help_record(ctx))])


def taken_out(options: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Take the studies' options out of a command's, and return the texts given, by name without hyphens."""
    names = {name.removeprefix(_PREFIX): name for name in list(options) if name.startswith(_PREFIX)}
    found = {name.replace("_", "-"): options.pop(parameter) for name, parameter in names.items()}
    return {name: ("",) if value is True else value for name, value in found.items() if value}


def refuse_all_but(taken: Collection[str], given: Mapping[str, tuple[str, ...]], who: str) -> None:
    """Raise UsageError for options that ``who`` would ignore; names are without hyphens."""
    refused = [f"--{name}" for name in given if name not in taken]
    if refused:
        raise UsageError(
            f"{who} takes no {' and no '.join(refused)}", hint=f"leave out {' and '.join(refused)}"
        )


def _takers() -> dict[str, dict[str, Option[Any]]]:
    """Return every option's name with the studies that take it."""
    from pgdyno.studies.bundled import load

    found: dict[str, dict[str, Option[Any]]] = {}
    for study, bundled in load().items():
        for option in bundled.options:
            found.setdefault(option.name, {})[study] = option
    return found


def _parameter(name: str, takers: Mapping[str, Option[Any]]) -> click.Option:
    first = next(iter(takers.values()))
    told = " ".join(_told(takers))
    names = [f"--{name}", _PREFIX + name.replace("-", "_")]
    if first.is_flag:
        return click.Option(names, is_flag=True, help=told)
    return click.Option(names, multiple=True, metavar=first.metavar, help=told)


def _told(takers: Mapping[str, Option[Any]]) -> Iterator[str]:
    studies: dict[str, list[str]] = {}
    for study, option in takers.items():
        studies.setdefault(option.help, []).append(study)
    yield from (f"{', '.join(names)}: {text}" for text, names in studies.items())
