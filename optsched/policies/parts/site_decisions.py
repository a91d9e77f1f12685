"""Decisions on a site by kernels that policies in Python call as well."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from optsched.simulator.actions import Action, Start, Wake
from optsched.simulator.compiled_decisions import CompiledDecisions

if TYPE_CHECKING:
    from optsched.simulator._core import News


class SiteDecisions(CompiledDecisions):
    """Decisions of kernels on `tables`, which include a log of the nodes that each job held.

    They state starts and wakes. `jobs`: number of jobs of the trace.
    """

    tables: Any

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def resources(self) -> Sequence[str]:
        """Return the nodes that each job held, as interval sets."""
        from optsched.policies.parts._site_log import texts

        return texts(self.tables.log)

    def _stated(self) -> Iterator[Action]:
        """Yield the actions that a kernel has stated."""
        from optsched.simulator._core import N_ACTIONS, START

        news = self._news
        stated = slice(news.counts.item(N_ACTIONS))
        news.counts[N_ACTIONS] = 0
        columns = (column[stated].tolist() for column in (news.kind, news.job, news.value))
        for kind, job, value in zip(*columns):
            yield Start(job, self.place(job, value)) if kind == START else Wake(value)

    @functools.cached_property
    def _news(self) -> News:
        from optsched.simulator._core import new_news

        return new_news(self._jobs)
