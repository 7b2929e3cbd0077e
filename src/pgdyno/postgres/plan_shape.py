"""The shape of a query's plan, without the planner's cost estimates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class PlanNode:
    """One node of a plan, as EXPLAIN names it: "Hash Join", "Parallel Seq Scan on lineitem".

    ``details`` are its index, its kind of join or its strategy, where it has any. ``workers`` are planned for
    what is below a Gather; ``rows`` is the planner's estimate.
    """

    name: str
    details: tuple[str, ...] = ()
    workers: int | None = None
    rows: float = 0.0
    children: tuple[PlanNode, ...] = ()

    @property
    def text(self) -> str:
        """The node in one line."""
        workers = (
            () if self.workers is None else (f"{self.workers} worker{'' if self.workers == 1 else 's'}",)
        )
        said = (*self.details, *workers)
        return f"{self.name} ({', '.join(said)})" if said else self.name

    def walk(self, depth: int = 0) -> Iterator[tuple[int, PlanNode]]:
        """Yield this node and all below it, each with its depth."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)

    @property
    def most_workers(self) -> int:
        """How many workers the plan asks for at most."""
        return max((node.workers or 0 for _, node in self.walk()), default=0)
