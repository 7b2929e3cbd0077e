"""The configuration of our own apt, and what is said when it fails."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tests.own_path import set_own_path

from pgdyno.base.errors import InstallationError
from pgdyno.builds.source import private_apt
from pgdyno.builds.source.apt_sources import Repository
from pgdyno.builds.source.private_apt import PrivateApt, configuration, open_suites, sources_stanza

REPOSITORY = Repository("http://me:secret@archive.example.org/debian", "trixie", ("main",), "/k.gpg")


def test_only_source_packages_of_one_suite_are_asked_for() -> None:
    assert sources_stanza(REPOSITORY) == (
        "Types: deb-src\n"
        "URIs: http://me:secret@archive.example.org/debian\n"
        "Suites: trixie\n"
        "Components: main\n"
        "Signed-By: /k.gpg\n"
    )


def test_without_a_key_of_its_own_the_hosts_trusted_keys_hold() -> None:
    assert "Signed-By" not in sources_stanza(Repository("http://a/debian", "trixie", ("main",)))


def test_everything_that_apt_writes_lies_in_the_private_directory(tmp_path: Path) -> None:
    text = configuration(tmp_path, ['Acquire::http::Proxy "http://proxy:3128";'])
    values = dict(line.rstrip(";").split(" ", 1) for line in text.splitlines())
    assert values["Dir::State"] == f'"{tmp_path}/state"'
    assert values["Dir::Cache"] == f'"{tmp_path}/cache"'
    assert values["Dir::Etc::parts"] == '"/dev/null"'  # the host's hooks are in there
    assert values["Acquire::http::Proxy"] == '"http://proxy:3128"'


def test_each_suite_has_a_directory_whose_name_holds_no_password(tmp_path: Path) -> None:
    (apt,) = open_suites([REPOSITORY], tmp_path)
    assert apt.directory.name == "http_archive.example.org_debian_trixie"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An apt-get and an apt-config that say what a test has them say."""
    directory = tmp_path / "programs"
    set_own_path(monkeypatch, directory)
    program(directory / "apt-config", "echo 'Acquire::http::Proxy \"http://p:1\";'; echo 'APT::Update \"\";'")
    return directory


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_an_archive_out_of_reach_is_reported_in_apts_words_without_the_password(
    tmp_path: Path, programs: Path
) -> None:
    program(
        programs / "apt-get",
        "echo 'W: Some index files failed to download.' >&2\n"
        "echo 'E: Failed to fetch http://me:secret@archive.example.org/debian/x  Could not resolve' >&2\n"
        "exit 100",
    )
    apt = PrivateApt(REPOSITORY, tmp_path / "apt")
    with pytest.raises(InstallationError) as caught:
        apt.majors()
    assert str(caught.value) == (
        'could not read the index of suite "trixie" of http://archive.example.org/debian\n'
        "DETAIL:  Failed to fetch http://archive.example.org/debian/x  Could not resolve\n"
        "         Some index files failed to download.\n"
        "HINT:  check the network and the archive; finished downloads are kept for the next attempt"
    )


def test_a_suite_that_the_archive_does_not_have_has_no_versions(tmp_path: Path, programs: Path) -> None:
    said = "E: The repository 'http://a/debian oldstable Release' does not have a Release file."
    program(programs / "apt-get", f'echo "{said}" >&2; exit 100')
    assert PrivateApt(REPOSITORY, tmp_path / "apt").majors() == ()


def test_a_release_whose_key_the_host_does_not_have_is_not_trusted(tmp_path: Path, programs: Path) -> None:
    said = "E: The repository 'http://a/debian trixie InRelease' is not signed.\nW: GPG error: NO_PUBKEY 6ED0"
    program(programs / "apt-get", f'echo "{said}" >&2; exit 100')
    with pytest.raises(InstallationError) as caught:
        PrivateApt(REPOSITORY, tmp_path / "apt").majors()
    assert caught.value.hint == "apt-get install debian-archive-keyring installs the keys of newer releases"


def test_the_configuration_takes_over_proxies_and_is_private(tmp_path: Path, programs: Path) -> None:
    program(programs / "apt-get", "exit 0")
    program(programs / "apt-cache", "exit 0")
    apt = PrivateApt(REPOSITORY, tmp_path / "apt")
    assert apt.majors() == ()
    text = (apt.directory / "apt.conf").read_text()
    assert 'Acquire::http::Proxy "http://p:1";' in text
    assert "APT::Update" not in text
    for name in ("apt.conf", "postgresql.sources"):
        assert stat.S_IMODE((apt.directory / name).stat().st_mode) == 0o600


def test_a_download_that_fails_says_what_and_from_where(tmp_path: Path, programs: Path) -> None:
    program(
        programs / "apt-get", 'case "$*" in *download-only*) echo "E: Hash Sum mismatch" >&2; exit 100; esac'
    )
    apt = PrivateApt(REPOSITORY, tmp_path / "apt")
    with pytest.raises(InstallationError) as caught:
        apt.download(17, tmp_path / "sources")
    assert caught.value.message == (
        'could not download postgresql-17 from suite "trixie" of http://archive.example.org/debian'
    )
    assert caught.value.detail == "Hash Sum mismatch"


def test_a_program_that_never_ends_is_ended(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(programs / "apt-get", "exec /bin/sleep 60")
    monkeypatch.setattr(private_apt, "_UPDATE_LIMIT_S", 0.2)
    with pytest.raises(InstallationError) as caught:
        PrivateApt(REPOSITORY, tmp_path / "apt").majors()
    assert caught.value.message == '"apt-get -o" did not end within 0.2 s'


def test_a_host_without_apt_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstallationError) as caught:
        PrivateApt(REPOSITORY, tmp_path / "apt").majors()
    assert caught.value.message == "apt-get is not installed"
