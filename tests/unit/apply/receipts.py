"""Receipts and writers for the journal's unit tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from pgdyno.base.errors import SettingError
from pgdyno.base.ports import Found
from pgdyno.model.plans.journal import Receipt, Target
from pgdyno.model.plans.plan import Change, Effect

TARGET = Target(
    "server", "7710499856251902124", "/var/lib/postgresql/18/main", "4c1bd8b7d08dc8b6", "host=/run"
)


def change(key: str = "work_mem", value: str = "8MB") -> Change:
    """A change of a setting."""
    return Change("work_mem", "setting", key, "4MB", value, Effect.RELOAD)


def receipt(
    key: str = "work_mem", value: str = "8MB", *, found: str | None = None, number: int = 1
) -> Receipt:
    """A receipt of such a change."""
    return Receipt(
        id=f"20261121T052400Z-1a2b3c/{number:02d}",
        apply_id="20261121T052400Z-1a2b3c",
        created="2026-11-21T05:24:00+00:00",
        made_by="dba@db1, process 4711",
        target=TARGET,
        change=change(key, value),
        found=Found(found, {"setting": "4096"}),
    )


@dataclass
class MemoryWriter:
    """Keeps its values in a dictionary, and what it was asked to do in a list."""

    values: dict[str, str] = field(default_factory=dict)
    rejected: frozenset[str] = frozenset()
    done: list[str] = field(default_factory=list)
    kind: str = "setting"

    def read(self, key: str) -> Found:
        return Found(self.values.get(key), {})

    def write(self, key: str, value: str) -> None:
        if key in self.rejected:
            raise SettingError(f'invalid value for parameter "{key}": "{value}"')
        self.done.append(f"write {key}={value}")
        self.values[key] = value

    def restore(self, key: str, found: Found) -> None:
        self.done.append(f"restore {key}")
        if found.value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = found.value

    def verify(self, key: str) -> str | None:
        return self.values.get(key)

    def equals(self, key: str, one: str | None, other: str | None) -> bool:
        return one == other

    def meets(self, key: str, wanted: str, effective: str) -> bool:
        return wanted == effective
