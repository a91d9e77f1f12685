"""Two policies that the paper speaks of, and optsched has not by that name."""

from dataclasses import dataclass
from typing import ClassVar

from optsched.policies.easy import Easy
from optsched.policies.window import Window
from optsched.simulator.policy import Answers


@dataclass
class Ticks(Easy):
    """Default as the paper runs it: EASY that decides every `interval` seconds, as the window."""

    interval: float = 30.0


@dataclass
class Exchange(Window):
    """The window, which counts how often Greedy with the exchange finds a best packing, too."""

    models: ClassVar = {"window-mkp": Answers("branch-and-bound", "greedy-exchange")}
