"""The page in a real browser, run by `make browser`: Chromium without a window, on a desk and on a phone."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, cast

import pytest
from runs import Asked, Kept, broken_off, finished, planned

from amdp.experiments.spec import Role, Spec
from amdp.experiments.storage import Store
from amdp.report import write
from amdp.report.figures import KINDS

pytestmark = pytest.mark.browser

PHONE, DESK = 390, 1280
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    "--enable-logging=stderr",
    "--v=0",
    "--virtual-time-budget=20000",
    "--dump-dom",
)
PROBE = """<!DOCTYPE html>
<html lang="en"><head><link rel="icon" href="data:,"><title>probe</title></head><body>
<iframe id="frame" width="WIDTH" height="900" src="index.html"></iframe>
<pre id="found"></pre>
<script>
document.getElementById("frame").onload = function () {
  const page = this.contentDocument, root = page.documentElement, view = this.contentWindow;
  const box = one => { const at = one.getBoundingClientRect(); return [at.width, at.height]; };
  const found = {
    scroll: root.scrollWidth, width: root.clientWidth,
    images: [...page.images].map(one => ({natural: one.naturalWidth, box: box(one), alt: one.alt})),
    tables: [...page.querySelectorAll(".wide")].map(one => [one.scrollWidth, one.clientWidth, ...box(one)]),
    letters: [...page.querySelectorAll("p, td, dd")].map(one => parseFloat(view.getComputedStyle(one).fontSize)),
    scripts: page.scripts.length, bold: page.querySelectorAll("b").length, text: page.body.innerText,
    jumps: [...page.querySelectorAll("nav a")].map(one => page.querySelector(one.getAttribute("href")) !== null),
    stolen: typeof view.stolen,
    regret: [...page.querySelectorAll("[aria-label='Regret'] td:nth-child(2)")].map(
      one => [one.innerText, one.getBoundingClientRect().right]),
  };
  document.getElementById("found").textContent = JSON.stringify(found);
};
</script></body></html>
"""
Found = dict[str, Any]
Visit = Callable[[Path, int], tuple[Found, list[str]]]


class Silent(SimpleHTTPRequestHandler):
    """Files of a folder, without a log."""

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Any:
    """A frame may only be looked into if it comes from the same server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def visit(tmp_path: Path) -> Visit:
    """Opens FOLDER/index.html at a width; what is seen there, and what the console says."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert browser, "no Chromium; `make browser` installs it"

    def look(folder: Path, width: int) -> tuple[Found, list[str]]:
        (folder / "probe.html").write_text(PROBE.replace("WIDTH", str(width)))
        with served(folder) as address:
            command = [browser, *FLAGS, f"--user-data-dir={tmp_path / str(width)}", f"{address}/probe.html"]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
        written = re.search(r'<pre id="found">(.*?)</pre>', ended.stdout, re.DOTALL)
        assert written, ended.stderr
        found: Found = json.loads(unescape(written[1]))
        return found, [line for line in ended.stderr.splitlines() if "CONSOLE" in line]

    return look


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with everything that a report can have, and labels that would like to be more than labels."""
    nasty = "<script>window.parent.stolen = 1</script>"
    long = "x" * 200
    plans = [
        planned(game, learner, s) for game in ("swim <b>", long) for learner in ("ftpl", nasty) for s in range(1, 5)
    ]
    tuned = [planned("swim <b>", "ftpl", s, Role.TUNED, 0.5) for s in range(1, 5)]
    failed, lost = planned("swim <b>", long, 1), planned("swim <b>", "ftpl", 99)
    records = [finished(one, gap=0.02) for one in plans + tuned]
    spec = Asked([*plans, failed, lost], tuned, [(long, "hedge", "needs full feedback")], title=f"{nasty} {long}")
    spec.text = f"# {long} {long} {nasty}\n"
    folder = tmp_path_factory.mktemp("report")
    write(cast(Spec, spec), cast(Store, Kept([*records, broken_off(failed, long)])), folder)
    return folder


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_page_fits_and_shows_everything(folder: Path, visit: Visit, width: int) -> None:
    found, console = visit(folder, width)
    assert console == []
    assert found["scroll"] <= found["width"] <= width
    assert len(found["images"]) == 2 * len(KINDS) + 1
    for image in found["images"]:
        assert image["natural"] > 0
        assert image["alt"]
        assert min(image["box"]) > 60
    assert found["tables"]
    assert all(box_width <= width and height > 20 for _, _, box_width, height in found["tables"])
    assert found["jumps"]
    assert all(found["jumps"])
    assert min(found["letters"]) >= 12
    assert found["regret"]
    assert all("[" in text and right <= width for text, right in found["regret"])


def test_a_learner_called_script_is_a_text(folder: Path, visit: Visit) -> None:
    found, _ = visit(folder, DESK)
    assert "<script>window.parent.stolen = 1</script>" in found["text"]
    assert "swim <b>" in found["text"]
    assert (found["scripts"], found["bold"], found["stolen"]) == (0, 0, "undefined")


def test_the_probe_sees_what_is_wrong(tmp_path: Path, visit: Visit) -> None:
    """A page that is too wide, has an image that is none, and complains."""
    folder = tmp_path / "wrong"
    folder.mkdir()
    (folder / "index.html").write_text(
        '<html><head><meta name="viewport" content="width=device-width"></head><body><p style="width: 600px">wide</p>'
        '<img src="data:image/png;base64,AAAA"><script>console.error("oh no")</script></body></html>'
    )
    found, console = visit(folder, PHONE)
    assert found["scroll"] > found["width"]
    assert found["images"][0]["natural"] == 0
    assert found["scripts"] == 1
    assert any("oh no" in line for line in console)
