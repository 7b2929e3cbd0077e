"""The functions of a program where a process has mapped it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.model.profiles.code_segment import CodeSegment
from pgdyno.model.profiles.process_memory import MemoryMapping


@dataclass(frozen=True)
class LoadedProgram:
    """A process's program; ``functions`` are by address before it is moved as a whole."""

    path: str
    functions: Mapping[int, str]
    segments: Sequence[CodeSegment]
    mappings: Sequence[MemoryMapping]

    def function_at(self, address: int) -> str:
        """Return the function of an instruction; one of a library by the library."""
        mapping = next((one for one in self.mappings if one.has(address) and one.path), None)
        if mapping is None:
            return ""
        if mapping.path != self.path:
            return Path(mapping.path).name
        offset = address - mapping.begin + mapping.offset
        places = (one.address_of(offset) for one in self.segments)
        return next((self.functions.get(place, "") for place in places if place is not None), "")

    def beginning_of(self, names: Collection[str]) -> int | None:
        """Return where the first of these functions begins that was executed; None if none was."""
        for name in names:
            executed = [address for address, its in self.functions.items() if its == name]
            if executed:
                return next(self._loaded(min(executed)), None)
        return None

    def _loaded(self, address: int) -> Iterator[int]:
        for segment in self.segments:
            offset = address - segment.address + segment.offset
            for one in self.mappings:
                place = one.begin + offset - one.offset
                if segment.has(address) and one.path == self.path and one.has(place):
                    yield place
