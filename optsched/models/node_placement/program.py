"""The integer program of a node placement."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.fields import LARGEST_FIELD
from optsched.models.node_placement.fields import WHOLE, is_allowed
from optsched.models.node_placement.fragmentation_rows import (
    FragmentationRows,
    Terms,
    devices_of,
    joined,
)
from optsched.models.node_placement.problem import NodePlacement, Placements
from optsched.models.program import Formulation, Program, ProgramBuilder, formulations


class Block(NamedTuple):
    """Variables of a kind, and the indices of each: job, node and device, or job and group."""

    variables: Ints
    of: tuple[Ints, ...]


@formulations.register("node-placement")
class NodePlacementFormulation(Formulation[NodePlacement, Placements]):
    """Equations (1) to (27) of the model's page.

    ``p[j]`` is 1 if job j is placed; ``x[j, n]`` is the number of its chunks on node n, for the
    pairs that its limits allow; ``y[j, n, g]`` is the number of these on device g, if they need a
    share; ``v[n, g]`` is 1 if device g goes to a chunk that needs whole ones; ``z[j, s]`` is 1 if
    job j spans switch s, ``b[j, s]`` if it is in block s; ``e[j, n]`` is 1 if the job has node n to
    itself; ``o[n]`` is 1 if node n, which was idle, is used; ``a[j, t]``
    is 1 if job j is in group t of a level, and ``k[j, t]`` is the number of its segments there.
    Further variables, which measure fragmentation, are those of `FragmentationRows`.
    """

    @cached_property
    def program(self) -> Program:
        """The program, with the variables p, x, y, v, e, z, b, a, k and o."""
        return self._built[0]

    @cached_property
    def _pairs(self) -> tuple[Ints, Ints, Ints]:
        """Jobs and nodes of the pairs (j, n) with variables, and the most chunks there."""
        problem = self.problem
        table = np.zeros((len(problem.chunks), len(problem.free)), dtype=np.int64)
        for job, most in enumerate(table):  # of each node, if no other job is placed
            most[:] = min(problem.chunks[job], problem.most_per_node[job] or LARGEST_FIELD)
            for resource in np.flatnonzero(problem.demand[job]):
                room = problem.free[:, resource] // problem.demand[job, resource]
                np.minimum(most, room, out=most)
            share = int(problem.share[job])
            if share >= WHOLE:
                whole = [row.count(WHOLE) // (share // WHOLE) for row in problem.devices]
                np.minimum(most, np.array(whole, dtype=np.int64), out=most)
            elif share:
                fits = [sum(g // share for g in row) for row in problem.devices]
                np.minimum(most, np.array(fits, dtype=np.int64), out=most)
            most[~is_allowed(problem.kinds, problem.allowed[job], len(most))] = 0
            if job in problem.exclusive:
                most[list(problem.busy)] = 0
        jobs, nodes = np.nonzero(table)
        return jobs, nodes, table[jobs, nodes]

    @cached_property
    def _scales(self) -> tuple[int, dict[str, int]]:
        """What a unit of weight and of each measure of `then` counts in the objective."""
        problem = self.problem
        scale = [math.prod(problem.radices[place:]) for place in range(len(problem.then) + 1)]
        return scale[0], dict(zip(problem.then, scale[1:]))

    @cached_property
    def _fragmentation(self) -> FragmentationRows | None:
        price = self._scales[1].get("fragmentation")
        jobs, nodes, _ = self._pairs
        return None if price is None else FragmentationRows(self.problem, price, jobs, nodes)

    @cached_property
    def _built(self) -> tuple[Program, dict[str, Block]]:
        """The program, and its blocks of variables by letter."""
        problem = self.problem
        jobs, nodes, most = self._pairs
        entries = (4 + len(problem.resources)) * len(jobs)
        if self._fragmentation is not None:
            entries += self._fragmentation.entries
        self.check_entries(entries, "use a solver of this model")
        weight, cost = self._scales
        every_job, every_node = np.arange(len(problem.chunks)), np.arange(len(problem.free))
        builder = self._builder = ProgramBuilder("max")
        p = builder.variables("p_job{}", len(every_job), objective=weight * problem.weights)
        self._names = [f"job{j + 1}_node{n}" for j, n in zip(jobs.tolist(), nodes.tolist())]
        x = builder.variables("x_{}", self._names, upper=most)
        builder.ragged_rows(
            "chunks_job{}", (len(p),), (1, x, jobs), (-problem.chunks, p, every_job), equal=0
        )
        for resource in range(len(problem.resources)):
            needed = problem.demand[jobs, resource]
            needs = needed > 0
            used = needed[needs], x[needs], nodes[needs]
            name, free = f"resource{resource + 1}_node{{}}", problem.free[:, resource]
            builder.ragged_rows(name, (every_node.tolist(),), used, at_most=free)
        blocks = self._blocks = {"p": Block(p, (every_job,)), "x": Block(x, (jobs, nodes))}
        self._add_devices()
        self._add_own_nodes()
        spans = np.array(problem.span)
        in_switch = spans == "switch"
        if problem.switches is not None:
            spanning, price = in_switch | ("switches" in cost), cost.get("switches", 0)
            self._add_groups("z", problem.switches, spanning, in_switch.astype(int), price)
        if problem.blocks is not None:
            held = spans == "block"
            self._add_groups("b", problem.blocks, held, held.astype(int))
        for level, groups in enumerate(problem.groups):
            most = problem.most_groups[:, level]
            self._add_groups(f"a{level + 1}", groups, most > 0, most)
            self._add_segments(level)
        if "nodes" in cost:
            self._add_used_nodes(cost["nodes"])
        if self._fragmentation is not None:
            self._add_fragmentation(self._fragmentation)
        for licence, free in enumerate(problem.licences.tolist()):
            builder.row(f"licence{licence + 1}", (problem.licences_of[:, licence], p), at_most=free)
        return builder.build(), blocks

    def _add_devices(self) -> None:
        problem, builder = self.problem, self._builder
        x, (jobs, nodes) = self._blocks["x"]
        share = problem.share[jobs]
        free, node_of, device_of, first = devices_of(problem)
        names = [f"node{n}_device{g}" for n, g in zip(node_of.tolist(), device_of.tolist())]

        sharing = np.flatnonzero((share > 0) & (share < WHOLE))
        pair, device = joined(sharing, first[nodes[sharing]], first[nodes[sharing] + 1])
        fits = free[device] >= share[pair]
        pair, device = pair[fits], device[fits]
        y = builder.variables(
            "y_{}",
            [f"{self._names[i]}_device{g}" for i, g in zip(pair.tolist(), device_of[device])],
            upper=free[device] // share[pair],
        )
        shared = (1, y, pair), (-1, x[sharing], sharing)
        builder.ragged_rows("shares_{}", (self._names,), *shared, equal=0)
        whole = np.flatnonzero(share >= WHOLE)
        full = np.flatnonzero((free == WHOLE) & np.isin(node_of, nodes[whole]))
        v = builder.variables("v_{}", [names[device] for device in full])
        given = (share[whole] // WHOLE, x[whole], nodes[whole]), (-1, v, node_of[full])
        builder.ragged_rows("whole_node{}", (range(len(problem.free)),), *given, equal=0)
        if len(pair):  # whole devices alone are bounded
            taken = (share[pair], y, device), (WHOLE, v, full)
            builder.ragged_rows("device_{}", (names,), *taken, at_most=free)
        self._blocks["y"] = Block(y, (jobs[pair], nodes[pair], device_of[device]))
        self._blocks["v"] = Block(v, (node_of[full], device_of[full]))

    def _add_own_nodes(self) -> None:
        builder, x, (jobs, nodes, most) = self._builder, self._blocks["x"].variables, self._pairs
        alone = np.isin(jobs, self.problem.exclusive)
        own, at = np.flatnonzero(alone), nodes[alone]
        names = [self._names[pair] for pair in own]
        e = builder.variables("e_{}", names)
        there = range(len(self.problem.free))
        builder.paired_rows("own_{}", names, (1, x[own]), (-most[own], e), at_most=0)
        builder.paired_rows("owns_{}", names, (1, x[own]), (-1, e), at_least=0)
        builder.ragged_rows("owner_node{}", (there,), (1, e, at), at_most=1)
        shared = np.flatnonzero(~alone & np.isin(nodes, at))
        room = np.zeros(len(there), dtype=np.int64)
        np.add.at(room, nodes[shared], most[shared])
        owned = room[at] > 0
        others = (1, x[shared], nodes[shared]), (room[at[owned]], e[owned], at[owned])
        builder.ragged_rows("owned_node{}", (there,), *others, at_most=room)
        self._blocks["e"] = Block(e, (jobs[own], at))

    def _add_groups(
        self, letter: str, labels: Sequence[str], spanning: Flags, most_groups: Ints, price: int = 0
    ) -> None:
        """Add the groups of the jobs `spanning`, at most so many of each job, 0 for any number."""
        there, (job, group), group_of, names = self._pairs_in_groups(labels, spanning)
        z = self._builder.variables(f"{letter}_{{}}", names, objective=-price)
        p, every = self._blocks["p"].variables, np.arange(len(names))
        most, add = self.problem.chunks[job], self._builder.ragged_rows
        add(f"{letter}_span_{{}}", (names,), there, (-most, z, every), at_most=0)
        add(f"{letter}_used_{{}}", (names,), there, (-1, z, every), at_least=0)
        limited, held = np.flatnonzero(most_groups[job]), np.flatnonzero(most_groups)
        if len(limited):
            few = (1, z[limited], job[limited]), (-most_groups[held], p[held], held)
            add(f"{letter}_few_job{{}}", (len(p),), *few, at_most=0)
        self._blocks[letter] = Block(z, (job, group_of, group))

    def _add_segments(self, level: int) -> None:
        """Add the number of segments of each job in each group of a level."""
        letter, size, chunks = f"k{level + 1}", self.problem.segments[:, level], self.problem.chunks
        found = self._pairs_in_groups(self.problem.groups[level], size > 0)
        there, (job, group), group_of, names = found
        k = self._builder.variables(f"{letter}_{{}}", names, upper=chunks[job] // size[job])
        segments = there, (-size[job], k, np.arange(len(names)))
        self._builder.ragged_rows(f"{letter}_segments_{{}}", (names,), *segments, equal=0)
        self._blocks[letter] = Block(k, (job, group_of, group))

    def _pairs_in_groups(
        self, labels: Sequence[str], chosen: Flags
    ) -> tuple[tuple[int, Ints, Ints], Ints, Ints, list[str]]:
        """Return the chunks in pairs (j, t) as entries, these pairs, the groups, and names."""
        x, (jobs, nodes) = self._blocks["x"]
        _, group_of = np.unique(np.array(labels, dtype=str), return_inverse=True)
        mine = np.flatnonzero(chosen[jobs])
        pairs = np.stack([jobs[mine], group_of[nodes[mine]]])
        keys, at = np.unique(pairs, axis=1, return_inverse=True)
        names = [f"job{j + 1}_group{g + 1}" for j, g in keys.T.tolist()]
        return (1, x[mine], at.ravel()), keys, group_of, names

    def _add_used_nodes(self, price: int) -> None:
        builder, x, (_, nodes, most) = self._builder, self._blocks["x"].variables, self._pairs
        idle = np.setdiff1d(nodes, self.problem.busy)
        o = builder.variables("o_node{}", idle.tolist(), objective=-price)
        opening = np.flatnonzero(np.isin(nodes, idle))
        at = np.searchsorted(idle, nodes[opening])
        names = [self._names[pair] for pair in opening]
        builder.paired_rows("open_{}", names, (1, x[opening]), (-most[opening], o[at]), at_most=0)
        used = (1, x[opening], at), (-1, o, np.arange(len(idle)))
        builder.ragged_rows("used_node{}", (idle.tolist(),), *used, at_least=0)
        self._blocks["o"] = Block(o, (idle,))

    def _add_fragmentation(self, rows: FragmentationRows) -> None:
        first, blocks = devices_of(self.problem).first, self._blocks
        x, (jobs, nodes) = blocks["x"]
        y, (of_job, node, device) = blocks["y"]
        v, (whole_node, whole_device) = blocks["v"]
        on_devices = Terms(
            np.concatenate((self.problem.share[of_job], np.full(len(v), WHOLE))),
            np.concatenate((y, v)),
            np.concatenate((first[node] + device, first[whole_node] + whole_device)),
        )
        e, (_, owned) = blocks["e"]
        own = Terms(np.ones_like(e), e, owned)
        rows.add(self._builder, Terms(np.ones_like(x), x, nodes), jobs, on_devices, own)

    def decode(self, x: Ints) -> Placements:
        """Return the placements; chunks on whole devices get those of their node in order."""
        problem, (_, blocks) = self.problem, self._built

        def stated(letter: str) -> Iterator[tuple[int, ...]]:
            """Yield the values other than 0 in a block, each with its indices."""
            variables, of = blocks[letter]
            values = np.asarray(x)[variables]
            return zip(*(each[values != 0].tolist() for each in (values, *of)))

        shares: dict[tuple[int, int], list[int]] = {}
        for count, job, node, device in stated("y"):
            shares.setdefault((job, node), []).extend([device] * count)
        whole: dict[int, list[int]] = {}
        for _, node, device in stated("v"):
            whole.setdefault(node, []).append(device)
        nodes: list[list[int]] = [[] for _ in problem.chunks]
        devices: list[list[tuple[int, ...]]] = [[] for _ in problem.chunks]
        for count, job, node in stated("x"):
            share = int(problem.share[job])
            nodes[job] += [node] * count
            if share >= WHOLE:
                left = whole.get(node, [])
                for _ in range(count):
                    devices[job].append(tuple(left[: share // WHOLE]))
                    del left[: share // WHOLE]
            elif share:
                chosen = [(device,) for device in shares.get((job, node), [])]
                devices[job] += (chosen + [()] * count)[: max(count, len(chosen))]
            else:
                devices[job] += [()] * count
        return Placements(tuple(map(tuple, nodes)), tuple(map(tuple, devices)))

    def encode(self, solution: Placements) -> Ints:
        """Return the vector of placements."""
        problem, (program, blocks) = self.problem, self._built
        chunks = np.zeros((len(problem.chunks), len(problem.free)), dtype=np.int64)
        on_devices: Counter[tuple[int, ...]] = Counter()
        for job, (at, devices) in enumerate(zip(solution.nodes, solution.devices)):
            of = () if problem.share[job] >= WHOLE else (job,)
            for node, chosen in zip(at, devices):
                chunks[job, node] += 1
                on_devices.update((*of, node, device) for device in chosen)
        found = np.zeros(program.num_variables, dtype=np.int64)
        for letter, (variables, indices) in blocks.items():
            values: Any
            if letter == "p":
                values = chunks.any(axis=1)
            elif letter == "o":
                values = chunks[:, indices[0]].any(axis=0)
            elif letter in ("x", "e"):
                values = chunks[indices] if letter == "x" else chunks[indices] > 0
            elif letter in ("y", "v"):
                keys = zip(*(each.tolist() for each in indices))
                values = [on_devices[key] for key in keys]
            else:
                jobs, group_of, group = indices
                in_groups = np.zeros_like(chunks)
                np.add.at(in_groups.T, group_of, chunks.T)
                values = in_groups[jobs, group] > 0
                if letter.startswith("k"):
                    size = problem.segments[jobs, int(letter[1:]) - 1]
                    values = in_groups[jobs, group] // size
            found[variables] = values
        if self._fragmentation is not None:
            self._fragmentation.complete(found)
        return found
