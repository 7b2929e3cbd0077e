"""A lever as ``pgdyno levers`` shows it: its description, and its state on a host and server."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.plans.plan import Layer, PlanLine, Risk


@dataclass(frozen=True)
class LeverFinding:
    """A lever's state with the values read, and its change or the reason for none.

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
