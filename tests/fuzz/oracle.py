"""What is wrong with how a command ended."""

import hashlib
import json
import os
import re
import signal
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from fuzz.forks import Bounds, Ended
from fuzz.target import Case
from optsched.cli import BAD_INPUT, DONE, INFEASIBLE, NO_SOLUTION, USAGE
from optsched.files import TEMPORARY

CODES = (DONE, BAD_INPUT, USAGE, NO_SOLUTION, INFEASIBLE)

KEEPS_ITS_FOLDER = ("sweep", "study")
"""Commands whose folder stays when they end early: it is there to be resumed."""

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]")
"""What a terminal could obey, or what would break a line; line breaks and tabs apart."""

OF_PROGRAM = re.compile(
    r"site-packages|\.py:\d|\b(?:[A-Z]\w*(?:Error|Exception|Warning)|StopIteration)\b"
)
"""What is for programmers, not for users."""

MISTAKES = re.compile(r"\d+ mistakes$")

NOTES = re.compile(r"[\d,]+ runs.* to do|optsched: compiling kernels.*|[\w.-]+: \S+\.swf(?:\.gz)?")
"""What may stand on stderr before a refusal: the plan of a sweep, the file of a named log."""

Folder = Mapping[str, tuple[str, str]]
"""What a folder holds: the type of each file, and what is in it."""


class Failure(NamedTuple):
    """Something wrong; those with one kind and one cause are likely one mistake of the program."""

    kind: str
    cause: str
    seen: str


def contents(folder: Path) -> dict[str, tuple[str, str]]:
    """Return what a folder holds; links are not followed, pipes not opened."""
    held = {}
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            mode = path.lstat().st_mode
            within = ""
            if stat.S_ISREG(mode):
                within = hashlib.sha256(path.read_bytes()).hexdigest()
            elif stat.S_ISLNK(mode):
                within = os.readlink(path)
            held[os.fsdecode(path.relative_to(folder))] = (stat.filemode(mode)[0], within)
    return held


def judge(
    case: Case, ended: Ended, before: Folder, after: Folder, folder: Path, bounds: Bounds
) -> list[Failure]:
    """Return the faults of the end of a case, and of its folder before and after."""
    found = list(_of_end(case, ended, bounds))
    if not found:
        found += _of_messages(case, ended)
        found += _of_json(case, ended, before, after, folder)
    found += _of_files(case, ended, before, after)
    if ended.orphans:
        found.append(Failure("left behind", f"{_command(case)}: a process", "it was ended"))
    found += [
        Failure("left behind", _shape(name), f"temporary file {name!r}")
        for name in sorted(contents(folder.with_name("tmp")))
    ]
    return found


def _of_end(case: Case, ended: Ended, bounds: Bounds) -> Iterator[Failure]:
    command = _command(case)
    if ended.hung:
        yield Failure("hang", command, f"not ended after {bounds.patience:.0f} s")
    elif ended.code < 0:
        what = "too much processor time" if ended.code == -signal.SIGXCPU else "a signal"
        yield Failure("killed", f"{command}: signal {-ended.code}", f"ended by {what}")
    elif "Traceback (most recent call last)" in ended.err:
        yield Failure("traceback", _blame(ended.err), ended.err[-3000:])
    elif ended.code not in CODES:
        yield Failure("exit code", f"{command}: {ended.code}", ended.err[-500:])


def _of_messages(case: Case, ended: Ended) -> Iterator[Failure]:
    lines = ended.err.split("\n")
    if lines[-1]:
        yield Failure("message", "the last line does not end", ended.err[-500:])
    lines.pop()
    for line in lines:
        if CONTROL.search(line):
            yield Failure("message", f"control characters: {_command(case)}", shown(line[-500:]))
        if OF_PROGRAM.search(line):
            yield Failure("message", f"of the program, not for users: {_shape(line)}", line[-500:])
    if ended.code not in (BAD_INPUT, USAGE) or (ended.code == USAGE and ended.out):
        return
    told = [line for line in lines if not NOTES.fullmatch(line)]
    if not told:
        yield Failure("message", f"{_command(case)}: none for exit code {ended.code}", ended.out)
    if ended.out:  # the work was done, and something is to be said of it
        return
    listing = False
    for line in told:
        if line.startswith("optsched: "):
            listing = bool(MISTAKES.search(line))
        elif not (listing and line.startswith("  - ")):
            cause = f"{_command(case)}: a line that does not begin with 'optsched: '"
            yield Failure("message", cause, shown(ended.err[-1000:]))
            break


def _of_json(
    case: Case, ended: Ended, before: Folder, after: Folder, folder: Path
) -> Iterator[Failure]:
    done = ended.code not in (BAD_INPUT, USAGE)
    if done and "--json" in case.arguments and "--no-json" not in case.arguments:
        try:
            printed = strict_json(ended.out)
            if printed.get("solution") is not None and printed.get("verified") is not True:
                yield Failure("answer", f"{_command(case)}: not verified", ended.out[:2000])
        except ValueError as error:
            cause = f"{_command(case)}: stdout: {_shape(str(error))}"
            yield Failure("json", cause, ended.out[:500])
    for name in after:
        if after[name] == before.get(name) or after[name][0] != "-" or not name.endswith(".json"):
            continue
        try:
            strict_json((folder / name).read_text(encoding="utf-8"))
        except ValueError as error:
            cause = f"{_command(case)}: {os.path.basename(name)}: {_shape(str(error))}"
            yield Failure("json", cause, (folder / name).read_text(errors="replace")[:500])


def _of_files(case: Case, ended: Ended, before: Folder, after: Folder) -> Iterator[Failure]:
    command = _command(case)
    changed = [name for name in after if after[name] != before.get(name)]
    refused = ended.code in (BAD_INPUT, USAGE) and not ended.out
    outputs = {name.strip("/") for name in case.outputs}
    outputs |= {before[name][1] for name in outputs if before.get(name, "")[:1] == ("l",)}
    for name in sorted(before.keys() - after.keys()):
        if not _within(name, outputs) and not TEMPORARY.fullmatch(os.path.basename(name)):
            yield Failure("lost", f"{command}: {_shape(name)}", name)
    for name in changed:
        in_output = any(name.startswith(output + "/") for output in outputs)
        if TEMPORARY.fullmatch(os.path.basename(name)):
            yield Failure("left behind", f"{command}: temporary file", name)
        elif refused and not (case.arguments[0] in KEEPS_ITS_FOLDER and _within(name, outputs)):
            yield Failure("left behind", f"{command} exits with {ended.code}", name)
        elif name in before and before[name][0] != after[name][0] and not in_output:
            types = f"from {before[name][0]} to {after[name][0]}"
            yield Failure("replaced", f"{command}: {types}", f"{name}: {types}")
        elif not _within(name, outputs):
            yield Failure("outside", f"{command}: {_shape(name)}", f"{name} is no output")


def _within(name: str, outputs: set[str]) -> bool:
    """Return whether a path is an output, lies in one, around one, or is the file beside one."""
    return not outputs.isdisjoint((name, name.removesuffix(".demands.csv"))) or any(
        name.startswith(output + "/") or output.startswith(name + "/") for output in outputs
    )


def strict_json(text: str) -> Any:
    """Return what a JSON text stands for.

    What is not JSON, NaN and infinite numbers too, or one name twice in an object, is a ValueError.
    """

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name is given twice")
        return dict(pairs)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=each_once)


def _blame(err: str) -> str:
    """Return the exception of the last traceback, and the innermost line of the program in it."""
    last = err.rpartition("Traceback (most recent call last)")[2]
    places = re.findall(r'File "[^"]*?/(optsched/[^"]*)", line (\d+)', last)
    lines = [line for line in last.split("\n") if re.match(r"[A-Za-z_][\w.]*(?::|$)", line)]
    place = ":".join(places[-1]) if places else "?"
    return f"{_shape(lines[0] if lines else '?')} at {place}"


def shown(text: str) -> str:
    """Return a text with what a terminal could obey written out."""
    return CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def _shape(text: str) -> str:
    """Return a message without what differs from case to case."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", text[:300])
    text = re.sub(r"-?\d[\d_,.e+]*", "0", text)
    return re.sub(r"[^\x20-\x7e]+", "?", text)[:100]


def _command(case: Case) -> str:
    words = case.arguments
    return " ".join(words[: 2 if words[0] in ("trace", "snapshot") else 1]) if words else "-"
