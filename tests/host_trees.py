"""Trees of files as one text each: the part of a machine's file system that pgdyno reads.

==> proc/meminfo                        a file, whose lines follow
==> proc/1/cmdline (no newline at end)  the same, its last line without an end
==> proc/self/ns/pid -> pid:[402653]    a symbolic link

python -m tests.host_trees DIRECTORY    prints a directory so
"""

from __future__ import annotations

import sys
from pathlib import Path

_MARK, _LINK, _OPEN_END = "==> ", " -> ", " (no newline at end)"


def unpack(text: str, directory: Path) -> None:
    """Make the files and links of a text below a directory."""
    for entry in f"\n{text}".removesuffix("\n").split(f"\n{_MARK}")[1:]:
        head, _, content = entry.partition("\n")
        name, is_link, target = head.partition(_LINK)
        path = directory / name.removesuffix(_OPEN_END)
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_link:
            path.symlink_to(target)
        else:
            end = "" if name.endswith(_OPEN_END) else "\n"
            path.write_text(content + end, encoding="utf-8")


def pack(directory: Path) -> str:
    """Return a directory as text. Files are UTF-8, and none of their lines begins like a header."""
    parts = []
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory)
        if path.is_symlink():
            parts.append(f"{_MARK}{name}{_LINK}{path.readlink()}\n")
        elif path.is_file():
            content = path.read_text(encoding="utf-8")
            is_ended = content.endswith("\n")
            parts.append(
                f"{_MARK}{name}{'' if is_ended else _OPEN_END}\n{content}{'' if is_ended else chr(10)}"
            )
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(pack(Path(sys.argv[1])))
