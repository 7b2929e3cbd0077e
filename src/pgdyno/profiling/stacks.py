"""Stacks as ``perf script -F pid,time,ip,sym --ns`` prints them: a head, a line per frame, an empty line.

Names come from programs' symbols: any text may stand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_HEAD = re.compile(r"\s*(?P<pid>\d+)\s+(?P<s>\d+)\.(?P<ns>\d{9}):")
_KERNEL_DIGITS = 16  # addresses of the kernel have the highest bit set, on x86-64 and on Arm
_MOST_FRAMES = 512  # perf itself stops at 127 without being told otherwise
_INLINED = " (inlined)"


@dataclass(frozen=True)
class Stack:
    """One sample of a process. ``frames`` are functions, innermost first; the kernel's come before others."""

    pid: int
    at_ns: int
    frames: tuple[str, ...]
    in_kernel: bool


def parse_stacks(lines: Iterable[str]) -> Iterator[Stack]:
    """Yield the samples of perf's text; other lines are left out."""
    head: re.Match[str] | None = None
    frames: list[str] = []
    in_kernel = False
    for line in lines:
        if not line.startswith("\t") and (found := _HEAD.match(line)):
            if head:
                yield _stack(head, frames, in_kernel=in_kernel)
            head, frames, in_kernel = found, [], False
        elif head and (words := line.split(None, 1)) and len(frames) < _MOST_FRAMES:
            address = words[0]
            if not frames:
                in_kernel = len(address) == _KERNEL_DIGITS and address.startswith(("f", "8"))
            frames.append(words[1].strip().removesuffix(_INLINED) if len(words) > 1 else "")
    if head:
        yield _stack(head, frames, in_kernel=in_kernel)


def _stack(head: re.Match[str], frames: list[str], *, in_kernel: bool) -> Stack:
    at_ns = int(head["s"]) * 1_000_000_000 + int(head["ns"])
    return Stack(int(head["pid"]), at_ns, tuple(frames), in_kernel)
