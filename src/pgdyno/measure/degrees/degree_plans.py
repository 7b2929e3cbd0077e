"""The plans of a query by degree: with different plans, workers are not the only difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pgdyno.model.experiments.experiment import Cell


@dataclass
class DegreePlans:
    """Scans and joins in the plans of each load, by the number of workers."""

    shapes: dict[str, dict[int, str]] = field(default_factory=dict)

    def add(self, cell: Cell, shape: str) -> None:
        """Record the scans and joins of a cell's plan."""
        self.shapes.setdefault(cell.load, {})[cell.level] = shape

    def notes(self) -> tuple[str, ...]:
        """Return a note for each load whose degrees have different plans."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        for load, shapes in self.shapes.items():
            by_shape: dict[str, list[str]] = {}
            for workers, shape in sorted(shapes.items()):
                by_shape.setdefault(shape, []).append(str(workers))
            if len(by_shape) > 1:
                listed = "; ".join(f"{', '.join(workers)}: {shape}" for shape, workers in by_shape.items())
                yield f"{load}: not the workers alone differ, but plans as well, by workers: {listed}"
