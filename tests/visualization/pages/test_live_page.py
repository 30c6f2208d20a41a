"""The live page: what it serves and refuses, and a run seen in a browser while it goes on."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mctsvs import InputError, Study
from mctsvs.visualization.dashboard import StudyShelf, application, bind, is_loopback
from mctsvs.visualization.dashboard.live import LiveStudy
from mctsvs.visualization.report.sections import MAKERS

pytestmark = pytest.mark.needs("plotly", "starlette", "uvicorn")
BOX = [(0.0, 1.0)] * 6


def bowl(x: Any) -> float:
    return float((x[2] - 0.3) ** 2)


def make(path: Path, n: int = 12) -> Path:
    with Study(path, BOX, seed=0) as study:
        study.optimize(bowl, n)
    return path


@contextmanager
def served(shelf: StudyShelf, token: str = "") -> Iterator[int]:
    """The port of a server in a thread."""
    import uvicorn

    listener = bind("127.0.0.1", 0)
    config = uvicorn.Config(application(shelf, ["127.0.0.1", "localhost"], token), log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def get(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, {name.lower(): value for name, value in answer.getheaders()}


def test_a_study_alone_is_the_first_page(tmp_path: Path) -> None:
    path = make(tmp_path / "s.db")
    before = path.read_bytes()
    with served(StudyShelf([path])) as port:
        status, page, headers = get(port, "/")
        assert status == 200
        assert all(f'<section id="{name}"' in page for name in MAKERS)
        assert '<section id="failures" hidden>' in page
        assert headers["x-content-type-options"] == "nosniff"
        status, script, _ = get(port, "/plotly.js")
        assert len(script) > 1_000_000
        status, text, _ = get(port, "/study/s.db/news?have=")
        assert set(json.loads(text)["sections"]) == set(MAKERS)
    assert path.read_bytes() == before


def test_a_folder_is_a_list_and_nothing_else_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    make(folder / "a b&c.db")
    make(tmp_path / "secret.db")
    (folder / "link.db").symlink_to(tmp_path / "secret.db")
    (folder / "broken.db").write_text("no study")
    (folder / "notes.txt").write_text("private")
    with served(StudyShelf([folder])) as port:
        status, page, _ = get(port, "/")
        assert status == 200
        assert 'href="/study/a%20b%26c.db"' in page
        assert "link.db" not in page
        assert "notes.txt" not in page
        assert get(port, "/study/a%20b%26c.db")[0] == 200
        assert "Nothing to see" in get(port, "/study/broken.db")[1]
        for path in ("link.db", "secret.db", "notes.txt", "..%2fsecret.db", "../secret.db", "%2e%2e%2fsecret.db"):
            assert get(port, f"/study/{path}")[0] == 404, path
            assert get(port, f"/study/{path}/news")[0] == 404, path
        make(folder / "later.db")
        assert "later.db" in get(port, "/")[1]


def test_only_looking_and_only_from_here(tmp_path: Path) -> None:
    with served(StudyShelf([make(tmp_path / "s.db")])) as port:
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            assert get(port, "/", method)[0] == 405
        assert get(port, "/", Host="evil.example")[0] == 400  # a name that somebody else has given this machine
    assert is_loopback("localhost")
    assert is_loopback("127.8.8.8")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("example.com")


def test_others_need_the_token(tmp_path: Path) -> None:
    with served(StudyShelf([make(tmp_path / "s.db")]), token="open sesame") as port:
        for path in ("/", "/study/s.db/news", "/plotly.js", "/?token=wrong", "/?token="):
            assert get(port, path)[0] == 403, path
        status, _, headers = get(port, "/?token=open%20sesame")
        assert (status, headers["location"]) == (303, "/")
        cookie = headers["set-cookie"].partition(";")[0]
        assert "HttpOnly" in headers["set-cookie"]
        assert get(port, "/", Cookie=cookie)[0] == 200
        assert get(port, "/", Cookie="mctsvs=wrong")[0] == 403


def test_only_what_changed_is_sent(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", BOX, seed=0) as study:
        study.optimize(bowl, 15)
        live = LiveStudy(tmp_path / "s.db")
        assert "being worked out" in live.page("/news", "/plotly.js")
        first = json.loads(live.news(""))
        live._thinker.join()
        thought = json.loads(live.news(first["version"]))
        assert "variables" in thought["sections"]
        assert "failures" not in thought["sections"]
        assert json.loads(live.news(thought["version"]))["sections"] == {}
        study.tell(study.ask()[0], 5.0)
        news = json.loads(live.news(thought["version"]))
        assert "convergence" in news["sections"]
        assert "failures" not in news["sections"]
        assert news["running"]
        assert "16" in news["state"]
    live.followed.close()


def test_a_run_that_has_ended_is_shown_as_it_ended(tmp_path: Path) -> None:
    with Study(tmp_path / "s.db", BOX, seed=0) as study:
        study.optimize(bowl, 12)
        live = LiveStudy(tmp_path / "s.db")
        live.news("")
        live._thinker.join()
        study.optimize(bowl, 20)
    live._next_thought = time.monotonic() + 3600.0  # while the run goes on, this long would be waited
    live.news("")  # brings the model up to date
    live._thinker.join()
    assert json.loads(live.news(""))["state"] == "not running, 20 of 20 evaluations"
    live.followed.close()


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no"):
        StudyShelf([tmp_path / "no.db"])
    with bind("127.0.0.1", 0) as taken, pytest.raises(InputError, match="cannot serve at"):
        bind("127.0.0.1", taken.getsockname()[1])


RUN = """
import sys, time
from mctsvs import Study
with Study(sys.argv[1], [(0.0, 1.0)] * 6, seed=0) as study:
    study.optimize(lambda x: float((x[2] - 0.3) ** 2), 10)
    for line in sys.stdin:  # one evaluation for each line, and the time at which it was stored
        study.optimize(lambda x: float((x[2] - 0.3) ** 2), study.evaluated + 1)
        print(time.time(), flush=True)
"""


@pytest.mark.slow
@pytest.mark.needs("playwright")
def test_a_new_evaluation_is_seen_at_once(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    run = subprocess.Popen(
        [sys.executable, "-c", RUN, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    command = [sys.executable, "-m", "mctsvs", "watch", str(path), "--port", "0"]
    assert run.stdin is not None
    assert run.stdout is not None
    run.stdin.write("\n")
    run.stdout.readline()
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[2]
            said: list[str] = []
            delays: list[float] = []
            tab = browser.new_page()
            tab.on("console", lambda message: said.append(message.text))
            tab.goto(address)
            tab.locator("#convergence-0 .main-svg").first.wait_for()
            for n in range(12, 16):
                run.stdin.write("\n")
                stored = float(run.stdout.readline())
                tab.wait_for_function(
                    "n => document.querySelector('#headline .cards').innerText.includes('\\n' + n + '\\n')", arg=n
                )
                tab.wait_for_function("n => document.getElementById('convergence-0').data[0].x.length === n", arg=n)
                delays.append(time.time() - stored)
            assert min(delays) < 2.0  # the others may be the doing of a busy machine
            assert "running" in tab.locator("#live").inner_text()
            assert said == []
            tab.close()
        finally:
            run.stdin.close()
            run.wait()
            run.stdout.close()
            server.terminate()
            server.wait()
