"""Wrong input gets one clean line and the right exit code, and no file is written."""

import gzip
import json
import shutil
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from cyclopts import App

from optsched import cli
from optsched.cli import terminal
from optsched.content import bundled
from optsched.files import write_json

BAD_INPUT = """
solve absent.json | absent.json: no such file
solve . | is a folder
solve a.json --solver cpsat | did you mean cp-sat
solve a.json --time-limit 0 | expected a number above 0
solve a.json -o no/answer.json | cannot be written
solve a.json --picture a.pdf | expected the suffix .svg or .png
solve yang-2014 | no name in `optsched list snapshots`; did you mean yang-2014-example?
solve models/window-mkp/weighted-20x8.json | no such file; did you mean weighted-20x8
solve worked-example | the name of several; expected data-placement/worked-example or
solve window-mkp | a model; expected one of its snapshots: window-mkp/sample-busy
snapshot convert a.json -o b.lp | b.lp: is read as another format; expected FILE.json (optsched
snapshot check [red].json | optsched: [red].json:
report fcfs none | none: not a folder; expected that of a run (run.json) or a comparison
report fcfs other | other: not a folder that optsched wrote; expected that of a run (run.json)
compare fcfs -o out | one run to compare; expected 2 to 35
compare fcfs easy fcfs -o out | fcfs: is given twice; expected different runs
compare fcfs b.json -o out | runs and snapshots (fcfs, b.json); expected runs, one sweep, or
compare s fcfs -o out | runs and a sweep (fcfs, s); expected runs, one sweep, or snapshots
compare s t -o out | 2 sweeps; expected one sweep, or runs
compare fcfs easy -o s | s: is a folder with other things in it (no runs.json)
compare fcfs easy --days 2:1 -o out | --days: '2:1'; expected FROM:TO in days, 10:12 for
compare fcfs easy --over jobs -o out | --over: is for a sweep, not for runs
compare fcfs easy --seed 1 -o out | --seed: is for solvers on snapshots, not for runs
compare a.json --over jobs -o out | --over: is for runs, not for solvers on snapshots
compare parts -o out | over all of them: optsched compare parts --over jobs -o DIR
compare parts --over job -o out | --over: 'job' does not vary; keys that do: policy, jobs
compare parts --over jobs --baseline sjf -o out | --baseline: 'sjf'; expected one of easy; fcfs
compare parts --over jobs --days 1:2 -o out | --days: is for runs of the same jobs, not for
compare parts --baseline easy -o out | --baseline: expected --over KEY, too; otherwise it is the
simulate sample-265 -o out | sample-265: no such file, and no name in ... did you mean
simulate traces/samples/sample-256.swf -o out | no such file; did you mean sample-256
simulate other -o out | other: is a folder; expected a trace
simulate /dev/stdin -o out | /dev/stdin: is a pipe or a device
simulate letter.swf -o out | letter.swf, line 2 ... 5x
simulate headless.swf -o out | states MaxProcs: 0, ... nodes:256 (it states 256 nodes)
simulate unsized.swf -o out | (MaxProcs) ... --machine nodes:NUMBER
simulate name\udcff.swf -o out | name is not UTF-8
simulate log.swf -o run\udcff | name is not UTF-8
simulate log.swf -o a.json/run | cannot be written
simulate log.swf --machine torus -o out | is not a machine; expected cluster: ... nodes:NUMBER
simulate log.swf --machine ./s -o out | did you mean site:
simulate log.swf --machine site:campsu -o out | did you mean campus?
simulate log.swf --machine campus -o out | did you mean site:campus?
simulate log.swf --policy esay -o out | did you mean easy
simulate log.swf --policy window --solver branch -o out | branch-and-bound
simulate log.swf --policy easy --solver greedy -o out | poses no problems
simulate log.swf --set window=3 -o out | unknown setting ... there is none
simulate log.swf --set rules=a.py --rule b.py -o out | --rule: beside --set rules=; expected
simulate log.swf --execution contiguity --set adjacency=torus -o out | kind torus, not
simulate log.swf --policy window --capture-every 2 -o out | no folder to capture to
simulate log.swf --jobs x:5 -o out | --jobs ... FROM:TO
simulate log.swf --policy window --capture out/inside -o out | --capture
simulate log.swf --jobs 10:5 -o out | FROM <= TO
simulate log.swf --jobs 1:999999 -o out | 3000
simulate log.swf --policy window --set interval=1e12 -o out | to 1,000,000,000
simulate log.swf --policy easy,fcfs,easy -o out | --policy: 'easy' is given twice; expected
simulate log.swf --policy easy, -o out | --policy: 'easy,'; expected names with single commas
simulate log.swf --policy easy,window --set windw=3 -o out | 'windw' of easy and window; did you
simulate log.swf --policy easy,fcfs --seed 2 -o out | poses problems, so they have no use for
simulate log.swf --policy easy,window --capture c -o out | --capture: is for one policy, not for
simulate log.swf --policy easy,fcfs --check -o out | --check: is for one policy, not for
simulate log.swf --policy easy,fcfs -o fcfs | fcfs: is a folder with other things in it (no
sweep absent.toml -o out | absent.toml: No such file or directory
sweep sweep.toml --shard 3/2 -o out | --shard: '3/2'; expected I/N, from 1/N to N/N
sweep sweep.toml --engine dask -o out | address: missing; expected that of a Dask scheduler
sweep sweep.toml --engine dask --address x --workers 2 -o out | workers: is of the engine local
sweep sweep.toml --address tcp://127.0.0.1:1 -o out | address: is of the engine dask
sweep sweep.toml -o easy | easy: is a folder with other things in it (no sweep.json)
sweep sweep.toml --workers 0 -o out | workers: 0; expected a whole number from 1
trace convert log.swf -o a.rackham | `optsched trace annotate files TRACE` infers them
trace fit log.swf --boundaries 8,x | boundaries: '8,x'; expected whole numbers with commas
trace fit log.swf -o spec.txt | spec.txt: expected a name that ends in .toml
trace generate frank-1999 --jobs 5 -o a.swf | unknown workload 'frank-1999'; did you mean
trace generate franke-1999 --jobs 0 -o a.swf | jobs: 0; expected a whole number from 1
trace generate franke-1999 --jobs 5 --service-factor 0 -o a.swf | service factor: 0.0; expected
trace annotate files log.swf -o a.swf | a.swf: unknown suffix; expected .rackham or .rackham.gz
trace annotate files log.swf --evaluate 3:2 -o a.rackham | --evaluate: '3:2'; expected the days
trace annotate files log.swf --evaluate 90:90 -o a.rackham | --evaluate: no job is submitted
trace annotate files log.swf --evaluate 1:99999999999999999999 -o a.rackham | expected days
trace annotate bandwidth log.swf --mix 80:10:11 -o a.swf | --mix: '80:10:11'; expected HIGH, MED,
trace annotate bandwidth log.swf --mix LOW --levels 5 -o a.swf | --levels: '5'; expected
slurm plan --from absent | absent: is not there; expected a folder with the output of Slurm's
slurm plan --from a.json | is a file; expected a folder
slurm plan --from sample-slurm --weigh bogus | --weigh: 'bogus'; expected one of priority, rank
slurm plan --from sample-slurm --reserve -1 | --reserve: -1; expected a number from 0 to 100
slurm apply --from sample-slurm --yes | --yes: cannot be combined with --from
slurm reset --from sample-slurm --yes | --yes: cannot be combined with --from
slurm snapshot --from sample-slurm -o s.txt | s.txt: unknown suffix; expected .json or .json.gz
slurm snapshot --from sample-slurm --keep k -o s.json | --keep
slurm forecast --from sample-slurm --draws -1 | --draws: -1; expected a number from 0 to 10,000
slurm watch --every 0 | --every: 0; expected
slurm watch --cycles 0 | --cycles: 0; expected
slurm report --from sample-slurm -o state.pdf | state.pdf: unknown suffix; expected .html
slurm site --from sample-slurm -o site.json | site.json: unknown suffix; expected .toml
slurm explain abc --from sample-slurm | job: 'abc' is not the number of a job; expected
slurm explain 777777 --from sample-slurm | job: '777777' is not in the queue; expected the
slurm explain 290 --from sample-slurm --by noon | --by: 'noon'; expected a time such as
slurm explain 290 --from sample-slurm --by 17 | expected a time from 20
slurm explain 290 --from sample-slurm --by 999999999999 | --by: '999999999999'; expected a time
slurm explain 290 --from sample-slurm --by 17 --within 3 | --within: expected without --by
slurm explain 290 --from sample-slurm --within 9e9 | --within: 9e+09; expected a number of
slurm explain 290 --from sample-slurm --actions hold,hold | --actions: hold,hold; expected every
slurm explain 290 --from sample-slurm --actions hold,requue | 'requue'; did you mean requeue
"""

USAGE = """
solve | optsched: solve needs SNAPSHOT; see `optsched solve --help`
solve a.json --sovler cbc | --sovler
solve a.json b.json --solver greedy | optsched: solve expects one snapshot; compare takes
solev a.json | solve
help simlate | Did you mean "simulate"?
snapshot check | SNAPSHOTS
simulate X | optsched: simulate needs -o DIR, the folder to write
simulate sample-256 easy -o x | 'easy' is one word too many; see `optsched simulate --help`
list solver | solvers
trace look | Unknown command
trace clean X | optsched: trace clean needs -o FILE, the file to write
trace annotate bandwidth log.swf -o a.swf | --mix
"""


def rows(text, code):
    """Return (words, said, exit code) of each line of a table; ... stands for any text."""
    return [(*line.split(" | "), code) for line in text.strip().splitlines()]


SAMPLES = bundled("traces") / "samples"
SOURCES = {
    ".swf": SAMPLES / "sample-256.swf",
    ".rackham": SAMPLES / "sample-8x20.rackham",
    ".json": bundled("models") / "window-mkp" / "yang-2014-example.json",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with good and bad files, two runs of 60 jobs, and sweeps."""
    place = tmp_path_factory.mktemp("place")
    log = SOURCES[".swf"].read_bytes()
    (place / "log.swf").write_bytes(log)
    (place / "name\udcff.swf").write_bytes(log)
    (place / "headless.swf").write_bytes(log.replace(b"MaxProcs: 256", b"MaxProcs: 0"))
    unsized = log.replace(b"MaxProcs", b"Procs").replace(b"MaxNodes", b"Nodes")
    (place / "unsized.swf").write_bytes(unsized)
    letter = "; MaxProcs: 4\n1 0 0 5x 1 5 -1 1 5 -1 1 1 1 1 1 1 -1 -1\n"
    (place / "letter.swf").write_text(letter)
    shutil.copy(SOURCES[".json"], place / "a.json")
    (place / "sweep.toml").write_text('trace = "log.swf"\npolicy = "easy"\njobs = "1:9"\n')
    (place / "other").mkdir()
    for sweep in ("s", "t"):
        (place / sweep).mkdir()
        (place / sweep / "sweep.json").write_text('{"runs": []}')
    (place / "parts.toml").write_text(
        'trace = "log.swf"\njobs = ["1:20", "21:40"]\npolicy = ["easy", "fcfs"]\nkeep = "summary"\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for policy in ("easy", "fcfs"):
            words = f"simulate log.swf --policy {policy} --jobs 1:60 --no-plots -o {policy}"
            assert cli.run(words.split()) == 0
        assert cli.run(["sweep", "parts.toml", "--workers", "1", "-o", "parts"]) == 0
    return place


@pytest.mark.parametrize(
    ("words", "said", "code"), [*rows(BAD_INPUT, cli.BAD_INPUT), *rows(USAGE, cli.USAGE)]
)
def test_a_mistake_is_one_line_and_nothing_is_written(words, said, code, place, optsched):
    before = {*place.rglob("*")}
    done = optsched(words, code=code, cwd=place)
    [line] = done.err.splitlines()
    assert [part for part in said.split(" ... ") if part not in line] == [], line
    assert done.out == ""
    assert {*place.rglob("*")} == before


@pytest.mark.parametrize("words", ["", "trace", "snapshot", "slurm", "trace annotate"])
def test_half_a_command_gets_the_help_as_wrong_usage(words, optsched):
    shown = optsched(words, code=cli.USAGE).out
    assert f"Usage: {' '.join(['optsched', *words.split(), 'COMMAND'])}" in shown


@pytest.mark.parametrize("link", ["", "symlink_to", "hardlink_to"])
@pytest.mark.parametrize(
    "command",
    [
        *("trace clean a.swf", "trace convert a.swf.gz", "trace scale a.swf --to 8"),
        *("trace fit a.swf", "trace annotate bandwidth a.swf --mix LOW"),
        *("trace annotate files a.rackham", "solve a.json"),
        *("snapshot export a.json", "snapshot convert a.json"),
    ],
)
def test_no_input_is_overwritten(command, link, optsched, tmp_path):
    given = tmp_path / next(word for word in command.split() if word.startswith("a."))
    precious = SOURCES[given.suffixes[0]].read_bytes()
    precious = gzip.compress(precious) if given.suffix == ".gz" else precious
    given.write_bytes(precious)
    output = given.name
    if link:
        output = f"link-to-{given.name}"
        getattr(tmp_path / output, link)(given)
    done = optsched(command, "-o", output, code=1, cwd=tmp_path)
    assert done.err == f"optsched: {output}: is the input; expected another file to write to\n"
    assert given.read_bytes() == precious


def commands(app: App, name: tuple[str, ...] = ()):
    """Yield each command that does something, with its words."""
    for word in app:
        if not word.startswith("-"):
            yield from commands(app[word], (*name, word))
    if app.default_command is not None:
        yield " ".join(name), app


def types_in(hint):
    """Return the types that an annotation is made of."""
    parts = get_args(hint)
    return set().union(*map(types_in, parts)) if parts else {hint} - {None}


def number_options():
    """Return the words that each command needs, and an option of it that takes a number."""
    for name, app in commands(cli.build()):
        arguments = app.assemble_argument_collection()
        for option in arguments:
            needed = [one.name for one in arguments if one.required and one is not option]
            words = [name, *(f"{one}=5" if one.startswith("-") else "x" for one in needed)]
            for kind in types_in(option.hint) & {int, float}:
                yield " ".join(words), option.name, kind


@pytest.mark.parametrize(("words", "option", "kind"), [*number_options()])
def test_a_number_is_decimal_digits_in_every_option(words, option, kind, optsched):
    for word in ["1_0", "٣", "nan", "9" * 20, *["2.5"] * (kind is int)]:
        done = optsched(words, f"{option}={word}", code=cli.USAGE)
        [line] = done.err.splitlines()
        assert option in line
        assert "expected a " in line
        assert done.out == ""


def test_there_are_such_options():
    found = {(words.split()[0], option) for words, option, _ in number_options()}
    assert {("solve", "--seed"), ("trace", "--from"), ("simulate", "--time-limit")} <= found
    assert len(found) > 25


ODD = "odd\nname\x1b[1m\u202e日本"
SHOWN = r"odd\nname\x1b[1m\u202e日本"


@pytest.mark.parametrize(
    "words",
    [
        ["trace", "info", ODD],
        ["solve", ODD],
        ["solve", "none.json", f"--{ODD}"],
        ["sweep", ODD, "-o", "out"],
    ],
)
def test_a_message_is_one_clean_line(capsys, words):
    assert cli.run(words) in (cli.BAD_INPUT, cli.USAGE)
    [line] = capsys.readouterr().err.splitlines()
    assert line.isprintable()
    assert "日本" in line


def test_names_are_printed_in_one_line_as_well(optsched, tmp_path, example):
    snapshot = Path(f"{ODD}.json")
    shutil.copy(example, tmp_path / snapshot)
    assert optsched("snapshot check", snapshot, cwd=tmp_path).out == f"{SHOWN}.json: good\n"
    (tmp_path / snapshot).write_text("{")
    [line] = optsched("snapshot check", snapshot, cwd=tmp_path, code=1).err.splitlines()
    assert line.startswith(f"optsched: {SHOWN}.json, line 1: not JSON")


def test_the_texts_of_a_header_do_not_reach_the_terminal_as_they_are(optsched, tmp_path):
    trace = tmp_path / "a.swf"
    odd = SOURCES[".swf"].read_text().replace("an invented machine", "\x1b]0;PWN\x07 日本\t2")
    trace.write_text(odd)
    page = optsched("trace info", trace).out
    assert r"\x1b]0;PWN\x07 日本 2" in page
    assert all(line.isprintable() for line in page.splitlines())


@pytest.mark.parametrize("number", [float("nan"), -float("inf"), np.float64("nan")])
def test_what_json_cannot_hold_is_null(capsys, tmp_path, number):
    terminal.print_json({"a": [number]})
    assert json.loads(capsys.readouterr().out) == {"a": [None]}
    write_json(tmp_path / "a.json", {"a": [number, 1.5]})
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": [None, 1.5]}


def test_that_nothing_was_done_is_no_success(optsched, tmp_path):
    (tmp_path / "wide.csv").write_text("submit,runtime,processors\n0,5,4\n1,5,4\n")
    words = "simulate wide.csv --machine nodes:1 --no-plots --policy"
    optsched(words, "easy -o one", cwd=tmp_path, code=cli.BAD_INPUT)
    done = optsched(words, "easy,fcfs -o two", cwd=tmp_path, code=cli.BAD_INPUT)
    assert "2 jobs rejected" in done.err
    words = "compare yang-2014-example --solvers highs --time-limit 1e-9 -o none"
    optsched(words, cwd=tmp_path, code=cli.NO_SOLUTION)
