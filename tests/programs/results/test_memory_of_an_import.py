"""Memory that importing a bundle takes: at most 20 times its size, also of one that was made to fill it.

One that is refused takes no more either.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.golden.synthetic import experiment

from pgdyno.store.documents import dump_experiment

MOST = 20
_OF_A_SMALL_ONE = MOST * (2 << 20)  # objects of a document of up to 1 MB may take 25 times its size
_SMALL = Path(__file__).parents[2] / "fixtures/bundles/earlier/create-index.zip"
BUNDLES = Path(__file__).parents[3] / "docs/results/bundles"
_LARGEST, *_NEXT = sorted(BUNDLES.glob("*.zip"), key=lambda path: -path.stat().st_size)[:3]
_LARGE = [_LARGEST, *(pytest.param(path, marks=pytest.mark.long) for path in _NEXT)]

# The kernel counts the highest use of memory; "5" sets its count back: see proc_pid_clear_refs(5). An import
# is one of a fork, which begins with a small one: what that touches of programs is no other import's.
_IMPORTS = """
import json, os, sys
from pathlib import Path
from pgdyno.results.bundle_import import import_bundle
from pgdyno.base.errors import StorageError

def kilobytes(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(name)))

def taken(path):
    import_bundle(Path(sys.argv[1]))
    Path("/proc/self/clear_refs").write_text("5")
    before, refusal = kilobytes("VmRSS"), ""
    try:
        import_bundle(Path(path))
    except StorageError as error:
        refusal = str(error)
    return (kilobytes("VmHWM") - before) * 1024, refusal

os.environ["PGDYNO_HOME"] = sys.argv[2]
import_bundle(Path(sys.argv[1]))
for line in sys.stdin:
    path, os.environ["PGDYNO_HOME"] = json.loads(line)
    if os.fork() == 0:
        print(json.dumps(taken(path)), flush=True)
        os._exit(0)
    os.wait()
"""

Taken = Callable[[Path, Path], tuple[int, str]]
"""Returns the memory that an import of a bundle into a home takes, and why it was refused."""


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Taken]:
    """Provide a process that has loaded pgdyno, and forks for each import."""
    command = [sys.executable, "-c", _IMPORTS, str(_SMALL), str(tmp_path_factory.mktemp("home"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, answers = process.stdin, process.stdout

        def ask(path: Path, home: Path) -> tuple[int, str]:
            print(json.dumps([str(path), str(home)]), file=asked, flush=True)
            took_bytes, refusal = json.loads(answers.readline())
            return took_bytes, refusal

        yield ask
        asked.close()


def memory_bytes(path: Path, home: Path, taken: Taken) -> int:
    took_bytes, refusal = taken(path, home)
    assert refusal == ""
    return took_bytes


def uncompressed(path: Path, files: Mapping[str, bytes]) -> Path:
    """Write a bundle as large as its contents."""
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**files, "SHA256SUMS": sums.encode()}.items():
            archive.writestr(f"x/{name}", content)
    return path


def document(**members: object) -> bytes:
    return json.dumps({**dump_experiment(experiment()), **members}, separators=(",", ":")).encode()


@pytest.mark.parametrize("path", _LARGE, ids=lambda path: Path(path).stem)
def test_a_bundle_of_a_whole_experiment(path: Path, tmp_path: Path, taken: Taken) -> None:
    assert memory_bytes(path, tmp_path, taken) <= MOST * path.stat().st_size


_OBJECTS = [{"a": 100_000 + n % 900_000} for n in range(400_000)]


@pytest.mark.parametrize(
    "host",
    [
        {"x": _OBJECTS, "y": "x" * 2_400_000},  # as many objects as its size allows
        {"x": [n % 10_000 + 1000 for n in range(1_500_000)]},
        {"x": [f"{n:04x}" for n in range(60_000)] * 15},
        {f"{n:07d}": 1.5 for n in range(600_000)},
    ],
    ids=["objects", "numbers", "texts", "members"],
)
def test_a_document_of_nothing_but_small_parts(host: object, tmp_path: Path, taken: Taken) -> None:
    path = uncompressed(tmp_path / "b.zip", {"experiment.json": document(host=host)})
    assert memory_bytes(path, tmp_path / "home", taken) <= MOST * path.stat().st_size


def test_series_of_very_many_short_lines(tmp_path: Path, taken: Taken) -> None:
    slices = "workload,round,block,variant,start_ns,end_ns,server_cpu_ns_1,server_cpu_ns_2\r\n"
    lines = [f"sysbench-read-only,1,1,plan,{n},{n},3,4\r\n" for n in range(100_000)]
    files = {"experiment.json": document(), "slices.csv": (slices + "".join(lines)).encode()}
    path = uncompressed(tmp_path / "b.zip", files)
    assert memory_bytes(path, tmp_path / "home", taken) <= MOST * path.stat().st_size


_ARM = {"variant": "plan", "transactions": 1, "running_s": 1.0}
_PLACE = {"workload": "w", "round": 0, "index": 0, "started_ns": 0}


@pytest.mark.parametrize(
    "members",
    [
        {"blocks": [1, 3, 0] * 116_000},
        {"blocks": [{}] * 300_000},
        {"blocks": [_PLACE | {"arms": [_ARM | {"values": {f"{n:06d}": "x" for n in range(60_000)}}]}]},
        {"blocks": [_PLACE | {"arms": [_ARM | {"values": {}, "audit": []}] * 10_000}]},
        {"notes": [0] * 400_000},
    ],
    ids=["numbers", "objects", "members", "arms", "texts"],
)
def test_a_document_in_which_everything_is_wrong(
    members: Mapping[str, object], tmp_path: Path, taken: Taken
) -> None:
    path = uncompressed(tmp_path / "b.zip", {"experiment.json": document(**members)})
    took_bytes, refusal = taken(path, tmp_path / "home")
    assert took_bytes <= _OF_A_SMALL_ONE
    assert "the document is not an experiment" in refusal
    assert len(refusal) < 2000


def test_a_list_of_checksums_of_nothing_but_line_feeds(tmp_path: Path, taken: Taken) -> None:
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("x/experiment.json", document())
        archive.writestr("x/SHA256SUMS", b"\n" * (2 << 20))
    took_bytes, refusal = taken(tmp_path / "b.zip", tmp_path / "home")
    assert took_bytes <= _OF_A_SMALL_ONE
    assert "SHA256SUMS cannot be read" in refusal
    assert len(refusal) < 2000
