"""The log that is run, and its machine."""

from __future__ import annotations

from typing import NamedTuple

from optsched.studies.li_2015.published import LARGE, NODES_PER_ROUTER, TORUS


class Site(NamedTuple):
    """A log, and its machine as each world sees it.

    Parameters
    ----------
    name : str
        As tables name the log.
    file : str
        The log.
    jobs : int
        How many of the cleaned log are run, from the first on.
    processors : int
        Of the machine, in all of its forms.
    torus, smp, cluster : str
        The machine as a torus of routers with a node each, as nodes that share resources, and as
        nodes with a memory for files.
    cores : int
        Of a node of the cluster; larger jobs are split.
    large_from : int
        Jobs of so many processors count as large.
    """

    name: str
    file: str
    jobs: int
    processors: int
    torus: str
    smp: str
    cluster: str
    cores: int
    large_from: int

    @property
    def large_boxes(self) -> int:
        """Jobs of more processors may have others migrated: the paper's share of the machine."""
        x, y, z = TORUS
        return LARGE * self.processors // (x * y * z * NODES_PER_ROUTER)


BLUE = Site(
    name="SDSC-BLUE",
    file="SDSC-BLUE-2000-4.2-cln.swf.gz",
    jobs=5_000,
    processors=1152,
    torus="torus:8x12x12",
    smp="smp:288x4",
    cluster="cluster:144x8",
    cores=8,
    large_from=128,
)
SAMPLE = Site(
    name="the bundled sample",
    file="samples/sample-256.swf",
    jobs=300,
    processors=256,
    torus="torus:4x8x8",
    smp="smp:64x4",
    cluster="cluster:32x8",
    cores=8,
    large_from=64,
)
"""The quick look: a generated log that is at hand everywhere."""


def site_of(*, quick: bool) -> Site:
    """Return the log that is run, and its machine."""
    return SAMPLE if quick else BLUE
