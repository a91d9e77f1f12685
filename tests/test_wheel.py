"""The wheel, installed where the source tree cannot be seen."""

import os
import shlex
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from test_docs import NAMED, blocks, write_block

ROOT = Path(__file__).resolve().parents[1]

RUN_ALL = """
from optsched import cli
assert not any([cli.run(one) for one in {words!r}])
print(cli.__file__)
"""
"""Runs commands one after the other, all with exit code 0, and tells where from."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True)
    return next(folder.glob("optsched-*.whl"))


def test_the_wheel_carries_the_content(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for file in (
        "py.typed",
        *(f"report/templates/page.{kind}" for kind in ("html.j2", "css", "js")),
        "_data/models/window-mkp/README.md",
        "_data/models/window-mkp/yang-2014-example.json",
        *(f"_data/sites/{name}" for name in ("campus.toml", "sample-site.toml")),
        "_data/sites/sample-slurm/squeue.json.gz",
        "_data/studies/yang-2014/study.py",
        "_data/studies/guim-2009/published.toml",
        *(f"_data/traces/{name}" for name in ("catalogue.toml", "samples/sample-256.swf")),
        "_data/workloads/franke-1999.toml",
    ):
        assert f"optsched/{file}" in names
    assert any(name.startswith("optsched/_data/solvers/") for name in names)
    assert not any(name.startswith(("tests/", "benchmarks/", "docs/")) for name in names)


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory) -> Path:
    """Return the interpreter of an environment with the wheel.

    The dependencies are borrowed from this environment by a .pth file; optsched itself is not.
    """
    environment = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.check_output([python, "-c", where], text=True).strip())
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    borrowed = [path for path in map(Path, sys.path) if path.name == "site-packages"]
    (packages / "borrowed.pth").write_text("\n".join(map(str, borrowed)) + "\n")
    return python


def run(python: Path, code: str, folder: Path) -> list[str]:
    """Run code in a folder without the source tree; return the words that it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-c", code],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_command_of_the_readme_works_with_the_wheel_alone(python, tmp_path):
    """Another test runs all of them in an empty folder."""
    command = "optsched slurm explain 290 --from sample-slurm"
    assert command in (ROOT / "README.md").read_text().splitlines()
    words = [shlex.split(one)[1:] for one in (command, "optsched list snapshots")]
    told = run(python, RUN_ALL.format(words=words), tmp_path)
    assert "window-mkp/yang-2014-example" in told
    assert str(ROOT) not in told[-1]


@pytest.mark.long
def test_the_study_of_the_how_to_works_with_the_wheel_alone(python, tmp_path, monkeypatch):
    page = ROOT / "docs" / "how-to" / "add-a-study.md"
    monkeypatch.chdir(tmp_path)
    for language, text in blocks(page):
        if language != "sh" and (" file=" in language or NAMED.match(text)):
            write_block(language, text)
    code = "import sys; from optsched.cli import run; sys.exit(run({words!r}) != {expected})"

    def study(words: str, expected: int = 0) -> str:
        told = code.format(words=["study", "backfilling", *words.split()], expected=expected)
        return " ".join(run(python, told, tmp_path))

    study("-o backfilling-runs --write --workers 1")
    assert study("--check").endswith("as computed")
    own = tmp_path / "backfilling" / "page.md"
    own.write_text(own.read_text().replace("81%", "82%", 1))
    assert study("--check", 1) in page.read_text()


@pytest.mark.long
@pytest.mark.parametrize("name", ["add-a-model", "pose-your-own-decision", "state-a-rule"])
def test_how_tos_work_as_typed_with_the_wheel_alone(name, python, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = ""  # blocks of Python in one page go on from each other
    for language, text in blocks(ROOT / "docs" / "how-to" / f"{name}.md"):
        if language == "sh":
            lines = text.replace("\\\n", " ").splitlines()
            words = [shlex.split(line)[1:] for line in lines if line]
            run(python, RUN_ALL.format(words=words), tmp_path)
        elif " file=" in language or NAMED.match(text):
            write_block(language, text)
        else:
            (tmp_path / "typed.py").write_text(before := before + text)
            run(python, "import typed", tmp_path)
