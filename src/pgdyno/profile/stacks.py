"""Parse stacks, as printed by ``perf script -F pid,time,ip,sym,dso --ns``: header, frames, empty line.

A frame line has the address, the function, and in parentheses the file of the code. For user-space frames the
address is an offset into that file. Inlined functions have no file. Names come from programs' symbols and can
be any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_HEAD = re.compile(r"\s*(?P<pid>\d+)\s+(?P<s>\d+)\.(?P<ns>\d{9}):")
_KERNEL_DIGITS = 16  # addresses of the kernel have the highest bit set, on x86-64 and on Arm
_MOST_FRAMES = 512  # perf's default limit is 127
_INLINED = " (inlined)"
_ADDRESS = re.compile(r"[0-9a-f]{1,16}")
_FILE = re.compile(r"(?P<function>.*?) ?\((?P<file>(?:/|\[|//anon|inlined)[^()]*)\)")


@dataclass(frozen=True)
class Stack:
    """One sample of a process. ``frames`` are functions, innermost first; kernel frames come before others.

    ``file`` contains the innermost frame's code, at ``offset``.
    """

    pid: int
    at_ns: int
    frames: tuple[str, ...]
    in_kernel: bool
    file: str = ""
    offset: int = 0


def parse_stacks(lines: Iterable[str]) -> Iterator[Stack]:
    """Yield the samples in perf's output; other lines are skipped."""
    head: re.Match[str] | None = None
    frames: list[str] = []
    innermost, file = "", ""
    for line in lines:
        if not line.startswith("\t") and (found := _HEAD.match(line)):
            if head:
                yield _stack(head, frames, innermost, file)
            head, frames, innermost, file = found, [], "", ""
        elif head and (words := line.split(None, 1)) and len(frames) < _MOST_FRAMES:
            function, of_file = _function_and_file(words[1] if len(words) > 1 else "")
            if not frames:
                innermost = words[0]
            if not file and words[0] == innermost:  # inlined functions come first, with the same address
                file = of_file
            frames.append(function)
    if head:
        yield _stack(head, frames, innermost, file)


def _function_and_file(text: str) -> tuple[str, str]:
    text = text.strip()
    if text.endswith(_INLINED):
        return text.removesuffix(_INLINED), ""
    found = _FILE.fullmatch(text)
    return (found["function"].strip(), found["file"]) if found else (text, "")


def _stack(head: re.Match[str], frames: list[str], innermost: str, file: str) -> Stack:
    at_ns = int(head["s"]) * 1_000_000_000 + int(head["ns"])
    in_kernel = len(innermost) == _KERNEL_DIGITS and innermost.startswith(("f", "8"))
    offset = int(innermost, 16) if _ADDRESS.fullmatch(innermost) else 0
    return Stack(int(head["pid"]), at_ns, tuple(frames), in_kernel, file, offset)
