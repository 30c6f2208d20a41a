"""One self-contained page: text, figures as data, and Plotly's own script, put in once. Nothing is fetched."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from mctsvs.utils.validation import InputError
from mctsvs.visualization.report.sections import Section

# a page that is opened from a disk can load nothing, whatever is in it; a live one may ask its own server alone
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'{0}; style-src 'unsafe-inline'; img-src data: blob:; "
    "connect-src {1}; base-uri 'none'; form-action 'none'"
)


@cache
def asset(name: str) -> str:
    return resources.files("mctsvs.visualization.report").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def plotly_script() -> str:
    """Plotly's browser library, from its Python package."""
    try:
        return resources.files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")
    except (ModuleNotFoundError, FileNotFoundError):
        raise InputError("a report needs plotly, not installed here: pip install 'mctsvs[report]'") from None


def figures_of(prefix: str, section: Section) -> dict[str, Any]:
    """Name -> figure; a name is also the id of the figure's place in the page."""
    return {f"{prefix}{section.name}-{i}": drawn for i, drawn in enumerate(section.figures)}


def section_html(prefix: str, section: Section) -> str:
    places = "".join(
        f'<div id="{name}" class="{"wide" if drawn["wide"] else ""}" role="img" aria-label="{escape(drawn["alt"])}" '
        f'style="min-height:{drawn["height"]}px"></div>'
        for name, drawn in figures_of(prefix, section).items()
    )
    text = f'<div class="text">{section.text}</div><div class="figures">{places}</div>'
    return f'<section id="{prefix}{section.name}"{_hidden(section)}><h2>{escape(section.title)}</h2>{text}</section>'


def navigation(prefix: str, sections: Sequence[Section]) -> str:
    links = "".join(f'<a href="#{prefix}{one.name}"{_hidden(one)}>{escape(one.title)}</a>' for one in sections)
    return f"<nav>{links}</nav>"


def _hidden(section: Section) -> str:
    """A section without text has its place on the page, which a live page may need later, and is not seen."""
    return "" if section.text else " hidden"


def as_json(value: Any) -> str:
    """JSON inside a script element: nothing in it can end the element."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", " ")


@dataclass(frozen=True)
class Live:
    """What makes a page a live one: where Plotly and news come from, and the version that the page has."""

    plotly: str
    news: str
    version: str
    state: str


def page(title: str, subtitle: str, body: str, figures: Mapping[str, Any], live: Live | None = None) -> str:
    """The whole document; `subtitle` and `body` are HTML."""
    plotly = f"<script>{plotly_script()}</script>" if live is None else f'<script src="{escape(live.plotly)}"></script>'
    state = ""
    if live is not None:
        where = f'data-from="{escape(live.news)}" data-version="{escape(live.version)}"'
        state = f'<span id="live" class="live" {where}>{escape(live.state)}</span>'
    scripts = (
        f'<script type="application/json" id="figures">{as_json(figures)}</script>\n{plotly}\n'
        f"<script>{asset('page.js')}</script>\n"
    )
    return document(title, subtitle, body, state, scripts, live=live is not None)


def document(title: str, subtitle: str, body: str, state: str = "", scripts: str = "", *, live: bool = False) -> str:
    policy = POLICY.format(" 'self'", "'self'") if live else POLICY.format("", "'none'")
    button = '<button id="theme" type="button">light / dark</button>' if scripts else ""
    refresh = "" if scripts else '<meta http-equiv="refresh" content="5">\n'
    style = asset("page.css")
    if not scripts:  # nobody sets the class of the dark theme
        start = style.index(":root.dark")
        dark = style[start : style.index("}", start) + 1].replace(".dark", "")
        style += f"@media (prefers-color-scheme: dark) {{ {dark} }}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n{refresh}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n'
        f"<style>{style}</style>\n</head>\n"
        f'<body>\n<header><h1>{escape(title)}</h1><div class="right">{state}{button}</div>'
        f"<p>{subtitle}</p></header>\n<main>{body}</main>\n<footer>made by mctsvs</footer>\n{scripts}</body>\n</html>\n"
    )
