"""A server's word for where its configuration lies does not lead root to that of another cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest

from pgdyno.apply.session.server_files import ServerFiles
from pgdyno.base.errors import RefusedError
from pgdyno.builds.switching.switch import require_own_configuration, require_owners

OWNER, OTHER = 4_000_001, 4_000_002  # nobody's numbers


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of root's that all may look into, where both users have something."""
    if os.geteuid() != 0:
        pytest.skip("giving a directory to another user takes root")
    place = Path(mkdtemp(prefix="pgdyno-choice-"))
    place.chmod(0o755)
    yield place
    rmtree(place)


@pytest.fixture
def files(place: Path) -> ServerFiles:
    """The files of a data directory that ``OWNER`` has."""
    data = place / "data"
    (data / "global").mkdir(parents=True)
    (data / "global/pg_control").write_bytes(bytes(8192))
    for path in (data, data / "global", data / "global/pg_control"):
        os.chown(path, OWNER, OWNER)
    return ServerFiles(data)


@pytest.mark.root
def test_the_directory_belongs_to_the_servers_owner_or_to_root(place: Path, files: ServerFiles) -> None:
    choice = place / "etc/pg_ctl.conf"
    choice.parent.mkdir()
    require_owners(choice, files)
    os.chown(choice.parent, OWNER, OWNER)
    require_owners(choice, files)
    os.chown(choice.parent, OTHER, OTHER)
    with pytest.raises(RefusedError) as caught:
        require_owners(choice, files)
    assert caught.value.message == f"{choice} does not belong to this server"
    assert caught.value.detail == (
        f"{choice.parent} belongs to user {OTHER}, but {place}/data belongs to user {OWNER}"
    )
    with pytest.raises(RefusedError, match="could not read"):
        require_owners(place / "nosuch/link", files)


@pytest.mark.root
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "not set"),
        ("data_directory = '/var/lib/nosuch'", "/var/lib/nosuch"),
        ("data_directory = '/'", "/"),
    ],
)
def test_a_configuration_of_another_cluster_is_refused(
    place: Path, files: ServerFiles, text: str, named: str
) -> None:
    configuration = place / "postgresql.conf"
    configuration.write_text(f"{text}\n")
    with pytest.raises(RefusedError) as caught:
        require_own_configuration(configuration, files)
    assert caught.value.detail == f"its data_directory is {named}, but the server's is {files.path}"


@pytest.mark.root
def test_a_configuration_that_names_the_data_directory_is_the_servers_own(
    place: Path, files: ServerFiles
) -> None:
    (place / "link").symlink_to(files.path)
    configuration = place / "postgresql.conf"
    configuration.write_text(f"data_directory = '/elsewhere'\ndata_directory = '{place}/link'\n")
    require_own_configuration(configuration, files)
    assert configuration.exists()


@pytest.mark.root
def test_a_configuration_that_is_closed_to_the_servers_user_is_refused(
    place: Path, files: ServerFiles
) -> None:
    configuration = place / "postgresql.conf"
    configuration.write_text(f"data_directory = '{files.path}'\n")
    configuration.chmod(0o600)
    with pytest.raises(RefusedError) as caught:
        require_own_configuration(configuration, files)
    assert caught.value.detail == f"{configuration}: Permission denied"
