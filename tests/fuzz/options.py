"""Targets: options of every command, settings of every policy, outputs and names of all kinds."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from cyclopts import App

from fuzz.mutation import number_text, to_toml, word
from fuzz.readers import as_typed, reading_a_snapshot, reading_a_trace
from fuzz.seeds import SWEEP, Seeds, machine_of, machine_text, solvers_of
from fuzz.target import Case, target
from optsched import registry
from optsched.cli import build
from optsched.settings import settings_of
from optsched.studies.folder import study_plans
from optsched.traces.catalogue import entries


class Argument(NamedTuple):
    """An argument of a command; the type is that of an element if it takes several."""

    name: str  # as the user sees it, without dashes
    options: tuple[str, ...]  # how it is typed; empty for one that has its place
    kind: type
    choices: tuple[str, ...]  # the values of a literal
    required: bool
    several: bool


class Command(NamedTuple):
    """A command: the words that name it, and its arguments."""

    words: tuple[str, ...]
    arguments: tuple[Argument, ...]


@cache
def commands() -> tuple[Command, ...]:
    """Return all commands."""
    return tuple(_within(build(), ()))


def _within(app: App, words: tuple[str, ...]) -> Iterator[Command]:
    if app.default_command is not None:
        arguments = tuple(map(_argument, app.assemble_argument_collection()))
        # to compile everything takes minutes, as `doctor` says
        yield Command(words, tuple(each for each in arguments if each.name != "compile"))
    for name in app:
        if not name.startswith("-"):
            yield from _within(app[name], (*words, name))


def _argument(declared: Any) -> Argument:
    hints = [hint for hint in get_args(declared.hint) or (declared.hint,) if hint is not NoneType]
    hint = declared.hint if get_origin(declared.hint) is Literal else hints[0]
    several = get_origin(hint) in (list, tuple) or declared.field_info.kind.name.startswith("VAR")
    if get_origin(hint) in (list, tuple):
        hint = get_args(hint)[0]
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    options = tuple(name for name in declared.names if name.startswith("-"))
    name, kind = declared.name.lstrip("-").lower(), str if choices else hint
    return Argument(name, options, kind, choices, declared.required, several)


OUTPUTS = ("output", "capture", "picture", "keep")
"""Arguments that name what is written; all other paths are read."""

SUFFIXES = (
    "", "", ".swf", ".json", ".rackham", ".toml", ".lp", ".pb.txt", ".svg", ".swf.gz", ".x",
)  # fmt: skip
"""What outputs end in."""

INPUTS = (
    "t.swf", "t.json", "t.rackham", "d.swf", "t.txt", "w.toml", "study.toml", "run", "comparison",
    "window-mkp.json", "threshold-allocation.json", "absent.json", "nowhere",
)  # fmt: skip
"""The files and folders that the folder of a case holds, and two that it does not."""


NAMES = (
    "日本", "a b", "a\nb", "a\tb", "\x1b]0;title\x07", "\u202eb", "a=b", "%s", "{x}", "'", '"',
    "<b>", "é", "e\u0301", "\udcff", "[red]", "-", "x" * 240,
)  # fmt: skip
"""Names of files that are hard to print."""


@target
def options(rng: Random, folder: Path, seeds: Seeds) -> Case:
    _fill(folder, seeds)
    return typed_at_random(rng, rng.choice(commands()))


def typed_at_random(rng: Random, command: Command) -> Case:
    """Return a command with some of its options, whose values may make sense."""
    words, outputs = list(command.words), []
    for argument in command.arguments:
        if rng.random() > (0.97 if argument.required else 0.25):
            continue
        for _ in range(rng.choice((1, 1, 2, 3)) if argument.several else 1):
            value = _value(rng, argument)
            if argument.name in OUTPUTS and value is not None:
                outputs.append(value)
            words += _typed(rng, argument, value)
    if command.words[0] == "report":
        outputs += ["run", "comparison"]
    if rng.random() < 0.05:
        words.insert(rng.randint(0, len(words)), as_typed(word(rng)))
    words += _bounds(command, words)
    return Case(tuple(words), tuple(outputs))


def _fill(folder: Path, seeds: Seeds) -> None:
    """Put everything that commands read into a folder."""
    for name in INPUTS:
        if (seeds.folder / name).is_dir():
            shutil.copytree(seeds.folder / name, folder / name)
        elif (seeds.folder / name).exists():
            shutil.copy(seeds.folder / name, folder / name)
    shutil.copy(seeds.folder / "d.swf.demands.csv", folder)
    (folder / "study.toml").write_bytes(to_toml(SWEEP))


def _bounds(command: Command, words: list[str]) -> list[str]:
    """Return limits that let a command end soon, if they are not given."""
    names = {argument.name for argument in command.arguments}
    given = " ".join(words)
    bounds = (
        ("time-limit" in names, "-limit", ["--time-limit", "0.2"]),
        (command.words == ("compare",), "--solvers", ["--solvers", "greedy,branch-and-bound"]),
        ("plots" in names, "plots", ["--no-plots"]),
        ("quick" in names, "quick", ["--quick"]),
    )
    return [word for has, part, typed in bounds if has and part not in given for word in typed]


def _typed(rng: Random, argument: Argument, value: str | None) -> list[str]:
    """Return a value as it is typed, behind one of the names of its option."""
    if not argument.options:
        return [] if value is None else [value]
    option = rng.choice(argument.options)
    if value is None:
        return [option]
    return rng.choice(([option, value], [option, value], [f"{option}={value}"]))


def _value(rng: Random, argument: Argument) -> str | None:
    """Return a value for an argument; none for a switch."""
    if argument.name in OUTPUTS:
        return output_name(rng)
    if argument.kind is bool:
        return rng.choice((None, None, None, "yes", "x"))
    if rng.random() < 0.6 and (likely := _likely(rng, argument)) is not None:
        return likely
    if argument.kind is Path:
        return rng.choice(INPUTS)
    if argument.kind in (int, float) and rng.random() < 0.9:
        return number_text(rng).strip()
    return as_typed(word(rng)).replace("/", "")


LIKELY: dict[str, Sequence[str]] = {
    "policy": list(registry.policies),
    "solver": list(registry.solvers),
    "hint": list(registry.solvers),
    "execution": list(registry.executions),
    "trace": INPUTS[:4],
    "workload": ("w.toml", "franke-1999", "lublin-feitelson"),
    "study": ("study.toml",),
    "snapshot": ("window-mkp.json", "t.txt", "threshold-allocation.json"),
    "snapshots": ("window-mkp.json", "t.txt"),
    "folders": ("run", "comparison"),
    "solvers": ("greedy", "greedy,branch-and-bound", "fcfs, greedy,"),
    "name": [*study_plans(), *(entry.name for entry in entries())],
    "jobs": ("1:5", "3:3", "2:9", "5"),
    "evaluate": ("1:2", "1:1"),
    "mix": ("HIGH", "LOW", "80:10:10", "0:0:100"),
    "levels": ("high=3,medium=2,low=1", "high=0"),
    "boundaries": ("8,16,256", "1,2,3"),
    "shard": ("1/1", "2/3", "0/1", "3/2"),
    "address": ("tcp:127.0.0.1:1",),
}
"""Values of arguments that a user would give."""


def _likely(rng: Random, argument: Argument) -> str | None:
    """Return a value that a user would give; none for an argument that is not known here."""
    if choices := argument.choices or LIKELY.get(argument.name):
        return rng.choice(choices)
    if argument.name == "machine":
        return machine_text(rng.choice(list(registry.machines)), rng)
    if argument.name == "set":
        return setting(rng, rng.choice(_configurable()))
    return {int: "3", float: "0.5"}.get(argument.kind)


def output_name(rng: Random) -> str:
    """Return the name of an output; it lies in the folder of the case, whatever it is."""
    odd = ("a b", "-o", "out.d", "日本", "x" * 300, "\x1b[31m", "a\nb")
    stem = "out" if rng.random() < 0.7 else rng.choice(odd)
    return stem + rng.choice(SUFFIXES)


def _configurable() -> list[type[Any]]:
    """Return the policies and execution models that have settings."""
    kinds = (registry.policies, registry.executions)
    return [kind[name] for kind in kinds for name in kind if settings_of(kind[name])]


def setting(rng: Random, cls: type[Any]) -> str:
    """Return a setting of a class, as KEY=VALUE; seldom one that it does not have."""
    field = rng.choice(settings_of(cls))
    kind = get_type_hints(cls)[field.name]
    name = field.name if rng.random() < 0.97 else as_typed(word(rng))
    if rng.random() < 0.1:
        value = word(rng)
    elif get_origin(kind) is Literal:
        value = rng.choice(get_args(kind))
    elif kind is bool:
        value = rng.choice(("yes", "no", "0", "True"))
    elif kind in (int, float):
        value = number_text(rng) if rng.random() < 0.5 else str(kind(10 ** rng.randint(0, 7)))
    else:
        numbers = [number_text(rng) for _ in range(rng.randint(1, 3))]
        value = rng.choice((",", ":", " ")).join(numbers)
    return f"{name}={as_typed(value).replace('/', '')}"


@target
def settings(rng: Random, folder: Path, seeds: Seeds) -> Case:
    policy = rng.choice(list(registry.policies))
    cls = registry.policies[policy]
    mostly = "t.rackham" if "cluster" in cls.machines else "d.swf"
    _fill(folder, seeds)
    words = ["simulate", rng.choice(("d.swf", "t.rackham", mostly)), "--policy", policy]
    words += ["--machine", machine_of(policy, rng)]
    parts = [cls]
    if rng.random() < 0.4:
        execution = rng.choice(list(registry.executions))
        parts.append(registry.executions[execution])
        words += ["--execution", execution]
    if cls.models and rng.random() < 0.3:
        words += ["--solver", rng.choice(solvers_of(rng.choice(list(cls.models)), own=True))]
    parts = [part for part in parts if settings_of(part)]
    for _ in range(rng.randint(1, 3) if parts else 0):
        words += ["--set", setting(rng, rng.choice(parts))]
    words += rng.choice(([], ["--check"], ["--journal"], ["--charge-decisions"]))
    words += rng.choice(([], [], ["--seed", number_text(rng).strip()]))
    return Case((*words, "--no-plots", "--json", "-o", "out"), ("out",))


@target
def solver_options(rng: Random, folder: Path, seeds: Seeds) -> Case:
    model = rng.choice(list(seeds.snapshots))
    (folder / "s.json").write_bytes(rng.choice(seeds.snapshots[model]))
    name = rng.choice(solvers_of(model, own=False))
    cls = registry.solvers[name]
    profile = {"solver": name, "options": {}, "budget": {"work": 20, "seconds": 2.0}}
    if settings_of(cls):
        key, _, value = setting(rng, cls).partition("=")
        profile["options"] = {key: rng.choice((value, _as_number(value)))}
    (folder / "p.toml").write_bytes(to_toml(profile))
    number = number_text(rng).strip()
    words = rng.choice(([], [], ["--seed", number], ["--work-limit", number]))
    return Case(("solve", "s.json", "--solver", "p.toml", "--json", *words))


def _as_number(text: str) -> int | float | str:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


@target
def outputs(rng: Random, folder: Path, seeds: Seeds) -> Case:
    """Outputs that are there already: pipes, nodes, links, folders, other files."""
    _fill(folder, seeds)
    (folder / "other").write_bytes(b"of somebody\n")
    (folder / "full").mkdir()
    (folder / "full" / "thesis.tex").write_bytes(b"of somebody\n")
    (folder / "empty").mkdir()
    generate = ("trace", "generate", "w.toml", "--jobs", "3", "-o", "out.swf")
    sweep = Case(("sweep", "study.toml", "-o", "out"), ("out",))
    solve = reading_a_snapshot(rng, "window-mkp.json", "window-mkp")
    cases = (reading_a_trace(rng, "t.swf"), solve, sweep, Case(generate, ("out.swf",)))
    case = rng.choice(cases)
    if not case.outputs:
        return case
    name = case.outputs[0]
    place = folder / name
    linked = ("other", "t.swf", "nothing", name, "full", "empty", "run")
    makers = (
        lambda: os.mkfifo(place),
        lambda: os.mknod(place, 0o20666, os.makedev(1, 3)),
        *[lambda: place.symlink_to(rng.choice(linked))] * len(linked),
        lambda: place.write_bytes(b"of somebody\n"),
        lambda: shutil.copytree(folder / "full", place),
        place.mkdir,
        lambda: (folder / f".{name}.elsewhere-1.partial").mkdir(),  # what a writer left
    )
    try:
        rng.choice(makers)()
    except PermissionError:  # not everybody may make nodes
        place.write_bytes(b"of somebody\n")
    return case


@target
def names(rng: Random, folder: Path, seeds: Seeds) -> Case:
    """Inputs whose names are hard to print."""
    stem = rng.choice(NAMES)
    if rng.random() < 0.5:
        suffix = rng.choice(list(seeds.traces))
        name, data = f"{stem}{suffix}", seeds.traces[suffix]
        case = reading_a_trace(rng, name)
        if case.arguments[0] == "simulate" and rng.random() < 0.2:
            case = case._replace(arguments=tuple(w for w in case.arguments if w != "--no-plots"))
    else:
        model = rng.choice(list(seeds.snapshots))
        name, data = f"{stem}.json", seeds.snapshots[model][0]
        case = reading_a_snapshot(rng, name, model)
    if rng.random() < 0.2:
        data = data[: len(data) // 2]
    if rng.random() < 0.9:
        Path(folder, name).write_bytes(data)
    return case
