"""The site: the pages of the repository where they are, and the API from its docstrings.

``make docs`` builds it in ``build/site``, without a network. A warning ends the build, that of a
broken link for instance.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

from optsched.cli import run as optsched
from optsched.report import style
from optsched.version import __version__

project = html_title = "optsched"
version = release = __version__

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc"]
root_doc = "docs/index"
content = ("benchmarks", "docs", "models", "sites", "solvers", "workloads")
studies = ("studies/*/page.md", "studies/*/results/data.md")
include_patterns = ["*.md", *(f"{folder}/**.md" for folder in content), "docs/**.ipynb", *studies]
exclude_patterns = [".*", "build", "demo", "optsched", "studies-in-full", "tests"]

myst_enable_extensions = ["deflist"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
nb_execution_mode = "force"  # they are stored without outputs
nb_execution_in_temp = True
nb_execution_raise_on_error = True

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings have them
maximum_signature_line_length = 80
numpydoc_show_class_members = False

html_theme = "furo"
html_theme_options = {"navigation_with_keys": True}
html_extra_path = ["_site/index.html"]
html_static_path = ["_site/site.css"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_favicon = "_site/favicon.svg"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "build" / "gallery"
DARK = re.compile(r"<style>@media \(prefers-color-scheme:dark\).*?</style>", re.DOTALL)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def setup(app: Sphinx) -> None:
    """Draw the gallery, write equations as MathML, and leave it to pages to introduce modules."""
    app.connect("builder-inited", lambda _: draw_gallery())
    app.connect("source-read", leave_out_of_contents)
    app.connect("build-finished", lambda app, _: copy_figures(Path(app.outdir)))
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("autodoc-process-docstring", without_docstrings_of_modules)


def draw_gallery() -> None:
    """Run the commands of the gallery in a fresh folder.

    Raises
    ------
    RuntimeError
        If a command fails.
    """
    shutil.rmtree(GALLERY, ignore_errors=True)
    GALLERY.mkdir(parents=True)
    (GALLERY / "traces").symlink_to(ROOT / "traces")
    page = ROOT / "docs" / "gallery.md"
    style.METADATA.pop(".png", None)  # the pages show the SVG files
    with contextlib.chdir(GALLERY), contextlib.redirect_stdout(io.StringIO()):
        for block in COMMANDS.findall(page.read_text(encoding="utf-8")):
            for line in block.replace("\\\n", " ").splitlines():
                if optsched(["--quiet", *shlex.split(line)[1:]]) != 0:
                    raise RuntimeError(f"{page}: failed: {line}")


def leave_out_of_contents(_app: Sphinx, page: str, source: list[str]) -> None:
    """Leave the data of a study to its page, which links to them."""
    if page.endswith("/results/data"):
        source[0] = f"---\norphan: true\n---\n{source[0]}"


def copy_figures(site: Path) -> None:
    """Copy the figures of studies, which Sphinx does not find in ``<picture>``.

    The site makes pictures dark by itself, with its theme.
    """
    for file in ROOT.glob("studies/*/results/*.svg"):
        copy = site / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(DARK.sub("", file.read_text(encoding="utf-8")), encoding="utf-8")


def inline_math(writer: Any, node: nodes.math) -> None:
    """Write a formula."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block_math(writer: Any, node: nodes.math_block) -> None:
    """Write a block of equations."""
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def without_docstrings_of_modules(
    _app: Sphinx, what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Empty the lines of the docstring of a module."""
    if what == "module":
        lines.clear()
