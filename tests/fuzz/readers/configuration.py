"""Configuration files of servers and of the host."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.scratch import file_with
from tests.fuzz.words import refused_in_words

from pgdyno.apply.configuration import auto_conf
from pgdyno.builds.source.apt_sources import parse_deb822, parse_list, source_suites
from pgdyno.postgres import pg_ctl_conf
from pgdyno.postgres.alter_system import list_elements, statement_values
from pgdyno.postgres.inspection.data_directory import read_configuration, read_data_directory

_PROGRAM = Path("/opt/pg/bin/postgres")


def check_auto_conf(data: bytes) -> None:
    """Entries that are written as ALTER SYSTEM does are read again; that file is its own canonical form."""
    with refused_in_words():
        entries = auto_conf.parse(data)
        written = auto_conf.render(entries)
        again = auto_conf.parse(written)
        assert [_bytes(entry) for entry in again] == [_bytes(entry) for entry in entries]
        assert auto_conf.render(again) == written


def _bytes(entry: auto_conf.Entry) -> tuple[str, bytes]:
    return entry.name, entry.value.encode(errors="surrogateescape")


def check_postgresql_conf(data: bytes) -> None:
    """A file that may include itself, or anything, is read; where that fails, by the system's own error."""
    path = file_with("postgresql.conf", data)
    try:
        for setting in read_configuration(path):
            assert setting.name
            assert setting.line >= 1
    except OSError as error:
        assert error.strerror


def check_pg_ctl_conf(data: bytes) -> None:
    """A program put into the options is read again, and the file before it can be restored."""
    text = data.decode(errors="surrogateescape")
    options = pg_ctl_conf.options_in(text)
    if options is None or options.split()[-1:] == ["-o"]:
        return  # pg_ctl itself refuses an option without its argument
    naming = pg_ctl_conf.naming(options, _PROGRAM)
    changed = pg_ctl_conf.with_options(text, naming)
    assert pg_ctl_conf.options_in(changed) == naming
    assert pg_ctl_conf.program_in(naming) == _PROGRAM
    assert pg_ctl_conf.with_options(changed, options) == text


def check_data_directory(data: bytes) -> None:
    """PG_VERSION, postmaster.pid and postgresql.conf, parted by lines of "---", are read or refused."""
    version, pid_file, conf, *_ = [*data.split(b"\n---\n"), b"", b""]
    file_with("postgresql.conf", conf)
    file_with("postmaster.pid", pid_file)
    path = file_with("PG_VERSION", version).parent
    with refused_in_words():
        found = read_data_directory(path)
        assert found.major >= 0


def check_lists(data: bytes) -> None:
    """A setting's list is split as it is again from its quoted elements."""
    text = data.decode(errors="replace")
    with refused_in_words():
        elements = list_elements("shared_preload_libraries", text)
        quoted = ", ".join('"{}"'.format(element.replace('"', '""')) for element in elements)
        assert list_elements("shared_preload_libraries", quoted) == elements
        assert statement_values("search_path", text)


def check_apt_sources(data: bytes) -> None:
    """Repositories have an address and a suite; no password is left in the address that is shown."""
    text = data.decode(errors="replace")
    found = [*parse_list(text), *parse_deb822(text)]
    for repository in found:
        assert repository.uri
        assert repository.suite
        assert "@" not in repository.place.partition("//")[2].partition("/")[0]
    with refused_in_words():
        assert source_suites(found)
