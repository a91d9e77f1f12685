"""Constraints on the features of nodes, as Slurm writes them: ``ib&(a100|h100)``, ``[r1|r2]``.

Operators have no precedence: Slurm evaluates them from left to right, so ``a|b&c`` is ``(a|b)&c``.
Brackets, the matching OR, offer choices, one of which holds for all nodes of a job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from optsched.errors import InputError

DEEPEST = 20
"""Most parentheses within each other."""

_TOKEN = re.compile(r"[&|()\[\]]|[^&|()\[\]*,!\s]+")

_Test: TypeAlias = Callable[[frozenset[str], int], bool]
"""Whether features satisfy an expression, given the number of the choice in brackets."""


class Constraint(NamedTuple):
    """Constraint on the features of a node."""

    text: str  # the constraint as it was written
    choices: int  # number of choices in brackets; 1 without brackets
    test: _Test

    def holds(self, features: Iterable[str], choice: int = 0) -> bool:
        """Return whether a node with these features satisfies the constraint under a choice."""
        return self.test(frozenset(features), choice)


def parse_constraint(text: str) -> Constraint:
    """Return the constraint that a text states.

    >>> constraint = parse_constraint("ib&(a100|h100)")
    >>> constraint.holds(["ib", "h100"]), constraint.holds(["a100"])
    (True, False)
    >>> parse_constraint("[rack1|rack2]&ib").choices
    2
    """
    reading = _Reading(text)
    test = reading.expression(0)
    if reading.tokens:
        raise reading.wrong()
    return Constraint(text, reading.choices or 1, test)


class _Reading:
    """Recursive descent over the tokens of a constraint, the next one last."""

    def __init__(self, text: str) -> None:
        self.text = text
        if "*" in text:
            expected = "expected features without node counts (*)"
            raise InputError(f"{text!r}; {expected}", field="constraint")
        self.tokens = _TOKEN.findall(text)[::-1]
        self.choices = 0
        if "".join(self.tokens[::-1]) != text:
            raise self.wrong()

    def wrong(self) -> InputError:
        expected = "expected features with &, | and parentheses, or [a|b] once"
        return InputError(f"{self.text!r}; {expected}", field="constraint")

    def expression(self, depth: int) -> _Test:
        if depth > DEEPEST:
            raise self.wrong()
        first = self.term(depth)
        further: list[tuple[bool, _Test]] = []
        while self.tokens and self.tokens[-1] in "&|":
            both = self.tokens.pop() == "&"
            further.append((both, self.term(depth)))
        return _joined(first, further) if further else first

    def term(self, depth: int) -> _Test:
        token = self.tokens.pop() if self.tokens else ""
        if token == "(":
            test = self.expression(depth + 1)
            self.expect(")")
            return test
        if token == "[" and not self.choices:
            return self.matching_or(depth)
        if not token or token in "&|()[]":
            raise self.wrong()
        return lambda features, choice: token in features

    def matching_or(self, depth: int) -> _Test:
        self.choices = -1  # no brackets within brackets
        tests = [self.term(depth)]
        while self.tokens and self.tokens[-1] == "|":
            self.tokens.pop()
            tests.append(self.term(depth))
        self.expect("]")
        self.choices = len(tests)
        return lambda features, choice: tests[choice](features, choice)

    def expect(self, token: str) -> None:
        if not self.tokens or self.tokens.pop() != token:
            raise self.wrong()


def _joined(first: _Test, further: Sequence[tuple[bool, _Test]]) -> _Test:
    """Return the test of operands from left to right; each further one is joined by AND or OR."""

    def holds(features: frozenset[str], choice: int) -> bool:
        held = first(features, choice)
        for both, test in further:
            if held == both:
                held = test(features, choice)
        return held

    return holds
