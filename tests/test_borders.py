"""Whatever somebody hands in, a refusal is one clear line: no traceback, and nothing large is made before it."""

import csv
import io
import json
import os
import re
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from typer.testing import CliRunner

from amdp import arrays, losses, text
from amdp.cli import app
from amdp.errors import InvalidInput, SpecError
from amdp.experiments import manifest
from amdp.experiments.engines import DaskCluster
from amdp.experiments.execution import execute
from amdp.experiments.frame import write_csv
from amdp.experiments.record import SEALED, Record, _sum
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, RunSettings, canonical
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store
from amdp.instances import Instance, build, load
from amdp.model import connectivity, mixing
from amdp.model.confidence import BernsteinBox, Radius
from amdp.model.l1_ball import L1Ball
from amdp.model.transitions import Kernel, SparseKernel
from amdp.model.walk_graphs import WalkGraph
from amdp.report.markup import Table, comma_separated

GIB = 2**30
MANY = 100_000  # states
WORLD: dict[str, Any] = {"p": [[[0.5, 0.5]], [[0.0, 1.0]]], "costs": [[[1.0], [0.0]]]}
SPEC = """title = "t"
seeds = 1
checkpoints = 2
baseline = false
[[games]]
label = "g"
instance = "tiny"
episodes = 3
[[learners]]
name = "ftpl-shared"
"""


@pytest.fixture
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 16 GiB, wherever the tests run."""
    monkeypatch.setattr(arrays, "memory", lambda: 16 * GIB)


def refused(*arguments: Any) -> str:
    """The one line in which a command ends."""
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    assert isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == 1
    assert re.fullmatch(r"error: [^\n]+\n", done.output), done.output
    assert len(done.output) < 5000
    assert done.output[:-1].isprintable()
    return done.output


# --- what would not fit into memory -----------------------------------------------------------------------------------

LARGE_WORLDS = {
    "river-swim": {"n_states": MANY},
    "grid": {"width": 1000, "height": 100},
    "lock": {"code": [0] * MANY},
    "forest": {"n_states": MANY},
    "tiny": {"n_states": MANY},
    "random-dense": {"n_states": MANY},
    "random-layered": {"width": MANY},
    "inventory": {"capacity": MANY},
    "queue": {"capacity": MANY},
    "random-parked": {"n_states": MANY},
    "random-entered": {"n_states": MANY},
    "server-farm": {"n_servers": MANY},
    "waiting-ring": {"n_states": MANY},
    "swinging-ring": {"n_states": MANY},
    "waiting-star": {"n_leaves": MANY},
    "swinging-star": {"n_leaves": MANY},
    "random-ergodic": {"n_states": MANY},
    "switching-bandit": {"n_arms": 2, "corridor": MANY},
    "switching-ring": {"n_steps": MANY, "n_arms": MANY},
}


@pytest.mark.usefixtures("small_machine")
@pytest.mark.parametrize(("name", "settings"), LARGE_WORLDS.items())
def test_a_world_too_large_to_be_dense_says_its_bytes_and_names_the_sparse_form(
    name: str, settings: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput, match=r"a dense kernel .* would fill [\d,]+ bytes, .* SparseKernel, or data, ind"):
        build(name, **settings)


def large_ring() -> SparseKernel:
    """Two actions, both to the next state."""
    rows = np.arange(2 * MANY)
    entries = (np.ones(2 * MANY), (rows, (rows // 2 + 1) % MANY))
    return SparseKernel.homogeneous(scipy.sparse.csr_array(entries, shape=(2 * MANY, MANY)), 3)


SHAPE = (3, MANY, 2)
NOTHING = np.broadcast_to(0.0, (*SHAPE, MANY))  # views: they fill nothing themselves
TOO_LARGE: list[Callable[[], object]] = [
    lambda: Kernel(np.broadcast_to(1.0 / MANY, (*SHAPE, MANY))),
    lambda: Kernel.homogeneous(np.broadcast_to(1.0 / MANY, (MANY, 2, MANY)), 3),
    lambda: large_ring().dense(),
    lambda: BernsteinBox.vacuous(SHAPE),
    lambda: BernsteinBox.exactly(large_ring()),
    lambda: BernsteinBox.from_counts(NOTHING, Radius.paper(SHAPE, 10)),
    lambda: BernsteinBox(NOTHING, np.broadcast_to(1.0, NOTHING.shape)),
    lambda: L1Ball.vacuous(SHAPE, 10),
    lambda: L1Ball.exactly(large_ring()),
    lambda: connectivity.diameter(large_ring()),
    lambda: connectivity.summary(large_ring()),
    lambda: mixing.mixing(large_ring()),
    lambda: mixing.least_visits(large_ring()),
    lambda: WalkGraph.of(large_ring()),
    lambda: build("random-sparse", n_states=10**9),
    lambda: build("server-farm", n_steps=10**12),
    lambda: build("inventory", n_steps=10**12),
    lambda: build("switching-ring", n_steps=10**12),
    lambda: build("forest", n_steps=2**62),
    lambda: losses.from_columns({name: [10_000] for name in losses.readers.PLACE} | {"loss": [0.5]}, None, 0.0),
]


@pytest.mark.usefixtures("small_machine")
@pytest.mark.parametrize("make", TOO_LARGE)
def test_what_does_not_fit_into_memory_is_refused_before_it_is_made(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput, match=r"would fill [\d,]+ bytes|more entries than can be counted|span"):
        make()


def test_a_large_sparse_world_is_diagnosed_as_far_as_that_takes_no_table_of_all_pairs() -> None:
    ring = large_ring()
    assert connectivity.communication(ring).communicates
    assert connectivity.period(ring) == MANY
    assert connectivity.is_deterministic(ring)


@pytest.mark.usefixtures("small_machine")
@pytest.mark.parametrize(
    "arguments",
    [
        ("play", "river-swim", "--world", f"n_states={MANY}"),
        ("play", "random-sparse", "--world", f"n_states={MANY}", "--unknown"),
        ("play", "tiny", "--episodes", str(10**11)),
        ("play", "tiny", "--steps", str(10**12)),
        ("play", "tiny", "--world", "n_states=" + "9" * 4000),
        ("play", "tiny", "--set", "rate=" + "[" * 100_000),
    ],
)
def test_sizes_without_end_end_in_a_line(arguments: tuple[str, ...]) -> None:
    refused(*arguments)


def test_the_memory_of_this_machine_is_known() -> None:
    assert GIB // 4 < arrays.memory() <= arrays.ADDRESSES


# --- archives ---------------------------------------------------------------------------------------------------------


def member(array: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array))
    return stream.getvalue()


def header(shape: tuple[int, ...], body: bytes = bytes(64)) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return stream.getvalue() + body


def zipped(file: Path, *members: tuple[str, bytes]) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file


P, COSTS = ("p.npy", member(WORLD["p"])), ("costs.npy", member(WORLD["costs"]))
ARCHIVES: list[tuple[list[tuple[str, bytes]], str]] = [
    ([("p.npy", header((10**7, 10**7))), COSTS], "p: promises 800,000,000,000,000 bytes, .* and holds 64"),
    ([("p.npy", header((2, 1, 2), bytes(2**26))), COSTS], "p: promises 32 bytes, .* and holds 67,108,864"),
    ([("p.npy", header((-1, 2, 2))), COSTS], "p: promises -32 bytes"),
    ([("p.npy", b"no array"), COSTS], "p: cannot be read"),
    ([("p.npy", header((2, 1, 2))[:20]), COSTS], "p: cannot be read"),
    ([("p.npy", b"\x93NUMPY\x09\x00" + bytes(99)), COSTS], r"p: has a header of version \(9, 0\)"),
    ([("p.npy", b"\x93NUMPY\x01\x00\xff\xff" + b"-" * 65535), COSTS], "p: cannot be read"),
    ([P, ("p", member([0.0])), COSTS], "p: is in the archive twice"),
    ([P, COSTS, ("[/].npy", member([0.0]))], r"\[/\]: unknown key"),
]


@pytest.mark.parametrize(("members", "message"), ARCHIVES)
def test_an_archive_that_does_not_keep_its_promises_is_refused(
    tmp_path: Path, members: list[tuple[str, bytes]], message: str
) -> None:
    file = zipped(tmp_path / "world.npz", *members)
    with pytest.raises(SpecError, match=f"world.npz: ({message})"):
        load(file)
    assert re.search(message, refused("solve", file))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_two_members_with_one_name_none_is_taken(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="p: is in the archive twice"):
        load(zipped(tmp_path / "world.npz", P, P, COSTS))
    table = ("losses.npy", member(np.zeros((1, 1, 2, 1))))
    with pytest.raises(SpecError, match="losses: is in the archive twice"):
        losses.load(zipped(tmp_path / "losses.npz", table, table))


@pytest.mark.usefixtures("small_machine")
def test_an_archive_that_unpacks_to_more_than_memory_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "memory", lambda: 2**20)
    file = zipped(tmp_path / "world.npz", ("p.npy", member(np.zeros((2, 2**17)))), COSTS)
    assert file.stat().st_size < 2**14
    with pytest.raises(SpecError, match=r"world.npz: p: an array of shape 2 x 131072 would fill 2,097,152 bytes"):
        load(file)
    with pytest.raises(SpecError, match=r"losses: an array .* would fill 2,097,152 bytes"):
        losses.load(zipped(tmp_path / "l.npz", ("losses.npy", member(np.zeros((2, 2**17))))))


# --- files without an end ---------------------------------------------------------------------------------------------

READ_ALL = """
import resource, sys
from pathlib import Path
from amdp import losses
from amdp.errors import AmdpError
from amdp.experiments.building import checksum
from amdp.experiments import manifest
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store
from amdp.instances import load, read_prism

resource.setrlimit(resource.RLIMIT_AS, (2**34, 2**34))
for folder in map(Path, sys.argv[1:]):
    store = Store(folder)
    readers = {
        "npz": (load, losses.load, checksum),
        "json": (load, checksum),
        "csv": (losses.load, checksum),
        "parquet": (losses.load, checksum),
        "tra": (lambda file: read_prism(file, 2),),
        "toml": (
            Spec.load,
            checksum,
            lambda _: manifest.load(folder),
            lambda _: store.prepare("", b""),
            lambda _: store.read("ab" + 30 * "0"),
        ),
    }
    for suffix, known in readers.items():
        for read in known:
            try:
                print("accepted", read(folder / f"spec.{suffix}"))
            except AmdpError as problem:
                print(problem)
"""
SUFFIXES = ("npz", "json", "csv", "parquet", "tra", "toml")


def make_pipe(file: Path) -> None:
    os.mkfifo(file)


def make_socket(file: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(file.parent)  # the address of a socket has at most 107 bytes
        try:
            listener.bind(file.name)
        finally:
            os.chdir(here)


def make_device(file: Path) -> None:
    file.symlink_to("/dev/zero")


IRREGULAR: dict[str, Callable[[Path], None]] = {
    "a named pipe (FIFO)": make_pipe,
    "a socket": make_socket,
    "a character device": make_device,
    "a directory": Path.mkdir,
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_regular_file_is_refused_by_every_reader(tmp_path: Path) -> None:
    folders = {kind: tmp_path / make.__name__ for kind, make in IRREGULAR.items()}
    for kind, make in IRREGULAR.items():
        record = folders[kind] / "runs" / "ab" / ("ab" + 30 * "0" + ".json")
        record.parent.mkdir(parents=True)
        for file in (*(folders[kind] / f"spec.{suffix}" for suffix in SUFFIXES), record):
            make(file)
    # In a process of its own: who reads such a file does not come back.
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL, *folders.values()], capture_output=True, text=True, timeout=300, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 15 * len(folders)
    for i, (kind, folder) in enumerate(folders.items()):
        for line in lines[15 * i : 15 * (i + 1)]:
            assert f"{folder}" in line
            assert f"it is {kind}; expected a regular file" in line


def test_a_text_that_is_larger_than_memory_holds_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "memory", lambda: 2**32)
    readers: dict[str, Callable[[Path], object]] = {"world.json": load, "losses.csv": losses.load, "a.toml": Spec.load}
    for name, read in readers.items():
        with (tmp_path / name).open("wb") as stream:
            stream.truncate(2**30 + 1)  # a hole: it fills nothing on the disk
        with pytest.raises(
            SpecError, match=rf"{name}: cannot be read: it holds 1,073,741,825 bytes; at most [\d,]+ are"
        ):
            read(tmp_path / name)


# --- texts ------------------------------------------------------------------------------------------------------------


def test_an_object_of_many_keys_is_read_in_a_time_that_grows_like_their_number(tmp_path: Path) -> None:
    # Counted anew for each, 60,000 keys would be compared 3.6 billion times: minutes, where this takes a moment.
    (tmp_path / "world.json").write_text("{" + ",".join(f'"k{i}":0' for i in range(60_000)) + "}")
    with pytest.raises(SpecError, match=r"world.json: k0: unknown key"):
        load(tmp_path / "world.json")
    (tmp_path / "world.json").write_text("{" + ",".join(f'"k{i}":0' for i in [*range(60_000), 59_999]) + "}")
    with pytest.raises(SpecError, match="the key 'k59999' appears twice"):
        load(tmp_path / "world.json")


@pytest.mark.parametrize("name", ["a\ud800b", "\x1b[31m", "two\nlines", " ", "", "x" * 10**6, "\u202e"])
def test_a_name_that_is_no_line_of_printable_letters_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"name = .*; it must be a text of one line"):
        Instance(name, build("tiny").kernel, build("tiny").costs)
    (tmp_path / "world.json").write_text(json.dumps(WORLD | {"name": name}))
    assert "it must be a text of one line" in refused("solve", tmp_path / "world.json")


@pytest.mark.parametrize("name", ["[/]", "[red]x[/red]", ":boom:", "100 %", "<b>&amp;", "=1+1"])
@pytest.mark.parametrize("domain", ["markov", "stationary"])
def test_a_name_shows_as_it_is(tmp_path: Path, name: str, domain: str) -> None:
    (tmp_path / "world.json").write_text(json.dumps(WORLD | {"name": name}))
    done = CliRunner().invoke(app, ["solve", str(tmp_path / "world.json"), "--domain", domain])
    assert done.exit_code == 0, done.output
    assert f"{name} by " in done.stdout


@pytest.mark.parametrize("word", ["[/]", "\udc80", "\x1b[31m", "x" * 10**5, "..", "a/b", ""])
@pytest.mark.parametrize(
    "arguments",
    [
        ("solve", "{}"),
        ("solve", "{}.npz"),
        ("reach", "{}"),
        ("reach", "{}.npz"),
        ("solve", "tiny", "--oracle", "{}"),
        ("play", "{}"),
        ("play", "{}.json"),
        ("play", "tiny", "--learner", "{}"),
        ("play", "tiny", "--losses", "{}"),
        ("play", "tiny", "--losses", "{}.csv"),
        ("play", "tiny", "--delay", "{}"),
        ("play", "tiny", "--radius", "{}"),
        ("play", "tiny", "--oracle", "{}"),
        ("play", "tiny", "--comparator", "{}"),
        ("play", "tiny", "--projection", "{}"),
        ("play", "tiny", "--set", "{}=1"),
        ("play", "tiny", "--world", "{}=1"),
        ("play", "tiny", "--record", "/dev/null/x{}"),
        ("compare", "{}.toml", "--out", "/dev/null/out"),
        ("compare", "/dev/null", "--out", "/dev/null/{}"),
        ("compare", "{spec}", "--out", "/dev/null/{}"),
        ("compare", "{spec}", "--out", "/dev/null/out", "--shard", "{}"),
        ("compare", "{spec}", "--out", "/dev/null/out", "--dask", "{}"),
        ("report", "/dev/null/{}"),
        ("results", "/dev/null/{}"),
        ("results", "/dev/null/out", "--out", "{}.xls"),
        ("new", "/dev/null/{}.toml"),
        ("verify", "{}"),
        ("rates", "--trial", "--out", "/dev/null/{}"),
        ("rates", "--trial", "--out", "/dev/null/out", "--page", "/dev/null/{}.md"),
        ("table", "--run", "--quick", "--out", "/dev/null/{}"),
        ("verify", "--page", "/dev/null/{}.md"),
    ],
)
def test_words_of_anybody_end_in_one_printable_line(tmp_path: Path, arguments: tuple[str, ...], word: str) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    refused(*(one.replace("{spec}", str(tmp_path / "spec.toml")).replace("{}", word) for one in arguments))


UNREADABLE = {
    "empty.toml": b"",
    "latin.toml": b'title = "\xe9"',
    "nul.toml": b"\0",
    "lists.toml": b"x = " + b"[" * 100_000,
    "number.toml": b"seeds = " + b"9" * 5000,
    "bom.toml": b"\xef\xbb\xbfseeds = 0",
    "crlf.toml": SPEC.replace("seeds = 1", "seeds = 0").replace("\n", "\r\n").encode(),
    "key.toml": SPEC.encode() + b'"[/]" = 1',
    "label.toml": SPEC.replace('"g"', '"\\u001b[31m"').encode(),
    "name.toml": SPEC.replace("tiny", "[/]").encode(),
    "file.toml": SPEC.replace("tiny", "a\\u0000b.npz").encode(),
    "world.toml": SPEC.replace('"tiny"', '{ name = "river-swim", n_states = 10_000_000 }').encode(),
    "rounds.toml": SPEC.replace("episodes = 3", "episodes = 4_611_686_018_427_387_904").encode(),
    "moment.toml": SPEC.replace("episodes = 3", "episodes = 1979-05-27T07:32:00Z").encode(),
    "infinite.toml": SPEC.replace("episodes = 3", "episodes = inf").encode(),
}


@pytest.mark.parametrize(("name", "content"), UNREADABLE.items())
def test_a_spec_of_anybody_ends_in_one_line_and_leaves_no_folder(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    refused("compare", tmp_path / name, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("suffix", [".json", ".npz", ".csv", ".toml"])
def test_a_folder_and_a_circle_of_links_are_no_files(tmp_path: Path, suffix: str) -> None:
    folder, circle = tmp_path / f"folder{suffix}", tmp_path / f"circle{suffix}"
    folder.mkdir()
    circle.symlink_to(circle)
    for file in (folder, circle):
        if suffix == ".toml":
            refused("compare", file, "--out", tmp_path / "out")
        elif suffix == ".csv":
            refused("play", "tiny", "--episodes", 2, "--losses", file)
        else:
            refused("solve", file)


def test_a_long_list_is_searched_for_repetitions_in_one_pass() -> None:
    seeds = list(range(100_000))
    with pytest.raises(SpecError, match=r"seeds\[100000\]: 7; it is in the list already"):
        Spec.parse(SPEC.replace("seeds = 1", f"seeds = {[*seeds, 7]}"))


# --- records and plans ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def record() -> Record:
    game = GameSettings(Named("tiny"), episodes=3)
    return execute(RunSettings(game, LearnerSettings("ftpl-shared"), 1, 2))


def sealed(content: dict[str, Any]) -> bytes:
    """With a checksum that fits."""
    plain = canonical(content)
    return SEALED % _sum(plain) + plain[1:] + b"\n"


def content_of(record: Record) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(record.to_bytes())
    del content["sha256"]
    return content


def put(content: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    at: Any = content
    *way, last = path.split(".")
    for key in way:
        at = at[key]
    at[last] = value
    return content


WRONG = [
    ("curve.paid", "much"),
    ("curve.paid", [1.0, "2"]),
    ("curve.paid", [1.0, None]),
    ("curve.paid", [1.0]),
    ("curve.rounds", [3, 1]),
    ("curve.rounds", [1, 2.5]),
    ("curve.rounds", [1, True]),
    ("curve.rounds", [1, 10**30]),
    ("curve.rounds", {}),
    ("curve.best_bound", ["x", "y"]),
    ("curve.spent", []),
    ("curve.spent", {"play": [0.0, 0.0]}),
    ("curve.bound", 3),
    ("curve", []),
    ("curve", None),
    ("curve", {}),
    ("failure", {"kind": "E", "message": 3, "trace": ""}),
    ("failure", {"kind": "E", "message": "m", "trace": ""}),
    ("made", []),
    ("made", {}),
    ("made.seconds", "long"),
    ("made.versions", ["numpy"]),
    ("made.versions", {"numpy": 2}),
    ("used", "told"),
    ("settings", []),
    ("settings.seed", "1"),
    ("settings.game.delay", 5),
    ("settings.game.instance", "tiny"),
    ("settings.learner", None),
    ("id", 7),
]


@pytest.mark.parametrize(("path", "value"), WRONG)
def test_a_record_with_a_sound_checksum_and_wrong_values_is_not_trusted(
    tmp_path: Path, record: Record, path: str, value: Any
) -> None:
    damaged = sealed(put(content_of(record), path, value))
    with pytest.raises(InvalidInput, match=r"damaged|not a record|does not fit its settings"):
        Record.from_bytes(damaged)
    store = Store(tmp_path)
    store.write(record)
    store.file(record.id).write_bytes(damaged)
    assert store.find(record.id) is None
    assert list(store.broken) == [store.file(record.id)]


def test_what_is_written_is_trusted(record: Record) -> None:
    assert Record.from_bytes(sealed(content_of(record))).to_bytes() == record.to_bytes()


PLANS = [
    ("title", 3),
    ("seeds", ["a"]),
    ("seeds", 3),
    ("checkpoints", None),
    ("games", [["g", 3]]),
    ("games", {}),
    ("learners", [[3, 3]]),
    ("pairs", [["g", "nobody"]]),
    ("pairs", [["g"]]),
    ("tune", "yes"),
    ("skipped", 5),
    ("folder", 5),
]


@pytest.mark.parametrize(("path", "value"), PLANS)
def test_a_plan_with_wrong_values_is_not_used(tmp_path: Path, record: Record, path: str, value: Any) -> None:
    spec = Spec.parse(SPEC)
    with Store(tmp_path) as store:
        store.prepare(spec.titled, manifest.dump(spec))
        store.write(record)
        assert manifest.origin(store.spec) is None  # the text has no folder of its own
        store.plan.write_text(json.dumps(put(json.loads(store.plan.read_bytes()), path, value)))
        assert manifest.origin(store.spec) is None
        found = manifest.load(tmp_path)
    assert (found.title, found.seeds, found.games, found.pairs) == (spec.title, spec.seeds, spec.games, spec.pairs)
    assert CliRunner().invoke(app, ["results", str(tmp_path)]).stdout.count(record.id) == 2


# --- spreadsheets, suffixes, clusters ---------------------------------------------------------------------------------

FORMULAS = ["=1+1", "+1+1", "-1+1", "@sum", " =1", "'=1", "''=1", "=cmd|' /C calc'!A0", "\N{FULLWIDTH EQUALS SIGN}1+1"]


@pytest.mark.parametrize("label", FORMULAS)
def test_no_cell_of_a_csv_file_is_a_formula_and_each_can_be_read_back(label: str) -> None:
    written = text.cell(label)
    assert written == f"'{label}"
    (row,) = list(csv.reader(io.StringIO(comma_separated(Table("t", "t", ("a",), ((label,),))), newline="")))[1:]
    assert row == [written]


@pytest.mark.parametrize("label", ["\t=1+1", "a\r=1+1", "a\ud800", "\x1b"])
def test_letters_that_would_act_are_spelled_out_in_a_cell(label: str) -> None:
    assert text.cell(label) == label.encode("unicode_escape").decode()


@pytest.mark.parametrize("label", ["ftpl", "-3.5", "+7", "-inf", "1e-9", "", "'", "it's", "a=b", "\N{MINUS SIGN}3"])
def test_other_cells_stay_as_they_are(label: str) -> None:
    assert text.cell(label) == label


def test_labels_of_a_spec_are_no_formulas_in_its_results(tmp_path: Path) -> None:
    spec = Spec.parse(SPEC.replace('"g"', '"=1+1"').replace('name = "ftpl', 'label = "@sum"\nname = "ftpl'))
    with Store(tmp_path) as store:
        for one in spec.first():
            store.write(execute(one.settings))
        written = io.StringIO()
        assert write_csv(spec, store, written) == 2
    rows = list(csv.DictReader(io.StringIO(written.getvalue())))
    assert {(row["game"], row["learner"]) for row in rows} == {("'=1+1", "'@sum")}
    assert all(float(row["regret_low"]) == float(row["paid"]) - float(row["best"]) for row in rows)


@pytest.mark.parametrize("name", ["r.xls", "r", "r.csv.gz", "csv"])
def test_results_in_an_unknown_form_are_refused_before_anything_is_read(tmp_path: Path, name: str) -> None:
    told = refused("results", tmp_path / "nowhere", "--out", tmp_path / name)
    assert "unknown suffix" in told
    assert "known are .csv, .parquet" in told


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "http://host:1",
        "",
        "127.0.0.1",
        "tcp://",
        "tcp://host",
        "host:port",
        "tcp://h:999999",
        "[/]",
    ],
)
def test_what_is_no_address_of_a_scheduler_is_refused_at_once(address: str) -> None:
    with pytest.raises(InvalidInput, match="is no address of a Dask scheduler; give one such as tcp://HOST:8786"):
        DaskCluster(address)


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:8786", "host:8786", "tls://[::1]:8786", "inproc://10.0.0.1/77/1"])
def test_addresses_of_schedulers_are_taken(address: str) -> None:
    assert DaskCluster(address).address == address
