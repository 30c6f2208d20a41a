"""The report in a browser: every section drawn, nothing fetched, nothing said on the console, nothing in the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mctsvs import Optimizer
from mctsvs.visualization import report
from mctsvs.visualization.report.sections import MAKERS

pytestmark = [pytest.mark.needs("plotly", "playwright"), pytest.mark.slow]

# of each figure: boxes of things that must not lie on each other, and what its axes are called
OVERLAPS = """() => {
  const box = (node) => node && node.getBoundingClientRect();
  const crosses = (a, b) => a && b && a.width && b.width && a.height && b.height &&
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const wrong = [];
  for (const place of document.querySelectorAll('.figures > div')) {
    const area = box(place.querySelector('.bglayer .bg')) || box(place.querySelector('.draglayer .nsewdrag'));
    const [x, y, legend] = ['.xtitle', '.ytitle', '.legend'].map((name) => box(place.querySelector(name)));
    const ticks = [...place.querySelectorAll('.xtick text, .ytick text')].map(box);
    if (crosses(x, y) || crosses(legend, area) || ticks.some((t) => crosses(t, x) || crosses(t, y)))
      wrong.push(place.id);
    if (x && !area) wrong.push(place.id + ' has no area');
    const frame = box(place);
    for (const part of [x, y, legend, ...ticks])
      if (part && part.width && (part.left < frame.left - 2 || part.right > frame.right + 2))
        wrong.push(place.id + ' cut');
    const across = [...place.querySelectorAll('.xtick text')].map(box);
    for (let i = 1; i < across.length; i++) if (crosses(across[i - 1], across[i])) wrong.push(place.id + ' ticks');
  }
  return wrong;
}"""


def study() -> Optimizer:
    """Failures, a constraint, a category; enough for every section to have its picture."""
    import mctsvs

    space = {"kind": mctsvs.Categorical(["a", "b"]), **{f"variable{i}": (0.0, 1.0) for i in range(9)}}
    opt = Optimizer(space, seed=0, budget=60)
    for i in range(50):
        (trial,) = opt.ask()
        p = trial.params
        value = 100 * (p["variable3"] - 0.4) ** 2 + (p["variable7"] - 0.2) ** 2 + (p["kind"] != "a")
        message = "it did not <b>converge</b>" if i == 7 else ""
        opt.tell(trial, None if message else value, message, constraints={"heat": p["variable1"] - 0.8})
        trial.times.worker = f"worker {i % 2}"
    return opt


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report.write(study(), tmp_path_factory.mktemp("report") / "report.html")


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_whole(browser: Any, page: Path, width: int, scheme: str) -> None:
    said, asked = [], []
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.as_uri())
    assert tab.locator("section[hidden]").count() == 2, "nothing has failed, and there is no tree"
    for name in MAKERS.keys() - {"failures", "tree"}:
        section = tab.locator(f"section#{name}")
        section.scroll_into_view_if_needed()
        assert section.locator("h2").inner_text()
        assert section.locator("> .text").inner_text().strip()
        for place in section.locator(".figures > div").all():
            place.scroll_into_view_if_needed()
            place.locator(".main-svg").first.wait_for()
    assert tab.locator(".figures > div").count() >= 12
    assert said == []
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [page.as_uri()]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(OVERLAPS) == []
    assert ("dark" in (tab.locator("html").get_attribute("class") or "")) == (scheme == "dark")
    tab.close()


def test_the_axis_of_values_can_be_changed(browser: Any, page: Path) -> None:
    tab = browser.new_page()
    tab.goto(page.as_uri())
    tab.locator("#convergence-0 .updatemenu-button", has_text="linear").click()
    tab.wait_for_function("document.getElementById('convergence-0').layout.yaxis.type === 'linear'")
    tab.locator("#convergence-0 .updatemenu-button", has_text="log").click()
    tab.wait_for_function("document.getElementById('convergence-0').layout.yaxis.type === 'log'")
    tab.close()


def test_the_theme_can_be_changed(browser: Any, page: Path) -> None:
    tab = browser.new_page(color_scheme="light")
    tab.goto(page.as_uri())
    line = tab.locator("#convergence-0 .js-line").first
    before = line.evaluate("node => getComputedStyle(node).stroke")
    tab.locator("#theme").click()
    tab.wait_for_function("document.documentElement.classList.contains('dark')")
    assert line.evaluate("node => getComputedStyle(node).stroke") != before
    tab.close()


def test_compared_studies_unfold(browser: Any, tmp_path: Path) -> None:
    opt = study()
    page = report.write({"one": opt, "two": opt}, tmp_path / "both.html")
    tab = browser.new_page()
    tab.goto(page.as_uri())
    tab.locator("#all-compared-0 .main-svg").first.wait_for()
    assert tab.locator("#s1-convergence-0 .main-svg").count() == 0
    tab.locator("details.study summary", has_text="two").click()
    tab.locator("#s1-convergence-0 .main-svg").first.wait_for()
    tab.close()
