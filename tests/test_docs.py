"""README, docs and the demo, run as a reader would run them, and the figures that they state."""

import json
import re
import runpy
import shlex
import subprocess
import sys
import types
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from prose import NAMES, expressions, missing, not_in_files, unsaid, wrong

from optsched import registry
from optsched.cli import run as optsched
from optsched.cli.pages import PAGES as TABLES
from optsched.cli.pages import with_tables
from optsched.report import style
from optsched.solvers.solver_call import TOLERANCE

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(sh|python|toml|text file=[\w./-]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IGNORED = (ROOT / ".gitignore").read_text().splitlines()
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
DRAWN = "../build/gallery/"
"""Pictures that building the site draws."""


NAMED = re.compile(r"# ([\w/-]+\.(?:toml|py))$", re.MULTILINE)
"""The first line of a file that the reader is to save."""


def blocks(page: Path) -> list[tuple[str, str]]:
    found = BLOCK.findall(page.read_text())
    return [(kind, text) for kind, text in found if kind != "toml" or NAMED.match(text)]


RUN = [page for page in PAGES if blocks(page) and page.stem != "gallery"]
"""Pages to run; building the site runs the commands of the gallery."""

SLOW = ("simulate", "compare", "sweep", "sweep-file", "compare-on-parts", "use-a-notebook")
"""Pages of options, and of what others show in less time; a reader begins with none of them."""

HELD = [ROOT / "README.md", *(ROOT / "docs" / name for name in ("index.md", "tutorial.md"))]
HELD += sorted((ROOT / "docs" / "how-to").glob("*.md"))
"""Pages of which no figure is without its source."""

DRAWING = [*HELD[:2], ROOT / "docs" / "how-to" / "add-a-picture.md"]
"""Pages whose runs are drawn: it takes longer than all the rest, and differs in nothing."""

COLUMNS = 100
"""Characters of code in the column of the site at 1,400 pixels, see ``docs/_site/site.css``."""

HELD_ELSEWHERE = re.compile(r"## (?:What it answers|How fast it is)\n.*?(?=\n## )", re.DOTALL)
"""Sections of README whose figures have tests of their own."""


def write_block(language: str, text: str) -> None:
    """Write the file that a block of a page is."""
    file = Path(language.partition("=")[2] or NAMED.match(text)[1])
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


@pytest.fixture(autouse=True)
def one_worker(monkeypatch):
    """Start one worker and not two: importing takes longer than the runs."""
    monkeypatch.setattr("optsched.compilation.cores", lambda: 1)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=pytest.mark.long if page.stem in SLOW else ())
        for page in RUN
    ],
)
def test_what_a_page_shows_works(page, tmp_path, monkeypatch, capsys, shared, forget):
    monkeypatch.chdir(tmp_path)
    if ".png" not in page.read_text():
        monkeypatch.delitem(style.METADATA, ".png")  # as long in drawing as the others
    if page not in DRAWING:
        monkeypatch.setattr("optsched.report.pictures.draw", lambda *_: None)
    if "--from captured" in page.read_text():
        (tmp_path / "captured").symlink_to(shared("slurm/fixtures/26.05.5"))
    at_hand = ("models", "solvers", "studies", "traces", "workloads")
    for folder in () if page.name == "README.md" else at_hand:  # README works without the clone
        (tmp_path / folder).symlink_to(ROOT / folder)
    module = types.ModuleType("page")
    module.__file__ = str(tmp_path / "page.py")
    monkeypatch.setitem(sys.modules, "page", module)
    for language, text in blocks(page):
        if language == "python" and not NAMED.match(text):
            exec(compile(text, str(page), "exec"), module.__dict__)
            continue
        if language != "sh":
            write_block(language, text)
            continue
        for line in text.replace("\\\n", " ").splitlines():
            if words := shlex.split(line, comments=True):
                assert words[0] == "optsched", line
                assert optsched(words[1:]) == 0, f"{line}\n{capsys.readouterr().err}"
    said, names = page.read_text(), NAMES | module.__dict__
    assert wrong(said, [eval(one, names) for one in expressions(said)]) == []
    if page in HELD:
        assert unsaid(HELD_ELSEWHERE.sub("", said), capsys.readouterr().out) == []
    left = {path.name for path in tmp_path.iterdir() if not path.is_symlink()}
    assert sorted(left - {line.strip("/") for line in IGNORED}) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_numbers_links_and_code_of_a_page_are_in_order(page):
    """Marked numbers stand in their files, links lead somewhere, and code fits its column."""
    text = page.read_text()
    assert not_in_files(text) == []
    assert page in RUN or expressions(text) == []
    links = [link for link in LINK.findall(BLOCK.sub("", text)) if "://" not in link]
    own = [link for link in links if not link.startswith(DRAWN)]
    assert [link for link in own if not (page.parent / link).exists()] == []
    code = [block for kind, block in BLOCK.findall(text) if kind in ("sh", "python")]
    assert [line for block in code for line in block.splitlines() if len(line) > COLUMNS] == []


MISTAKES = {
    "Iterable[Action]:": "Iterable[Action]",
    "class FairShare(": "class FairShare(",
    " and size <= system.machine.free": "",
    "Counter[int | None] = Counter()": "dict[int | None, int] = {}",
}
"""What is changed in the policy of its page, by the message that the page has for it."""


def test_mistakes_in_a_policy_get_the_messages_of_its_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "how-to" / "add-a-policy.md").read_text()
    [policy] = re.findall(r"```python\n(# fair_share.py.*?)```", text, re.DOTALL)
    [messages] = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    for (right, mistake), message in zip(MISTAKES.items(), messages.strip().splitlines()):
        Path("fair_share.py").write_text(policy.replace(right, mistake))
        name = "FairShair" if "FairShair" in message else "FairShare"
        words = f"simulate sample-256 --jobs 1:500 --policy fair_share.py:{name} -o fair"
        assert optsched(words.split()) == 1
        assert capsys.readouterr().err == f"{message.strip()}\n"


@pytest.mark.parametrize("page", TABLES)
def test_the_tables_of_a_page_are_what_the_declarations_say(page):
    """Otherwise: make pages."""
    text = (ROOT / "docs" / page).read_text()
    assert with_tables(page, text) == text


def test_the_limits_on_the_page_of_solvers_are_those_of_the_package():
    text = (ROOT / "docs" / "solvers.md").read_text()
    every = (registry.solvers[name] for name in registry.solvers)
    generic = [cls for cls in every if cls.models is None and cls.floating_point]
    for what, limit in (("number", "largest_number"), ("objective", "largest_objective")):
        rows = re.findall(rf"\| {what}.*?, (`.*?) \| above ([\d,]+) ", text)
        stated = {name: said for names, said in rows for name in names[1:-1].split("`, `")}
        assert stated == {cls.name: f"{getattr(cls, limit):,}" for cls in generic}
    [tolerance] = re.findall(r"a tolerance of (\S+), below", text)
    assert float(tolerance) == TOLERANCE


@pytest.mark.parametrize("folder", ["commands", "decisions", "formats", "how-to", "results"])
def test_the_page_of_a_folder_names_all_of_its_pages(folder):
    docs = ROOT / "docs"
    named = LINK.findall((docs / f"{folder}.md").read_text())
    pages = {str(page.relative_to(docs)) for page in (docs / folder).rglob("*.md")}
    assert pages - set(named) == set()


def test_numbers_of_the_readme_are_those_of_the_pages_that_it_names():
    text = (ROOT / "README.md").read_text().split("## What it answers")[1].split("\n## ")[0]
    answers = text.split("\n- ")[1:]
    pages = 0
    for answer in answers:
        [link] = LINK.findall(answer)
        page = (ROOT / link).read_text()
        numbers = re.findall(r"\d[\d,]*\.?\d*%?", LINK.sub("", answer))
        assert [number for number in numbers if number not in page] == []
        pages += bool(numbers)
    assert pages >= 4


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("a wait of 42.6 min<!-- is wait -->", 2554),
        ("**1,500 s**<!-- is wait -->", 1500.2),
        ("Eleven<!-- is len(models) --> models", 11),
        ("99.3%<!-- is share -->", 0.9932),
        ("greedy waits longer<!-- holds greedy >\nexact -->", True),
    ],
)
def test_a_mark_holds_at_its_precision(said, value):
    assert len(expressions(said)) == 1
    assert wrong(said, [value]) == []
    assert len(wrong(said, [value * 2 if value is not True else False])) == 1


def test_a_figure_needs_a_mark_a_file_or_a_command_that_prints_it():
    assert unsaid("5 s<!-- is x --> `6 s` [a](7 s)\n\n8 s <!-- from f -->\n\n9 s", "9.2 s") == []
    assert unsaid("in 5 s<!-- holds x -->, 6%", "6.2% 5.6 s") == [("5", "s")]
    assert unsaid("```\n7 s\n```\nin 8 s", "7 s") == [("8", "s")]
    file = "<!-- from benchmarks/results/real-slurm.txt -->"
    assert not_in_files(f"9999 of another\n\n181 jobs, 14.8 s {file}") == []
    assert not_in_files(f"182 jobs {file}") == ["benchmarks/results/real-slurm.txt: 182"]


def test_the_pictures_of_the_front_page_are_what_their_commands_say(tmp_path):
    """Otherwise: make pages."""
    runpy.run_path(str(ROOT / "docs" / "pictures.py"))["main"](str(tmp_path))
    drawn = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert drawn == {file.name: file.read_text() for file in (ROOT / "docs").glob("front-*.svg")}
    said = {re.findall('aria-label="(.*?)"', picture)[0] for picture in drawn.values()}
    for page in ("README.md", "docs/index.md"):
        assert set(re.findall(r"!\[(.*?)\]", (ROOT / page).read_text())) == said


def recipe() -> list[str]:
    """Return the lines of the demo, those that are continued as one."""
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    return text.split("\ndemo: .venv/usable\n")[1].split("\n\n")[0].splitlines()


def test_the_demo_prints_the_figures_that_it_explains(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    printed, commands = "", 0
    for line in recipe():
        if line.startswith("\t$(OPTSCHED) "):
            commands += 1
            assert optsched(shlex.split(line)[1:]) == 0
            printed += capsys.readouterr().out
        else:
            assert line.startswith("\t@echo")
            assert missing(line, printed) == []
    assert commands == 4
    placed = re.findall(r"^objective +(\d+)$", printed, re.MULTILINE)
    explained = next(line for line in recipe() if "Best fit fills" in line)
    assert placed == re.findall(r"fills (\d+)", explained)
    assert re.findall(r"^not placed +(\S+)$", printed, re.MULTILINE) == ["8", "-"]
    for file in re.findall(r"demo/[\w./-]+\w", "".join(recipe()[-5:])):
        assert (tmp_path / file).is_file()
    assert [line == "\t@echo" for line in recipe()[-6:]] == [True, *[False] * 5]


def test_a_bundled_capture_is_found_by_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["slurm", "explain", "290", "--from"]
    assert optsched([*words, "sample-slurm"]) == 0
    assert "partition gpu" in capsys.readouterr().out
    (tmp_path / "sample-slurm").mkdir()
    for name in ("campus", "sample-slurm"):  # a site that is no capture, and an empty folder
        assert optsched([*words, name]) == 1
        assert f"optsched: {name}" in capsys.readouterr().err


BLOCKED = """
import sys
for name in ("distributed", "pulp", "pyscipopt", "scipy"):
    sys.modules[name] = None
import optsched.compilation
optsched.compilation.cores = lambda: 1
from optsched.cli import run
print([run(words) for words in eval(sys.argv[1])])
"""


def test_main_uses_need_no_optional_package_and_others_name_their_extra(tmp_path):
    commands = [
        "simulate sample-256 --policy easy,window --jobs 1:300 -o policies",
        "simulate sample-256 --machine site:sample-site --policy placement --jobs 1:300 -o placed",
        "slurm plan --from sample-slurm --time-limit 1 --json",
        "slurm explain 290 --from sample-slurm --json",
        "solve gpu-queue --json",
        "list workloads",
        "trace generate lublin-feitelson --jobs 10 -o generated.swf",
        "study yang-2014 -o study",
    ]
    words = repr([one.split() for one in commands])
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, words],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = done.stderr
    assert done.stdout.splitlines()[-1] == "[0, 0, 0, 0, 0, 0, 1, 1]", said
    assert "lublin-feitelson.toml: this workload model needs" in said
    generated, study = said.splitlines()[-2:]
    assert generated.endswith("'scipy', which is not installed; pip install 'optsched[workloads]'")
    assert study.endswith("'scipy', which is not installed; pip install 'optsched[studies]'")
    assert {path.name for path in tmp_path.iterdir()} == {"policies", "placed"}


def test_the_table_of_speeds_has_the_figures_of_the_benchmarks():
    text = (ROOT / "README.md").read_text().split("## How fast it is")[1].split("\n\n")[1]
    results = ROOT / "benchmarks" / "results"
    known = "".join((results / name).read_text() for name in ("peers.txt", "windows.txt"))
    rows = [row.strip("| ").split("|") for row in text.splitlines()[2:]]
    assert len(rows) == 4
    for task, ours, other, *ratio in rows:
        counted = re.findall(r"\d+,\d+", task)
        assert all(number in (ROOT / "benchmarks" / "README.md").read_text() for number in counted)
        measured = [re.findall(r"\d[\d.]*(?= s| ms|%)", side) for side in (ours, other)]
        assert all(number in known for numbers in measured for number in numbers)
        [[one], [two]] = measured
        for stated in map(str.strip, ratio):
            decimals = len(stated.partition(".")[2])
            assert f"{float(two) / float(one):.{decimals}f}" == stated


NOTEBOOKS = {file.stem: file for file in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))}


@pytest.mark.parametrize(
    "name",
    ["your-own", *(pytest.param(n, marks=pytest.mark.long) for n in NOTEBOOKS if n != "your-own")],
)
def test_a_notebook_runs_and_shows_tables_and_pictures(name, tmp_path):
    notebook = nbformat.read(NOTEBOOKS[name], as_version=4)
    said = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    asked = "".join(f"float({one}), " for one in expressions(said))
    asked = f"import json; print(json.dumps([{asked}]))"
    notebook.cells.append(nbformat.v4.new_code_cell(asked))
    metadata = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, kernel_name="python3", resources=metadata).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    assert not any(output.get("name") == "stderr" for output in outputs)
    kinds = {kind for output in outputs for kind in output.get("data", ())}
    pictured = '<img src="data:image/png;base64,'
    cards = [output.data.get("text/html", "") for output in outputs if "data" in output]
    assert "image/png" in kinds or any(pictured in card for card in cards)
    assert wrong(said, json.loads(outputs.pop().text)) == []
    printed = "\n".join(str(output.get("text") or output.get("data")) for output in outputs)
    assert unsaid(said, printed) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_stored_without_outputs_under_a_heading(name):
    notebook = nbformat.read(NOTEBOOKS[name], as_version=4)
    assert notebook.cells[0].source.startswith("# ")
    for cell in notebook.cells:
        assert cell.cell_type == "markdown" or (cell.outputs, cell.execution_count) == ([], None)
