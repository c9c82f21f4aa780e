"""``stretto.nextflow``: a Nextflow run as a task graph, and a configuration with what its processes need."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stretto.api.inputs import ClusterLike, cluster_of
from stretto.core.answers.facts import nextflow_answer
from stretto.core.cluster import Cluster, Device
from stretto.core.cluster_shorthand import BARE_KINDS
from stretto.core.graph import TaskGraph
from stretto.errors import InvalidInput
from stretto.files.document import read_document
from stretto.files.graphs.nextflow.config import ProcessPlace, write_config
from stretto.files.graphs.nextflow.graph import EDGES, nextflow_graph
from stretto.files.graphs.nextflow.needs import ProcessNeeds, process_needs
from stretto.files.graphs.nextflow.trace import read_trace_rows
from stretto.files.load import write_atomically

#: The directives that can name a kind of machine.
DIRECTIVES = ("machineType", "queue")


@dataclass(frozen=True, eq=False)
class NextflowRun:
    """What a trace says of a run.

    Attributes
    ----------
    graph
        The task graph; None where nothing was named that tells the edges.
    edges
        Where the edges come from; ``assumed ...`` where tasks were matched by rule.
    config
        The text of a ``nextflow.config``.
    """

    needs: tuple[ProcessNeeds, ...]
    quantile: float
    config: str
    graph: TaskGraph | None = None
    edges: str | None = None

    @property
    def answer(self) -> str:
        """The result, in one sentence."""
        return nextflow_answer(self)

    def save_config(self, path: str | Path) -> None:
        """Write the configuration, whole or not at all."""
        write_atomically(Path(path), self.config.encode())


def nextflow(
    trace: str | Path,
    *,
    work: str | Path | None = None,
    dag: str | Path | None = None,
    quantile: float = 0.95,
    cluster: ClusterLike | None = None,
    directive: str = "machineType",
) -> NextflowRun:
    """Read the trace of a Nextflow run: its task graph, and what each process should ask for.

    Parameters
    ----------
    work, dag
        The work directory of the run; or a WfFormat file of it, or its process graph (``-with-dag``, DOT or Mermaid).
        Without them there is no graph.
    quantile
        Of the memory and time of the next task; never less than what was observed.
    cluster
        Nodes to choose from: each process gets the cheapest that it fits, and ``maxForks`` how many fit at once.
    directive
        What names a node in the configuration: ``machineType`` or ``queue``.

    Examples
    --------
    >>> import stretto, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "trace.txt"
    >>> head = "task_id\\thash\\tname\\tstatus\\trealtime\\tpeak_rss\\t%cpu\\tcpus\\n"
    >>> _ = file.write_text(head + "1\\tab/cdef12\\tMAP (s1)\\tCOMPLETED\\t1m 12s\\t1.2 GB\\t180%\\t8\\n")
    >>> stretto.nextflow(file).needs[0].cpus
    2
    """
    if directive not in DIRECTIVES:
        raise InvalidInput(f"{directive!r} is not one of {', '.join(DIRECTIVES)}", field="directive")
    document = read_document(trace)
    needs = process_needs(read_trace_rows(document), quantile)
    places = _places(needs, cluster_of(cluster), directive) if cluster is not None else {}
    text = write_config(needs, quantile, Path(document.name).name, places)
    graph = None
    if work is not None or dag is not None:
        graph = nextflow_graph(document, work=Path(work) if work else None, dag=Path(dag) if dag else None)
    return NextflowRun(tuple(needs), quantile, text, graph, str(graph.meta[EDGES]) if graph is not None else None)


def _places(needs: list[ProcessNeeds], cluster: Cluster, directive: str) -> dict[str, ProcessPlace]:
    """Return the cheapest node for each process, and how many of its tasks fit at once."""
    plain = next((device for device in cluster.devices if device.kind in BARE_KINDS), None)
    if plain is not None:
        raise InvalidInput(
            f"{plain.name} is of the kind {plain.kind!r}: let the kind of a node be what {directive} calls it,"
            ' such as kind = "n2-standard-8"',
            field="cluster",
        )
    places = {}
    for item in needs:
        counts = [_num_fitting(item, device) for device in cluster.devices]
        fitting = [device for device, count in zip(cluster.devices, counts, strict=True) if count > 0]
        if not fitting:
            raise InvalidInput(
                f"process {item.process!r} needs {item.cpus or 1} CPUs and {(item.memory_bytes or 0) / 2**30:.1f} GB,"
                " which no node has",
                field="cluster",
            )
        best = min(fitting, key=lambda device: (device.price_usd_per_hour, device.cores, device.memory_bytes))
        kind = best.kind
        is_queue = directive == "queue"
        places[item.process] = ProcessPlace(
            None if is_queue else kind,
            kind if is_queue else None,
            sum(count for device, count in zip(cluster.devices, counts, strict=True) if device.kind == kind),
        )
    return places


def _num_fitting(item: ProcessNeeds, device: Device) -> int:
    """Return how many tasks of a process fit on a device at once; one at most where it does not pack."""
    if not device.packs:
        return int((item.cpus or 1) <= device.cores and (item.memory_bytes or 0.0) <= device.memory_bytes)
    by_cores = device.cores // max(item.cpus or 1, 1)
    by_memory = device.memory_bytes // item.memory_bytes if item.memory_bytes else by_cores
    return int(min(by_cores, by_memory))
