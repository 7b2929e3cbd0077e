"""A profile as one HTML file. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from pgdyno.base.text import printable
from pgdyno.profile.records.profile_record import AccountGroup, StackCount, TransactionProfile
from pgdyno.profile.view.processor import code_figures, code_notes, processor_notes, processor_tables
from pgdyno.profile.view.profile_text import (
    account_table,
    advice_lines,
    comparison_table,
    headline,
    kernel_table,
    notes,
    shown_lines,
)
from pgdyno.profile.view.statements_text import statement_tables, where_time_goes
from pgdyno.report.charts.shares import STEPS, CascadeBar, FlameBar, cascade, flame_graph, style_of
from pgdyno.report.charts.svg import Caption
from pgdyno.report.elements.html import render
from pgdyno.report.elements.tables import Figure, Table, columns, figure

_PAGE = "profile.html.j2"
_LEAST_FLAME = 0.003  # of all samples: narrower bars would be invisible
_MOST_FUNCTIONS = 30
_HEATS = [(f"more than {least:.2%}" if least else "less", style_of(least * 1.01 or 1e-9)) for least in STEPS]
_STYLES = {one: f"shade-{place}" for place, one in enumerate(AccountGroup)}
_SEPARATORS = str.maketrans({";": ":", " ": "_"})
"""Separators of folded stacks, replaced in function names."""


@dataclass(frozen=True)
class Flame:
    """A function in all stacks with the same callers. Unit: samples; ``depth`` 0 is the outermost."""

    function: str
    start: int
    samples: int
    depth: int


@dataclass(frozen=True)
class ProfileSection:
    """A variant's section of the page."""

    variant: str
    statements: tuple[Table, ...]
    figure: Figure
    flames: Figure | None
    tables: tuple[Table, ...]
    advice: tuple[str, ...]


def render_profiles(profiles: Sequence[TransactionProfile]) -> str:
    """Return the whole page, for one profile or for two compared ones."""
    return render(
        _PAGE,
        workload=profiles[0].workload,
        headlines=[*_headlines(profiles)],
        compared=comparison_table(*profiles) if len(profiles) > 1 else None,
        sections=[_section(one, place) for place, one in enumerate(profiles)],
        groups=[(str(one), _STYLES[one]) for one in AccountGroup],
        code=[*code_figures(profiles)],
        heats=_HEATS,
        notes=[*dict.fromkeys(_notes(profiles))],
    )


def _headlines(profiles: Sequence[TransactionProfile]) -> Iterator[str]:
    for one in profiles:
        yield from filter(None, (where_time_goes(one.statements), headline(one)))


def _notes(profiles: Sequence[TransactionProfile]) -> Iterator[str]:
    for one in profiles:
        yield from notes(one)
        yield from processor_notes(one)
    yield from code_notes(profiles)


def _section(profile: TransactionProfile, place: int) -> ProfileSection:
    bars = tuple(_bars(profile))
    title = f"Where {profile.latency.us:,.0f} µs go: {profile.variant}"
    description = "; ".join(f"{bar.label} {bar.shown}" for bar in bars)
    caption = Caption(f"account-{place}", title, description)
    tables = (kernel_table(profile), *processor_tables(profile))
    return ProfileSection(
        profile.variant,
        tuple(statement_tables(profile)),
        figure(partial(cascade, caption, bars, profile.latency.us), account_table(profile), title=title),
        _flame_figure(profile, place) if profile.stacks else None,
        tuple(table for table in tables if table.rows),
        tuple(advice_lines(profile)),
    )


def _flame_figure(profile: TransactionProfile, place: int) -> Figure:
    """Return the flame graph; its table lists the functions with most samples."""
    whole = sum(one.samples for one in profile.stacks)
    found = flames(profile.stacks, max(1, round(whole * _LEAST_FLAME)))
    bars = [FlameBar(one.function, one.start / whole, one.samples / whole, one.depth) for one in found]
    title = f"CPU time of sessions by functions, callers above: {whole:,} samples"
    caption = Caption(f"flames-{place}", title, "the table behind this chart lists the largest functions")
    return figure(partial(flame_graph, caption, bars), _functions(profile, whole), title=title)


def _functions(profile: TransactionProfile, whole: int) -> Table:
    """Return the innermost functions by number of samples, most first."""
    innermost: Counter[str] = Counter()
    for one in profile.stacks:
        innermost[one.frames[-1] if one.frames else "?"] += one.samples
    rows = tuple((name, f"{samples / whole:.1%}") for name, samples in innermost.most_common(_MOST_FUNCTIONS))
    return Table("Innermost functions", columns("Function", "share of samples", numbers_from=1), rows)


def _bars(profile: TransactionProfile) -> Iterator[CascadeBar]:
    for group in AccountGroup:
        for line in shown_lines(profile, group):
            yield CascadeBar(
                f"{group}: {line.name}", line.time.us, _shown(line.time.us, profile), _STYLES[group]
            )
    yield CascadeBar(
        "not accounted for", profile.unaccounted_us, _shown(profile.unaccounted_us, profile), "rest"
    )


def _shown(us: float, profile: TransactionProfile) -> str:
    return f"{us:z,.0f} µs, {us / profile.latency.us:z.1%}"


def folded(stacks: Sequence[StackCount]) -> Iterator[str]:
    """Yield a line per stack, in the format of flamegraph.pl and speedscope: ``a;b;c 12``."""
    for one in stacks:
        names = ";".join(printable(frame or "?").translate(_SEPARATORS) for frame in one.frames)
        yield f"{names or '?'} {one.samples}"


def flames(stacks: Sequence[StackCount], least: int) -> tuple[Flame, ...]:
    """Return the functions of sorted stacks, without those with fewer than ``least`` samples."""
    return tuple(_flames(stacks, least, 0, 0))


def _flames(stacks: Sequence[StackCount], least: int, depth: int, start: int) -> Iterator[Flame]:
    for function, grouped in groupby(
        stacks, lambda one: one.frames[depth] if depth < len(one.frames) else None
    ):
        alike = list(grouped)
        samples = sum(one.samples for one in alike)
        if function is not None and samples >= least:
            yield Flame(function, start, samples, depth)
            yield from _flames(alike, least, depth + 1, start)
        start += samples
