"""A lever as ``pgdyno levers`` shows it: what it is, and what it finds on one host and server."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.plans.plan import Layer, PlanLine, Risk


@dataclass(frozen=True)
class LeverFinding:
    """What a lever finds: its state with the values read, and what it would change or why it does nothing.

    ``state`` is one of ``levers.metadata.State``.
    """

    state: str
    detail: str
    lines: tuple[PlanLine, ...]
    left_alone: str | None


@dataclass(frozen=True)
class LeverEntry:
    """A lever of the catalogue; ``finding`` is None where no server was reached.

    ``maturity`` is one of ``levers.metadata.Maturity``; ``page`` is its documentation as plain text.
    """

    name: str
    title: str
    layer: Layer
    maturity: str
    risk: Risk
    page: str
    finding: LeverFinding | None
