"""Kills its own process with SIGKILL before one of its operations on files, counted from the first."""

from __future__ import annotations

import fcntl
import io
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

_OPERATIONS = {
    os: (
        "access", "chmod", "close", "fchmod", "fchown", "fdatasync", "fsync", "ftruncate", "link", "listdir",
        "lstat", "mkdir", "open", "pread", "pwrite", "read", "readlink", "remove", "rename", "replace",
        "rmdir", "scandir", "stat", "statvfs", "symlink", "truncate", "unlink", "write",
    ),
    io: ("open",),
    fcntl: ("flock",),
}  # fmt: skip
_write, _readlink = os.write, os.readlink


@dataclass
class Counter:
    """Counts operations on files. ``kill_before`` is the number of the one that is not done; None: all are.

    With ``is_torn`` half of it is done if it writes below ``directory``. ``tell`` is called before the end.
    """

    directory: Path
    tell: Callable[[str], None]
    kill_before: int | None
    is_torn: bool
    names: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many operations were begun."""
        return len(self.names)

    def install(self) -> None:
        """Count from now on."""
        for module, names in _OPERATIONS.items():
            for name in names:
                setattr(module, name, self._counted(f"{module.__name__}.{name}", getattr(module, name)))

    def _counted(self, name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.names.append(name)
            if self.count == self.kill_before:
                self._end(name, arguments)
            return operation(*arguments, **named)

        return counted

    def _end(self, name: str, arguments: tuple[Any, ...]) -> NoReturn:
        place = arguments[0] if arguments else ""
        if isinstance(place, int):
            place = _readlink(f"/proc/self/fd/{place}")
        if name == "os.write" and self.is_torn and Path(str(place)).is_relative_to(self.directory):
            content = arguments[1]
            _write(arguments[0], content[: len(content) // 2])
            name = "half of os.write"
        self.tell(f"killed before operation {self.count}: {name} {place}")
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("nobody survives that")
