"""The functions of a program where a process has mapped it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.host.processes.code_segment import CodeSegment
from pgdyno.host.processes.memory_mapping import MemoryMapping


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
