"""The site that ``make docs`` builds: whole, without a network, and no link of it is broken."""

import fcntl
import functools
import html
import os
import re
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "site"
RESOURCE = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=\"([^\"]*)\"")
LINK = re.compile(r"<a\b[^>]*\bhref=\"([^\"]*)\"")
IDENTIFIER = re.compile(r"\bid=\"([^\"]*)\"")


def build(*options):
    command = [sys.executable, "-m", "sphinx", "-c", "docs", "-E", "-q", "-W", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Return the folder of the site, built once for all workers of the session."""
    for needed in ("sphinx", "furo", "latex2mathml", "myst_nb", "numpydoc"):
        pytest.importorskip(needed, reason=f"{needed} is not installed: pip install optsched[docs]")
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "site").exists():
            sources = set((ROOT / "docs").rglob("*"))
            done = build("-j", "2", "-d", str(shared / "doctrees"), ".", str(SITE))
            assert done.returncode == 0, done.stderr
            assert set((ROOT / "docs").rglob("*")) == sources
            (shared / "site").touch()
    return SITE


@pytest.fixture(scope="module")
def texts(site):
    return {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}


def test_every_page_is_in_the_site(site):
    pages = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.ipynb"), *ROOT.glob("models/*/*.md")]
    assert len(pages) > 80
    missing = {
        page for page in pages if not (site / page.relative_to(ROOT)).with_suffix(".html").exists()
    }
    assert missing == set()


def test_nothing_comes_from_the_network_and_links_and_anchors_lead_somewhere(texts):
    found = {address for text in texts.values() for address in RESOURCE.findall(text)}
    assert len(found) > 50
    assert [address for address in found if re.match(r"(\w+:)?//", address)] == []
    identifiers = {page: set(IDENTIFIER.findall(text)) | {""} for page, text in texts.items()}
    broken = set()
    links = 0
    for page, text in texts.items():
        for link in LINK.findall(text):
            if re.match(r"\w+:", link):
                continue
            links += 1
            path, anchor = urldefrag(unquote(html.unescape(link)))
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (target in texts and anchor not in identifiers[target]):
                broken.add((page.name, link))
    assert links > 5000
    assert broken == set()


def test_a_broken_link_or_anchor_ends_the_build(site, tmp_path):
    (tmp_path / "index.md").write_text(
        "# Front\n\n[a](no.md), [b](index.md#no), [c](index.md#front)\n"
    )
    (tmp_path / "conf.py").write_text(
        "root_doc = 'index'\nextensions = ['myst_nb']\nmyst_heading_anchors = 4\n"
    )
    done = build("-c", str(tmp_path), "--keep-going", str(tmp_path), str(tmp_path / "out"))
    assert done.returncode != 0
    assert done.stderr.count("WARNING") == 2


@pytest.fixture(scope="module")
def address(site):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def open_page(visit, address):
    """Return the function that opens a page of the site."""
    return lambda path: visit(f"{address}/", path)


def test_the_front_page_has_a_door_for_everybody(open_page):
    page = open_page("")
    page.wait_for_url("**/docs/index.html")
    assert page.locator("article h2").count() == 3
    page.locator("article").get_by_role("link", name="your cluster in ten minutes").click()
    assert page.locator("h1").inner_text().startswith("Your cluster in ten minutes")


def test_the_reference_has_all_public_names(open_page):
    import optsched
    from optsched import extend, models

    for module in (optsched, models, extend):
        page = open_page(f"docs/api/{module.__name__.rpartition('.')[2]}.html")
        described = set(page.locator("article dt[id]").evaluate_all("all => all.map((e) => e.id)"))
        public = {f"{module.__name__}.{name}" for name in dir(module) if not name.startswith("_")}
        named = page.locator("article > section > p code").all_inner_texts()
        elsewhere = {f"optsched.extend.{name}" for name in [*named, "annotations"]}
        assert public - described <= elsewhere | {"optsched.models"}


def test_the_pictures_of_the_gallery_are_drawn(open_page):
    pictures = open_page("docs/gallery.html").locator("article img")
    drawn = pictures.evaluate_all("all => all.map((i) => i.naturalWidth > 0 && i.alt.length > 0)")
    assert len(drawn) >= 12
    assert all(drawn)


@pytest.mark.parametrize("page", ["gallery", "tutorial", "notebooks/trace", "formats/csv"])
def test_code_fits_its_column_and_pictures_follow_the_dark_theme(open_page, page):
    shown = open_page(f"docs/{page}.html")
    shown.set_viewport_size({"width": 1400, "height": 900})
    code = shown.locator("article .highlight pre")
    assert code.evaluate_all("all => all.filter((e) => e.scrollWidth > e.clientWidth)") == []
    assert code.count() > 1
    pictures = shown.locator("article img")
    filters = "all => [...new Set(all.map((e) => getComputedStyle(e).filter))]"
    for theme, filtered in (("dark", ["invert(0.92) hue-rotate(180deg)"]), ("light", ["none"])):
        shown.evaluate(f"document.body.dataset.theme = '{theme}'")
        assert pictures.evaluate_all(filters) == (filtered if pictures.count() else [])


def test_search_finds_a_page(open_page):
    page = open_page("docs/index.html")
    page.get_by_role("searchbox").or_(page.locator("input[name=q]")).first.fill("ousterhout")
    page.keyboard.press("Enter")
    hit = page.locator("#search-results li a", has_text="gang-packing").first
    hit.wait_for()
    hit.click()
    assert page.locator("h1").inner_text().startswith("gang-packing")
