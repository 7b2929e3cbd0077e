"""The result of watching a plan on a server's own traffic, in a sentence or two. Pure."""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.measure.decisions.watch_decision import LEAST_TRANSACTIONS, Watched, WatchState


def watch_text(seen: Watched) -> str:
    """Return the observations, and the configuration in force."""
    now = "The plan is in force." if seen.is_applied else "The original configuration is in force."
    alarm = "ALARM: " if seen.is_alarm else ""
    return f"{alarm}{_seen(seen)} {now}"


def _seen(seen: Watched) -> str:
    of = f"{seen.pairs} of {seen.pairs_planned} pairs of periods"
    mean = "" if seen.ratio is None else f"mean time per transaction {numbers.change(seen.ratio, 1)}"
    if seen.state is WatchState.HARM:
        return f"The server's own transactions take longer with the plan: {mean}, {of}."
    if seen.state is WatchState.NO_HARM:
        return f"The server's own transactions show no harm by the plan: {mean}, {of}."
    if seen.state is WatchState.TOO_LITTLE:
        return f"There is too little traffic to see harm: {of} had {LEAST_TRANSACTIONS} transactions in each."
    return f"The watch ended early: {seen.reason}."
