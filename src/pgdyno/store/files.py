"""Write files atomically: a reader sees the old or the new file, never a part.

Of the files named by a user, only regular ones are opened: a pipe blocks, and a device may be endless.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import tomllib
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from reprlib import Repr
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from pgdyno.base.errors import StorageError, UsageError

_ORDINARY_MODE = 0o666  # before the umask, as with open()
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_CLOEXEC  # does not open a device: opening some of them has side effects


def write_whole(path: Path, content: bytes, mode: int = _ORDINARY_MODE) -> None:
    """Write a file through a temporary file in the same directory. ``mode`` applies before the umask.

    The directory may belong to another user, who may exchange it or the temporary file at any time: all
    operations are relative to the opened directory, and files are only renamed and removed by name.
    Raises: StorageError if it cannot be written (no such directory, no permission, disk full); an existing
    file is then unchanged.
    """
    try:
        directory = os.open(path.parent, _DIRECTORY)
        try:
            _write_in(directory, path.name, content, mode)
        finally:
            os.close(directory)
    except OSError as error:
        raise StorageError(f'could not write "{path}"', detail=error.strerror or str(error)) from error


def _write_in(directory: int, name: str, content: bytes, mode: int) -> None:
    temporary = f".{name}.{secrets.token_hex(4)}"
    descriptor = os.open(temporary, _NEW, mode, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise


def open_plain(path: Path) -> BufferedReader:
    """Open a regular file for reading; links are followed.

    Raises: OSError, also if it is not a regular file; its text then contains the remedy.
    """
    look = os.open(path, _LOOK)
    try:
        mode = os.fstat(look).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            words = "it is a pipe or a device: write its contents to a regular file, and name that one"
            raise OSError(errno.EINVAL, words, str(path))
        try:
            return Path(f"/proc/self/fd/{look}").open("rb")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error  # the name given by the user
    finally:
        os.close(look)


_Form = TypeVar("_Form", bound=BaseModel)
_MOST_MISTAKES = 8  # most mistakes listed at once: more do not help
_SHORT = Repr()  # for values that may be deeply nested, or as long as the file
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 200
MOST_DOTS = 500
"""Per line, outside of quotation marks: Python's parser is quadratic in the number of a key's parts."""
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def read_toml_file(
    path: Path,
    form: type[_Form],
    kind: type[UsageError],
    *,
    most_characters: int,
    if_larger: str,
    if_unreadable: str | None = None,
) -> _Form:
    """Return a file's contents as a model. ``if_larger`` and ``if_unreadable`` are hints.

    Raises: an error of this ``kind`` with all mistakes.
    """
    try:
        return form.model_validate(tomllib.loads(_toml_text(path, most_characters, kind, if_larger)))
    except OSError as error:
        raise kind(f'could not read "{path}"', detail=str(error.strerror), hint=if_unreadable) from error
    except ValidationError as error:
        raise mistakes(path, error, kind) from error
    except (ValueError, RecursionError) as error:  # TOML's and UTF-8's, a number of 5,000 digits, …
        raise kind(f'"{path}" is not valid TOML', detail=str(error)) from error


def mistakes(path: Path, error: ValidationError, kind: type[UsageError]) -> UsageError:
    """Return one error of this ``kind`` that lists a file's mistakes."""
    listed = [_described(dict(one)) for one in error.errors()[:_MOST_MISTAKES]]
    more = error.error_count() - len(listed)
    count = f"{error.error_count()} mistakes" if error.error_count() > 1 else "a mistake"
    return kind(f'"{path}" has {count}', detail="; ".join([*listed, f"and {more} more"] if more else listed))


def _described(error: dict[str, Any]) -> str:
    """Return a mistake in one phrase: its place, its kind, and the invalid value."""
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f'unknown key "{place}"'
    if error["type"] == "missing":
        return f'key "{place}" is missing'
    reason = str(error["ctx"]["error"]) if error["type"] == "value_error" else error["msg"].lower()
    found = "" if isinstance(error["input"], dict) else f", found {_SHORT.repr(error['input'])}"
    return f'"{place}": {reason}{found}'


def _toml_text(path: Path, most_characters: int, kind: type[UsageError], hint: str) -> str:
    """Return a file's text. ``hint`` is for a file with more than ``most_characters``.

    Raises: an error of this ``kind`` for a file that would take long to parse; OSError.
    """
    with TextIOWrapper(open_plain(path), encoding="utf-8") as file:
        text = file.read(most_characters + 1)
    if len(text) > most_characters:
        raise kind(
            f'"{path}" is too large',
            detail=f"it has more than {most_characters} characters, which is the limit",
            hint=hint,
        )
    for number, line in enumerate(text.split("\n"), 1):
        if (dots := _QUOTED.sub("", line).count(".")) > MOST_DOTS:
            raise kind(
                f'line {number} of "{path}" has {dots} dots',
                detail=f"at most {MOST_DOTS} are allowed: parsing a key with so many parts takes minutes",
                hint="write a long text on several lines, between triple quotation marks",
            )
    return text
