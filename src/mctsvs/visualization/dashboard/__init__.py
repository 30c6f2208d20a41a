"""Studies on pages that follow them while they run: `mctsvs watch run.db`.

Files are only read. The pages are served to this machine, and to others only with a token. A study is found by its name
in a list made from the files and folders that were named: no address leads elsewhere. The server is Starlette on
uvicorn: small, maintained, with tested handling of hosts, methods and headers.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
import threading
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mctsvs.study.reader import summarize
from mctsvs.utils.formatting import short_number
from mctsvs.utils.validation import InputError, StudyError
from mctsvs.visualization.dashboard.live import LiveStudy
from mctsvs.visualization.report.page import document, plotly_script

if TYPE_CHECKING:
    from starlette.applications import Starlette

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
COOKIE = "mctsvs"


class StudyShelf:
    """The studies that may be seen, by name."""

    def __init__(self, named: Sequence[Path]) -> None:
        for path in named:
            if not path.exists():
                raise InputError(f"there is no {str(path)!r}: give a study, or a folder with studies")
        self.named = [path.resolve() for path in named]
        self.live: dict[Path, LiveStudy] = {}
        self._lock = threading.Lock()

    @property
    def alone(self) -> bool:
        return len(self.named) == 1 and self.named[0].is_file()

    def paths(self) -> dict[str, Path]:
        """Name -> file; of a folder, the files in it that end in .db, as they are now. No link leads out of it."""
        found: dict[str, Path] = {}
        for place in self.named:
            files = sorted(place.glob("*.db")) if place.is_dir() else [place]
            for file in files:
                real = file.resolve()
                if real.is_file() and (real == place or real.parent == place):
                    name = file.name if file.name not in found else f"{place.parent.name}-{file.name}"
                    found.setdefault(name, real)
        return found

    def study(self, name: str) -> LiveStudy | None:
        path = self.paths().get(name)
        if path is None:
            return None
        with self._lock:
            return self.live.setdefault(path, LiveStudy(path))


def application(shelf: StudyShelf, hosts: Sequence[str], token: str = "") -> Starlette:
    """The pages as an ASGI application, for these names of the host; with a token, for those who have it."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, RedirectResponse, Response
    from starlette.routing import Route

    def html(text: str, status: int = 200) -> Response:
        return HTMLResponse(text, status, headers=HEADERS)

    def listing(request: Request) -> Response:
        if not shelf.alone:
            return html(_listing(shelf))
        return html(_page(shelf, next(iter(shelf.paths()), "")))

    def study(request: Request) -> Response:
        name = request.path_params["name"]
        return html(_page(shelf, name)) if name in shelf.paths() else html(_sorry("There is no such study."), 404)

    def news(request: Request) -> Response:
        found = shelf.study(request.path_params["name"])
        if found is None:
            return Response("no such study", 404, headers=HEADERS)
        try:
            text = found.news(request.query_params.get("have", ""))
        except StudyError as error:
            return Response(str(error), 503, headers=HEADERS)
        return Response(text, media_type="application/json", headers=HEADERS)

    def plotly(request: Request) -> Response:
        lasting = {**HEADERS, "Cache-Control": "max-age=86400"}
        return Response(plotly_script(), media_type="text/javascript", headers=lasting)

    routes = [
        Route("/", listing),
        Route("/study/{name}", study),
        Route("/study/{name}/news", news),
        Route("/plotly.js", plotly),
    ]
    middleware = [Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))]
    if token:
        middleware.append(Middleware(_Guard, token=token, redirect=RedirectResponse, refuse=Response))
    return Starlette(routes=routes, middleware=middleware)


class _Guard:
    """Lets in who brings the token: in the address once, from then on in a cookie."""

    def __init__(self, app: Any, token: str, redirect: Any, refuse: Any) -> None:
        self.app, self.token, self.redirect, self.refuse = app, token, redirect, refuse

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import Request

        answer = self.app
        if scope["type"] == "http":
            request = Request(scope)
            brought, kept = request.query_params.get("token", ""), request.cookies.get(COOKIE, "")
            if self._right(brought):
                answer = self.redirect(request.url.path, 303, headers=HEADERS)
                answer.set_cookie(COOKIE, self.token, httponly=True, samesite="strict")
            elif not self._right(kept):
                answer = self.refuse("the address needs the token that mctsvs watch has printed", 403, headers=HEADERS)
        await answer(scope, receive, send)

    def _right(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


def _page(shelf: StudyShelf, name: str) -> str:
    found = shelf.study(name)
    try:
        if found is not None:
            return found.page(f"/study/{quote(name, safe='')}/news", "/plotly.js", home="" if shelf.alone else "/")
        why = "The study is no longer there."
    except StudyError as error:
        why = str(error)
    return _sorry(why)


def _sorry(why: str) -> str:
    return document("Nothing to see", escape(why), '<p><a href="/">all studies</a></p>')


def _listing(shelf: StudyShelf) -> str:
    rows = []
    for name, path in shelf.paths().items():
        link = f'<a href="/study/{quote(name, safe="")}">{escape(name)}</a>'
        try:
            seen = summarize(path)
            best = "" if seen.best is None else short_number(seen.best)
            cells = [escape(seen.method), seen.direction, f"{seen.evaluations:,}", f"{seen.failed:,}", best]
        except StudyError as error:
            cells = []
            link = f"{escape(name)}</td><td colspan='5'>{escape(str(error))}"
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in (link, *cells))}</tr>")
    head = "".join(
        f"<th>{word}</th>" for word in ("study", "method", "direction", "evaluations", "failed", "best value")
    )
    table = f"<table class='list'><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    body = f"<section><div class='scroll'>{table}</div></section>"
    return document("Studies", f"{len(rows)} to look at", body if rows else "<section>There are none yet.</section>")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(64)
    except (OSError, OverflowError) as error:
        listener.close()
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot serve at {host}, port {port}: {why}; give another --port") from None
    return listener


def serve(paths: Sequence[Path], host: str = "127.0.0.1", port: int = 8765, say: Any = print) -> None:
    """Serve the pages of studies until Ctrl-C.

    Args:
        paths: Study files, or folders with some.
        host: The address to serve at. Others than this machine need the token that is printed.
        port: The port; 0 for any that is free.
        say: Prints the address of the first page.

    Raises:
        InputError: A path is not there, the port is taken, or a library is missing.
    """
    try:
        import uvicorn
    except ImportError:
        raise InputError(
            "watching needs starlette and uvicorn, not installed here: pip install 'mctsvs[watch]'"
        ) from None
    plotly_script()  # better now than on the page
    shelf, local = StudyShelf(paths), is_loopback(host)
    listener = bind(host, port)
    where = socket.gethostname() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    token = "" if local else secrets.token_urlsafe(18)
    hosts = ["localhost", "127.0.0.1", "[::1]", where] if local else ["*"]
    app = application(shelf, hosts, token)
    address = f"http://{where}:{listener.getsockname()[1]}/" + (f"?token={token}" if token else "")
    say(f"watching at {address} (Ctrl-C ends it)")
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", server_header=False))
    with listener:
        server.run(sockets=[listener])
