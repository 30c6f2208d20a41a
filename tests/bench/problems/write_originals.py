"""Originals as their authors published them, written from tables: the opposite of each converter."""

from __future__ import annotations

import base64
import io
import itertools
import json
import pickle
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mctsvs.bench.problems import nasbench_asr
from mctsvs.bench.problems.originals import architectures, mopta08, packages
from mctsvs.bench.problems.originals.nasbench101 import EPOCHS, OPERATIONS, masked_crc

Table = Mapping[str, Any]


def nasbench201_mean(folder: Path, table: Table) -> None:
    """Edges 1-2, 1-3, 2-3, 1-4, 2-4, 3-4; none is 0, skip 1, 1x1 2, 3x3 3 and pooling 4."""
    cells = list(itertools.product("10324", repeat=6))
    for file, images in packages.IMAGES.items():
        rows = zip(table[f"val_mean_{images}"].tolist(), table[f"train_time_{images}"].tolist(), strict=True)
        entries = {
            f"{a}{b}{c}{d}{e}{f}": {"val_acc": [v, v], "train_time": [t], "latency": [0.1], "model_size": [0.1]}
            for (a, b, d, c, e, f), (v, t) in zip(cells, rows, strict=True)
        }
        (folder / f"{file}.pkl").write_bytes(pickle.dumps(entries))


def fcnet(folder: Path, table: Table) -> None:
    keys = ["".join(map(str, row)) for row in itertools.product(*map(range, (2, 2, 4, 3, 3, 6, 2, 6, 6)))]
    for name in packages.SETS:
        columns = (table[f"{column}_{name}"].tolist() for column in ("val_mse", "train_time"))
        entries = {key: {"val_loss": [v], "train_time": [t]} for key, v, t in zip(keys, *columns, strict=True)}
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(entries))


def graph(folder: Path, table: Table) -> None:
    """Keys are the links and four operations as digits; a scalar of numpy stands beside each value."""
    rows, values = table["config_to_row"].tolist(), table["valid_perf"]
    first: dict[int, int] = {}
    for number, row in enumerate(rows):
        if row != packages.NO_NETWORK:
            choices = np.unravel_index(number, (9,) * 5)
            first.setdefault(row, int("".join(str(int(choice)) for choice in choices)))
    for column, name in enumerate(packages.GRAPHS):
        entries = {key: {"valid_perf": float(values[row, column]), "para": np.float64(1)} for row, key in first.items()}
        (folder / f"{name}.bench").write_bytes(pickle.dumps(entries, protocol=3))


def nasbench201(folder: Path, table: Table) -> None:
    for file, (images, called) in architectures.NASLIB.items():
        cells = itertools.product(packages.OPERATIONS_201, repeat=6)
        rows = zip(table[f"valnaslib_{images}"].tolist(), table[f"train_time_{images}"].tolist(), strict=True)
        entries = {
            f"|{a}~0|+|{b}~0|{c}~1|+|{d}~0|{e}~1|{f}~2|": {
                called: {"eval_acc1es": [1.0, v], "cost_info": {"train_time": t}}
            }
            for (a, b, d, c, e, f), (v, t) in zip(cells, rows, strict=True)
        }
        (folder / f"nb201_{file}_full_training.pickle").write_bytes(pickle.dumps(entries))


def _field(number: int, value: int | float | bytes) -> bytes:
    """A field of a protocol buffer; whole numbers below 2^28."""
    if isinstance(value, float):
        return bytes([number << 3 | 1]) + struct.pack("<d", value)
    if isinstance(value, bytes):
        return bytes([number << 3 | 2]) + _varint(len(value)) + value
    return bytes([number << 3]) + _varint(value)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def record(content: bytes) -> bytes:
    length = struct.pack("<Q", len(content))
    return length + struct.pack("<I", masked_crc(length)) + content + struct.pack("<I", masked_crc(content))


def training(
    fingerprint: str, matrix: str, operations: list[int], accuracy: float, seconds: float, params: int, epochs: int
) -> bytes:
    """One training of a cell: evaluations before, halfway and after."""
    evaluations = [
        b"".join(_field(k, v) for k, v in enumerate((e, s, 0.5, 0.5, a), 1)) + _field(6, b"checkpoint")
        for e, s, a in ((0.0, 0.0, 0.1), (epochs / 2, seconds / 2, 0.5), (float(epochs), seconds, accuracy))
    ]
    metrics = b"".join(_field(1, evaluation) for evaluation in evaluations) + _field(2, params) + _field(3, seconds)
    names = list(OPERATIONS)
    words = ",".join(["input", *(names[k] for k in operations), "output"])
    return json.dumps([fingerprint, epochs, matrix, words, base64.b64encode(metrics).decode()]).encode()


def nasbench101(path: Path, cells: list[tuple[str, str, list[int], tuple[float, ...], float, int]]) -> None:
    """Hash, matrix, operations, three accuracies, seconds and parameters of each cell; also a shorter training."""
    with path.open("wb") as stream:
        for fingerprint, matrix, operations, accuracies, seconds, params in cells:
            stream.write(record(training(fingerprint, matrix, operations, 0.2, 1.0, params, 36)))
            for accuracy in accuracies:
                stream.write(record(training(fingerprint, matrix, operations, accuracy, seconds, params, EPOCHS)))


def transnas(path: Path, micro: Table, macro: Table, old: bool = False) -> None:
    """A PyTorch file without tensors, as a zip archive or as pickles one after the other."""

    def results(table: Table, row: int) -> dict[str, Any]:
        return {
            task: {"metrics": {metric: [0.0, float(table[f"val_{task}"][row])]}, "total_epochs": 2}
            for task, metric in architectures.METRICS.items()
        }

    cells = ["64-41414-{}_{}{}_{}{}{}".format(*ops) for ops in itertools.product(range(4), repeat=6)]
    skeletons = ["64-{}-basic".format("".join(str(m) for m in row if m)) for row in macro["arch"].tolist()]
    found = {
        "data": {
            "macro": {name: results(macro, row) for row, name in enumerate(skeletons)},
            "micro": {name: results(micro, row) for row, name in enumerate(cells)},
        },
        "metrics_dict": {},
        "task_list": list(architectures.METRICS),
    }
    if old:
        pieces: tuple[Any, ...] = (architectures.MAGIC, 1001, {"little_endian": True}, found, [])
        path.write_bytes(b"".join(pickle.dumps(piece, 2) for piece in pieces))
        return
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("transnas/data.pkl", pickle.dumps(found, 2))
        archive.writestr("transnas/version", "3\n")


def nasbench_macro(path: Path, table: Table) -> None:
    entries = {
        "".join(map(str, ops)): {
            "test_acc": table["test_acc3"][row].tolist(),
            "mean_acc": float(table["mean_acc"][row]),
            "std": 0.1,
            "params": int(table["params"][row]),
            "flops": int(table["flops"][row]),
        }
        for row, ops in enumerate(itertools.product(range(3), repeat=8))
    }
    path.write_text(json.dumps(entries))


def lasso_dna(folder: Path, table: Table) -> None:
    for name, X, y in (("dna.scale", "X", "y"), ("dna.scale.t", "X_test", "y_test")):
        rows = np.unpackbits(table[X], axis=1)[:, :180]
        lines = [
            " ".join([str(label), *(f"{j + 1}:1" for j in np.flatnonzero(row))])
            for label, row in zip(table[y].tolist(), rows, strict=True)
        ]
        (folder / name).write_text("".join(f"{line} \n" for line in lines))


def ct_slices(path: Path, table: Table, nested: bool = True) -> None:
    """The CSV file in an archive, which lies in another one."""
    lines = [",".join(["patientId", *(f"value{k}" for k in range(384)), "reference"])]
    lines += [",".join(map(repr, [*x, y])) for x, y in zip(table["X"].tolist(), table["y"].tolist(), strict=True)]
    lines.append(lines[-1])  # the published file goes on
    content, name = "\n".join(lines).encode(), "slice_localization_data.csv"
    for _ in range(1 + nested):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, content)
        content, name = stream.getvalue(), "slice_localization_data.zip"
    path.write_bytes(content)


def rover(path: Path, table: Table) -> None:
    parts = []
    for size in ("small", "large"):
        centres = json.dumps(table[size].tolist())
        parts.append(f"def create_cost_{size}():\n    c = np.array({centres})\n    l = c - 0.05\n    return [l]\n")
    path.write_text("import numpy as np\nraise SystemExit('not to be run')\n" + "\n\n".join(parts))


def nasbench_asr_file(path: Path, rates: Any, seed: int) -> None:
    """One row for each architecture in one of its forms; the error rates of two epochs."""
    forms = {form: k for k, form in enumerate(nasbench_asr.classes().values())}
    listed = nasbench_asr.architectures()
    header = {
        "dataset_type": "training",
        "version": 1,
        "seed": seed,
        "epochs": 40,
        "columns": ["model_hash", "val_per", "test_per", "arch_vec"],
        "search_space": {"ops": nasbench_asr.OPERATIONS, "nodes": 3},
    }
    rows = [
        [f"{k:032x}", [np.float32(0.9), np.float32(rates[k])], 0.5, [tuple(layer) for layer in listed[k]]]
        for k in forms.values()
    ]
    with path.open("wb") as stream:
        pickle.dump(header, stream)
        pickle.dump(rows, stream)


def _fortran(number: float) -> str:
    return f"{number!r}".upper().replace("E", "D") + ("" if "e" in repr(number) else "D+00")


def _assign(name: str, values: Any) -> str:
    """Numbers given to a matrix column by column, as in the published sources."""
    matrix = np.atleast_2d(np.asarray(values, dtype=np.float64).T).T
    return "".join(
        f"          {name}( {i + 1},  {j + 1}) = {_fortran(float(matrix[i, j]))}\n"
        for j in range(matrix.shape[1])
        for i in range(len(matrix))
    )


def _whole(name: str, values: Any) -> str:
    return "".join(f"    {name}({i}) = {int(value)}\n" for i, value in enumerate(values, 1))


def _real(name: str, values: Any) -> str:
    return "".join(f"    {name}({i}) = {_fortran(float(value))}\n" for i, value in enumerate(values, 1))


def mopta(path: Path, table: Table) -> None:
    """A zip archive of the sources."""
    names = mopta08.INPUTS
    function = "subroutine func(nvar,ncon,x,f,g)\n    f = 0.0d0\n"
    for g, (_, inputs, *_rest) in enumerate(table["meta_int"].tolist(), 1):
        function += f"    call g{g}(x{'xxxxx' if inputs == 4 else names[inputs]},g({g}))\n"
    function += "    do i=1,ny\n        g(i) = ssss(i) * g(i)\n    enddo\nend\n"
    function += "".join(_whole(f"{kind}2opt", table[f"{kind}2opt"]) for kind in names[:-1])
    function += _whole("ssss", table["ssss"]) + "".join(_real(k, table[k]) for k in ("mmmm", "aaaa", "xl", "xu", "gu"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("mopta/README.txt", "the sources")
        archive.writestr("mopta/fortran/func.f90", function)
        for g in range(68):
            model, _, n, _, used, logarithm = table["meta_int"][g].tolist()
            text = f"      subroutine g{g + 1}(x,y)\n      parameter    ( n = {n} )\n      if ( .not. loaded ) then\n"
            text += f"          nused( 1) =  {used}\n          uselog( 1) =  {logarithm}\n"
            text += f"          p = {_fortran(float(table['meta_float'][g, 0]))}\n" + _assign("s", table[f"S{model}"])
            text += _assign("theta", table[f"theta{g}"]) + f"          evp( 1) = {_fortran(0.0)}\n"
            text += _assign("beta", table[f"beta{g}"]) + f"          sigmasqr( 1) = {_fortran(5.17)}\n"
            text += _assign("pcoef", table[f"pcoef{g}"])
            text += f"          offset( 1) = {_fortran(float(table['meta_float'][g, 1]))}\n      endif\n      end\n"
            archive.writestr(f"mopta/fortran/g{g + 1}.f", text)
