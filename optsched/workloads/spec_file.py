"""Workload models by file or name, and their traces. Format: ``docs/formats/workload-spec.md``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optsched.content import bundled
from optsched.errors import InputError, UnknownNameError
from optsched.files import write_text
from optsched.registry import workloads
from optsched.text_files import read_toml
from optsched.traces.trace import Trace
from optsched.workloads.hyper_erlang import WorkloadFit
from optsched.workloads.workload_model import WorkloadModel


def workload_names() -> list[str]:
    """Return the names of the bundled specs."""
    return sorted(path.stem for path in bundled("workloads").glob("*.toml"))


def find_workload(name_or_path: str | Path, base: Path | None = None) -> Path:
    """Return the file of a spec by its path, from the folder `base`, or by a bundled name."""
    path = Path(name_or_path) if base is None else base / name_or_path
    if path.suffix == ".toml":
        return path
    if path.exists():
        raise InputError("expected a workload spec, whose name ends in .toml", file=path)
    if str(name_or_path) not in workload_names():
        raise UnknownNameError("workload", str(name_or_path), workload_names())
    return bundled("workloads") / f"{name_or_path}.toml"


def read_workload(name_or_path: str | Path) -> WorkloadModel:
    """Read a workload model from a TOML file, or a bundled model by name."""
    path = find_workload(name_or_path)
    table = read_toml(path)
    try:
        model = table.get("model")
        if not isinstance(model, str):
            known = ", ".join(workloads)
            wrong = "missing" if model is None else repr(model)
            raise InputError(f"{wrong}; expected one of {known}", field="model")
        return workloads[model].from_table(table, path.stem)  # type: ignore[no-any-return]
    except InputError as error:
        raise error.within(path) from None


def write_workload(model: WorkloadModel, path: str | Path) -> None:
    """Write a workload model to a TOML file that `read_workload` reads back as the same model."""
    path = Path(path)
    if path.suffix != ".toml":
        raise InputError("expected a name that ends in .toml", file=path)
    write_text(path, to_toml(model.to_table()))


def to_toml(table: Mapping[str, Any]) -> str:
    """Return a table as TOML that reads back as the same table, to the last digit of each number.

    The values are strings, finite numbers, booleans, lists and mappings. A list of mappings becomes
    an array of tables; it has to be the last value.
    """
    lines = []
    for key, value in table.items():
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            lines += [f"\n[[{key}]]\n{to_toml(part).rstrip()}" for part in value]
        else:
            lines.append(f"{key} = {_value(value)}")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # TOML has the escapes of JSON, and requires one for DEL too
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_value(one)}' for key, one in value.items())} }}"
    return repr(float(value) if isinstance(value, float) else value)  # numpy's numbers, too


def generate_workload(
    workload: WorkloadModel | WorkloadFit | str | Path,
    *,
    jobs: int,
    seed: int = 0,
    interarrival_factor: float = 1.0,
    service_factor: float = 1.0,
) -> Trace:
    """Generate a trace.

    Parameters
    ----------
    workload : WorkloadModel, WorkloadFit, path or str
        A workload model, a fit, the TOML file of a model, or the name of a bundled model.
    jobs : int
        Number of jobs, at least 1.
    seed : int
        Seed of all random choices, from 0.
    interarrival_factor, service_factor : float
        Factors of the interarrival times and of the run times, above 0. The random numbers do not
        depend on them.

    Returns
    -------
    Trace
        A raw trace in whole seconds. The requested time of a job is its run time if the model draws
        no requested times. Run times that round to 0 are raised to 1 s, and counted in
        `Trace.oddities`.

    Raises
    ------
    InputError
        If there is no such workload, its file has mistakes, a number is out of range, or the times
        leave the range of a trace.
    """
    if isinstance(workload, WorkloadFit):
        model: WorkloadModel = workload.model
    elif isinstance(workload, WorkloadModel):
        model = workload
    elif isinstance(workload, str | Path):
        model = read_workload(workload)
    else:
        raise InputError(
            f"workload: {workload!r}; expected a workload model, a file or the name of one"
        )
    return model.generate(
        jobs, seed, interarrival_factor=interarrival_factor, service_factor=service_factor
    )
