"""Stacks as ``perf script -F pid,time,ip,sym,dso --ns`` prints them: a head, a line per frame, an empty line.

A frame has its address, the function, and in brackets the file of its code, of which the address of a user's
frame is the place in it. Inlined functions have no file. Names come from programs' symbols: any text may
stand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_HEAD = re.compile(r"\s*(?P<pid>\d+)\s+(?P<s>\d+)\.(?P<ns>\d{9}):")
_KERNEL_DIGITS = 16  # addresses of the kernel have the highest bit set, on x86-64 and on Arm
_MOST_FRAMES = 512  # perf itself stops at 127 without being told otherwise
_INLINED = " (inlined)"
_ADDRESS = re.compile(r"[0-9a-f]{1,16}")
_FILE = re.compile(r"(?P<function>.*?) ?\((?P<file>(?:/|\[|//anon|inlined)[^()]*)\)")


@dataclass(frozen=True)
class Stack:
    """One sample of a process. ``frames`` are functions, innermost first; the kernel's come before others.

    ``file`` is where the code of the innermost one is, ``offset`` the place in it.
    """

    pid: int
    at_ns: int
    frames: tuple[str, ...]
    in_kernel: bool
    file: str = ""
    offset: int = 0


def parse_stacks(lines: Iterable[str]) -> Iterator[Stack]:
    """Yield the samples of perf's text; other lines are left out."""
    head: re.Match[str] | None = None
    frames: list[str] = []
    innermost, file = "", ""
    for line in lines:
        if not line.startswith("\t") and (found := _HEAD.match(line)):
            if head:
                yield _stack(head, frames, innermost, file)
            head, frames, innermost, file = found, [], "", ""
        elif head and (words := line.split(None, 1)) and len(frames) < _MOST_FRAMES:
            function, of_file = _frame(words[1] if len(words) > 1 else "")
            if not frames:
                innermost = words[0]
            if not file and words[0] == innermost:  # inlined functions come first, at the same address
                file = of_file
            frames.append(function)
    if head:
        yield _stack(head, frames, innermost, file)


def _frame(text: str) -> tuple[str, str]:
    """Return a frame's function and the file of its code."""
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
