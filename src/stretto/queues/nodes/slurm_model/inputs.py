"""What the model of Slurm reads of a replay on nodes, with nodes in the order of the site, as Slurm numbers them."""

from __future__ import annotations

from stretto.queues.nodes.setup import NodeSetup
from stretto.queues.nodes.shapes import Shapes
from stretto.queues.nodes.slurm_model.node_space import NodeMask


class SlurmInputs:
    """A prepared replay; the compiled kernels have their nodes by weight, Slurm has them as its configuration says."""

    def __init__(self, setup: NodeSetup) -> None:
        places, q = setup.site_arrays, setup.arrays
        self.setup, self.site, self.shapes = setup, setup.site, setup.shapes
        self.capacity: list[list[int]] = Shapes(setup.site).capacity.tolist()
        self.weight = [node.weight for node in setup.site.nodes]
        order = places.order.tolist()
        #: The nodes that each shape may use.
        self.allowed: list[NodeMask] = [
            sum(1 << order[k] for k, has in enumerate(places.in_set[node_set]) if has)
            for node_set in setup.shapes.node_set.tolist()
        ]
        #: When nodes are closed: node, from, until.
        self.closings = [
            (order[k], float(places.closed_from[i]), float(places.closed_until[i]))
            for k in range(len(order))
            for i in range(places.closed_ptr[k], places.closed_ptr[k + 1])
        ]
        self.component_ptr, self.kind = q.component_ptr, q.kind

    def num_components(self, job: int) -> int:
        """Return how many components a job has; more than one where it is heterogeneous."""
        kind = self.kind[job]
        return int(self.component_ptr[kind + 1] - self.component_ptr[kind])

    def alternatives(self, job: int, component: int = 0) -> list[int]:
        """Return the shapes of a component of a job, the preferred first."""
        q = self.setup.arrays
        component += int(self.component_ptr[self.kind[job]])
        found: list[int] = q.alternative[q.alternative_ptr[component] : q.alternative_ptr[component + 1]].tolist()
        return found
