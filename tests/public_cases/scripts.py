"""Attacks that need a script of their own, as theirs name files that were not kept."""

FUZZ_5293 = """
import itertools, os, pathlib, sys

def brute(sense, c, rows, lo, hi, n, ub):
    best = None
    for x in itertools.product(*(range(most + 1) for most in ub)):
        sums = [sum(a * x[j] for j, a in row.items()) for row in rows]
        if all((l is None or s >= l) and (h is None or s <= h) for s, l, h in zip(sums, lo, hi)):
            value = sum(a * b for a, b in zip(c, x))
            if best is None or (value > best if sense == "max" else value < best):
                best = value
    return best

source = (pathlib.Path(os.environ["REVIEWS"]) / "cases/or-5293-fuzz.py").read_text()
lines = [line for line in source.splitlines() if not line.startswith(("src=", "exec("))]
lines = [line for line in lines if "json.dump" not in line]
exec("\\n".join(lines).replace("'bad')", "'wrong')"))
"""
"""The fuzzer of rows of indicator form, with a brute force; arguments: first seed, seconds."""

LINK = """
import os, pathlib, subprocess, sys, time

shared, victim = pathlib.Path("shared"), pathlib.Path("victim.txt")
shared.mkdir()
victim.write_text("mine")
command = "solve window-mkp/weighted-60x12 --solver highs --time-limit 4 -o shared/a.json"
solving = subprocess.Popen([sys.executable, "-m", "optsched", *command.split()])
laid = False
began = pathlib.Path(f"/proc/{solving.pid}/stat").read_text().rpartition(")")[2].split()[19]
host = os.uname().nodename.partition(".")[0]
os.symlink(victim.resolve(), shared / f".a.json.{host}-{solving.pid}.{began}.partial")
code = solving.wait()
print("exit code", code)
print("victim untouched" if victim.read_text() == "mine" else "victim overwritten")
"""
"""A link laid at the temporary name of an answer, which must not be written through."""
