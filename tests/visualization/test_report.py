"""The page: everything is in it, nothing of the user's is taken for markup, and it is made quickly."""

from __future__ import annotations

import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mctsvs
from mctsvs import InputError, Optimizer, Study
from mctsvs.cli import main
from mctsvs.optimizer.active_variables import VariableStatus, VariableStatuses
from mctsvs.visualization import report
from mctsvs.visualization.report.sections import MAKERS, Section, how_to_repeat, sections
from mctsvs.visualization.run_data import RunData

pytestmark = pytest.mark.needs("plotly")
EVIL = "</script><script>alert(1)</script>"


@cache
def awkward() -> Optimizer:
    """A constraint, failures, categories and names that want to be markup."""
    space = {
        EVIL: (0.0, 1.0),
        "<b>k</b>": mctsvs.Categorical(["<i>", "&amp;", "@accent"]),
        **{f"p{i}": (0.0, 1.0) for i in range(6)},
    }
    opt = Optimizer(space, seed=0, budget=60)
    for i in range(40):
        (trial,) = opt.ask()
        failed = i in (7, 12)
        value = (trial.params[EVIL] - 0.4) ** 2 + (trial.params["<b>k</b>"] != "<i>")
        constraints = None if failed else {EVIL: trial.params["p1"] - 0.8}
        opt.tell(trial, None if failed else value, EVIL if failed else "", constraints=constraints)
    return opt


def figures(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.S)
    assert found is not None
    drawn: dict[str, Any] = json.loads(found[1])
    return drawn


def test_every_section_is_there_and_says_something() -> None:
    for part in sections(RunData.of(awkward())):
        assert part.title
        assert part.name == "tree" or re.sub("<[^>]*>", "", part.text).strip(), part.name
    page = report.html(awkward())
    for name in MAKERS.keys() - {"tree"}:
        assert f'<section id="{name}">' in page
        assert f'<a href="#{name}">' in page


def test_nothing_of_the_users_is_markup() -> None:
    page = report.html(awkward())
    assert EVIL not in page
    assert "alert(1)" in page  # it is shown, as text
    assert "<b>k</b>" not in page


def test_nothing_is_fetched() -> None:
    page = report.html(awkward())
    head = page.partition("<body>")[0]
    assert "default-src 'none'" in head
    assert "connect-src 'none'" in head
    assert not re.findall(r'<(?:script|img|iframe)[^>]+src="', page[: page.index("<script>")])
    assert "<link" not in head.replace('<link rel="icon" href="data:,">', "")


def test_figures_are_what_plotly_understands() -> None:
    import plotly.graph_objects

    light = {"@scale": [[0.0, "#ffffff"], [1.0, "#000000"]]}

    def painted(value: Any) -> Any:
        if isinstance(value, str) and value.startswith("@"):
            return light.get(value, "#123456")
        if isinstance(value, dict):
            return {key: painted(item) for key, item in value.items()}
        return [painted(item) for item in value] if isinstance(value, list) else value

    drawn = figures(report.html(awkward()))
    assert len(drawn) > 10
    for name, one in drawn.items():
        plotly.graph_objects.Figure(painted(one["data"]), painted(one["layout"]))  # raises for what it does not know
        assert one["alt"], name
        for axis in ("xaxis", "yaxis"):
            own = one["layout"].get(axis, {})
            labelled = own.get("title", {}).get("text") or own.get("type") == "category" or "ticktext" in own
            assert labelled or "icicle" in one["data"][0]["type"], (name, axis)


def test_a_run_without_any_evaluation_has_a_report() -> None:
    page = report.html(Optimizer([(0.0, 1.0)] * 3))
    assert "No evaluation has succeeded yet" in page
    assert all(f'id="{name}"' in page for name in MAKERS)


def section(run: Any, name: str) -> Section:
    return next(part for part in sections(RunData.of(run)) if part.name == name)


def test_what_has_nothing_to_show_is_hidden() -> None:
    opt = Optimizer([(0.0, 1.0)] * 3, method="random")
    for _ in range(10):
        (trial,) = opt.ask()
        opt.tell(trial, float(trial.x[0]))
    page = report.html(opt)
    for name in ("constraints", "failures", "tree", "selection"):
        assert section(opt, name).text == ""
        assert f'<section id="{name}" hidden>' in page
        assert f'<a href="#{name}" hidden>' in page
    assert '<section id="convergence"><h2>' in page
    assert '<section id="constraints"><h2>' in report.html(awkward())


def test_values_over_powers_of_ten_have_a_switch_of_their_axis() -> None:
    def run(values: list[float]) -> dict[str, Any]:
        opt = Optimizer([(0.0, 1.0)] * 2, method="random")
        for value in values:
            opt.tell(opt.ask()[0], value)
        layout: dict[str, Any] = section(opt, "convergence").figures[0]["layout"]
        return layout

    wide, narrow, negative = run([10.0**-i for i in range(12)]), run([1.0, 2.0, 3.0]), run([5.0, -5.0, 500.0])
    assert [button["label"] for button in wide["updatemenus"][0]["buttons"]] == ["linear", "log"]
    assert wide["yaxis"]["type"] == "log"
    assert "updatemenus" not in narrow
    assert "updatemenus" not in negative


def test_sentences_about_one_thing() -> None:
    opt = Optimizer([(0.0, 1.0)] * 120, method="random")
    for i in range(12):
        opt.tell(opt.ask()[0], float(i))
    run = RunData.of(opt)
    rows = [VariableStatus("x3", "active", 0.31, 0.12, (2, 9)), VariableStatus("x1", "unchanged", changes=5)]
    run.explain = lambda: VariableStatuses(rows, "x3 acts")
    assert "<p>x3 acts; 1 changed nothing at 5 points. Each bar" in section(run, "variables").text
    (bars,) = section(run, "variables").figures
    assert "x3 changes the value by at least 0.31, 12% of its range (trials 2 and 9)" in bars["data"][0]["hovertext"][
        0
    ].replace("<br>", " ")
    assert "did not change after trial 0." in section(run, "convergence").text


def test_several_studies_are_compared(tmp_path: Path) -> None:
    studies: list[Study] = []
    for name in ("one", "two"):
        with Study(tmp_path / f"{name}.db", [(0.0, 1.0)] * 3, method="random", seed=len(studies)) as study:
            study.optimize(lambda x: float(x[0]), 12)
            studies.append(study)
        studies[-1] = Study(tmp_path / f"{name}.db", readonly=True)
    page = report.write(studies, tmp_path / "both.html").read_text(encoding="utf-8")
    best = min(studies, key=lambda study: study.best.value or 0.0)
    assert f"<b>{best.path.stem}</b> has the best value" in page
    assert 'id="all-compared"' in page
    assert 'id="s1-convergence"' in page
    assert len(figures(page)["all-compared-0"]["data"]) == 2


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write"):
        report.write(awkward(), tmp_path / "no folder" / "report.html")


def test_a_study_writes_its_own(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", [(0.0, 1.0)] * 3, seed=4) as study:
        study.optimize(lambda x: float(x[0]), 15)
        page = study.report(tmp_path / "s.html").read_text(encoding="utf-8")
    assert "budget=15" in page
    assert "seed=4" in page
    result = mctsvs.minimize(lambda x: float(x[0]), [(0.0, 1.0)] * 3, budget=15, seed=4)
    assert "budget=15" in result.report(tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_long_run_makes_no_long_page() -> None:
    opt = Optimizer([(0.0, 1.0)] * 200, method="random")
    for i in range(4000):
        (trial,) = opt.ask()
        opt.tell(trial, float(trial.unit[0]) + 1.0 / (i + 1))
    run = RunData.of(opt)
    size = sum(len(json.dumps([part.text, part.figures])) for part in sections(run))
    assert size < 1_000_000


def test_cards_for_notebooks() -> None:
    html = awkward()._repr_html_()
    assert EVIL not in html
    assert "40 evaluations of 8 variables, 2 failed" in html
    assert "<svg" in html
    how: dict[str, Any] = {"budget": 40, "method": "mcts-vs-bo", "explain": 0.2}
    result = mctsvs.minimize(lambda x: float((x[1] - 0.3) ** 2), [(0.0, 1.0)] * 8, **how)
    assert "x1 acts" in result._repr_html_()
    assert "x1 acts" in repr(result)
    assert "at trial" in repr(result)
    assert result.tree is not None
    tree = result.tree._repr_html_()
    assert tree.count("<details") == tree.count("</details>") > 0
    assert "x1" in tree
    assert "no evaluations yet" in Optimizer([(0.0, 1.0)])._repr_html_()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Study(tmp_path / "s.db", [(0.0, 1.0)] * 3, method="random") as study:
        study.optimize(lambda x: float(x[0]), 10)
    assert main(["report", str(tmp_path / "s.db")]) == 0
    assert "s.html" in capsys.readouterr().out
    assert (tmp_path / "s.html").stat().st_size < 8_000_000
    for wrong in (["-o", str(tmp_path / "s.db")], ["-o", str(tmp_path / "no" / "r.html")]):
        assert main(["report", str(tmp_path / "s.db"), *wrong]) == 2
    assert main(["report", str(tmp_path / "no.db")]) == 2
    with Study(tmp_path / "s.db", readonly=True) as study:
        assert study.evaluated == 10


def test_the_command_that_is_shown_repeats_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = str(tmp_path / "s.db")
    words = (
        "bench run Levy10_30 --method mcts-vs-rs --budget 8 --seed 5 --shift --problem-seed 3 --set k=5 --quiet --study"
    )
    assert main([*words.split(), where]) == 0
    with Study(where, readonly=True) as study:
        command = how_to_repeat(RunData.of(study))
        expected = [trial.value for trial in study.trials]
    again = shlex.split(command.replace("again.db", str(tmp_path / "again.db")))
    assert main([*again[1:], "--quiet"]) == 0
    with Study(tmp_path / "again.db", readonly=True) as study:
        assert [trial.value for trial in study.trials] == expected
    capsys.readouterr()


def test_where_values_are_noisy_the_page_says_which_point_to_take() -> None:
    rng = np.random.default_rng(0)
    opt = Optimizer([(0.0, 1.0)] * 3, seed=0, noise=0.3)
    for _ in range(25):
        (trial,) = opt.ask()
        opt.tell(trial, float(trial.x[0]) + rng.normal(0, 0.3))
    advised = opt.recommend()
    text = sections(RunData.of(opt))[0].text
    assert f"Take the point of trial {advised.trial.number}: the value expected there is {advised}." in text
    assert f"{advised}" in opt._repr_html_()
    assert "Take the point" not in sections(RunData.of(awkward()))[0].text
