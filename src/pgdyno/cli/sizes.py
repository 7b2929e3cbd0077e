"""The options of studies that have sizes of their own, and the refusal of those that a study would ignore."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from pgdyno.model.errors import UsageError
from pgdyno.model.experiments.workload import PROTOCOLS

if TYPE_CHECKING:  # imported late, so that --help stays fast
    from pgdyno.cli.measuring import Measuring
    from pgdyno.studies._contract import Sizing

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--preset",
        metavar="NAME",
        help="Insert Benchmark: its size. quick and io-bound-quick take minutes; cached-small, "
        "io-bound-small and ax162-s are the published ones, with the published configuration, which is not "
        "durable [default: quick]. huge-pages: scaled to the machine, or published, for 256 GB of memory "
        "[default: scaled]. parallel-degree: data in shared-buffers, page-cache, or disk [default: "
        "shared-buffers].",
    ),
    click.option(
        "--step",
        "steps",
        multiple=True,
        metavar="STEP",
        help="Insert Benchmark: measure only this step (l.i0, l.x, …, qp1000), after what has to come before "
        "it; repeatable.",
    ),
    click.option(
        "--rows",
        metavar="X/Y/Z",
        help="Insert Benchmark: rows per client of l.i0, l.i1, l.i2 [default: the preset's].",
    ),
    click.option(
        "--step-seconds",
        type=click.IntRange(min=1),
        help="Insert Benchmark: length of each query step [default: the preset's].",
    ),
    click.option(
        "--mode",
        type=click.Choice(["corrected", "faithful"]),
        help="Insert Benchmark: open loop and fixed time, or as the original does it [default: corrected].",
    ),
    click.option("--query", metavar="SQL", help="parallel-degree: a query of yours, instead of its own two."),
    click.option(
        "--writes",
        "may_write",
        is_flag=True,
        help="parallel-degree: that query may write. Each execution is rolled back; dead rows and WAL stay, "
        "and so do sequences' numbers and what its functions do elsewhere.",
    ),
    click.option(
        "--protocol",
        "protocols",
        multiple=True,
        type=click.Choice(PROTOCOLS),
        help="clients: how statements travel; repeatable, for curves side by side [default: prepared].",
    ),
)
_STEPS_WITH_ROWS = 3


def size_options(command: Decorated) -> Decorated:
    """Add the options of studies that have sizes of their own."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class Size(NamedTuple):
    """Those options as given on the command line."""

    preset: str | None
    steps: tuple[str, ...]
    rows: str | None
    step_seconds: int | None
    mode: str | None
    query: str | None
    may_write: bool
    protocols: tuple[str, ...]

    def refuse_all_but(self, taken: Collection[str], who: str) -> None:
        """Raise UsageError for options that ``who`` would ignore; ``taken`` are names without hyphens."""
        given = {
            "preset": self.preset,
            "step": self.steps,
            "rows": self.rows,
            "step-seconds": self.step_seconds,
            "mode": self.mode,
            "query": self.query,
            "writes": self.may_write,
            "protocol": self.protocols,
        }
        refused = [
            f"--{name}"
            for name, value in given.items()
            if value not in (None, (), False) and name not in taken
        ]
        if refused:
            raise UsageError(
                f"{who} takes no {' and no '.join(refused)}", hint=f"leave out {' and '.join(refused)}"
            )

    def sizing(self, asked: Measuring, clients: int | None, varied: Mapping[str, Sequence[str]]) -> Sizing:
        """Return the size asked for. Raises: UsageError for rows that are none."""
        from pgdyno.studies._contract import Sizing

        return Sizing(
            preset=self.preset,
            clients=clients,
            rows=_parse_rows(self.rows),
            step_s=self.step_seconds,
            is_faithful=self.mode == "faithful",
            query=self.query,
            may_write=self.may_write,
            protocols=self.protocols,
            steps=self.steps,
            max_wal_sizes=_wal_sizes(varied),
            budget_s=asked.budget_s,
            scale=asked.scale,
        )


def _parse_rows(text: str | None) -> tuple[int, int, int] | None:
    if text is None:
        return None
    parts = text.split("/")
    if len(parts) != _STEPS_WITH_ROWS or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise UsageError(f'--rows "{text}" is not X/Y/Z', hint="for example --rows 400000/100000/10000")
    x, y, z = (int(part) for part in parts)
    return x, y, z


def _wal_sizes(factors: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return tuple(size for name, sizes in factors.items() if name.lower() == "max_wal_size" for size in sizes)
