"""What workers do for the server: plan, replay, predict starts, ask what-if, gather the view of a run, explain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stretto.api import plan
from stretto.api.documents import cluster_in
from stretto.api.inputs import PROJECT_CLUSTER
from stretto.api.options import ReplayRules
from stretto.api.plan import PlanResult, planner_of
from stretto.api.rack import rack, weights_state
from stretto.api.replay import check_rules, measured_replay
from stretto.core.graph import TaskGraph
from stretto.core.pool import Pool
from stretto.core.problem import Problem
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.core.workload import Workload
from stretto.errors import InvalidInput
from stretto.reports.page.view import compare_view, explained, run_view
from stretto.reports.page.view_types import JsonObject
from stretto.reports.problem import has_problem, problem_of
from stretto.reports.record import Rows, record_plan, recording
from stretto.reports.replay import record_replay, replay_of, same_jobs
from stretto.reports.simulated import compared, contention_of
from stretto.reports.strict_json import dumps, plain
from stretto.runlog import RunInfo, RunLog
from stretto.runlog.record import Json
from stretto.web import inputs
from stretto.web.commands import plan_command, rack_command, replay_command
from stretto.web.starts import starts_of

Request = Mapping[str, Json]
Tell = Callable[[JsonObject], None]


def warm() -> None:
    """Load the compiled code that most requests need, so that the first one does not wait for it."""
    plan("workload:random-dag?num_tasks=8&seed=0", "cpu:2")


class Desk:
    """Does the work of one process, one request after the other."""

    def __init__(self, runs_path: str | None) -> None:
        self.log = RunLog.open(runs_path)
        self._kinds: dict[str, Callable[[Request, Tell], Json]] = {
            "plan": self.plan,
            "replay": self.replay,
            "what-if": self.what_if,
            "when": lambda request, tell: starts_of(request),
            "view": lambda request, tell: dumps(run_view(self.log, request["run"])).encode(errors="replace"),
            "compare": lambda request, tell: dumps(compare_view(self.log, request["runs"])).encode(errors="replace"),
            "explain": lambda request, tell: explained(self.log, request["run"], request["what"]),
        }

    def do(self, request: Request, tell: Tell) -> Json:
        """Do what a request asks for; ``tell`` hears the id of the run as soon as there is one."""
        return self._kinds[request["kind"]](request["body"], tell)

    def plan(self, request: Request, tell: Tell) -> JsonObject:
        """Plan a graph, and keep the plan as a run."""
        params = inputs.checked(request["policy_params"], "policy_params")
        planner_of(request["policy"], params)
        work = inputs.graph_of(request)
        problem = Problem.of(work, cluster_in(_cluster_text(work, request["cluster"])))
        sources = {"graph_source": inputs.graph_source(request), "cluster_source": request["cluster"]}
        return self._plan(problem, request, sources, tell)

    def _plan(self, problem: Problem, request: Request, sources: JsonObject, tell: Tell) -> JsonObject:
        settings = {
            "policy": request["policy"],
            "graph": sources["graph_source"] or problem.graph.name,
            "cluster": problem.cluster.name,
            "seed": request["seed"],
            "time_limit_s": request["time_limit_s"],
            "contention": request["contention"],
            "command": plan_command(request, sources),
            **{key: sources[key] for key in ("parent",) if key in sources},
        }
        with recording(self.log, "plan", request["name"] or problem.graph.name, settings) as run:
            tell({"run_id": run.id})
            with Rows(run, "progress") as rows:
                result = _evaluated(problem, request, rows)
            document = result.to_json() | sources
            record_plan(run, result, document)
        return document | {"run_id": run.id}

    def replay(self, request: Request, tell: Tell) -> JsonObject:
        """Replay jobs, and keep what became of them as a run."""
        rules = {key: request[key] for key in ("backfill", "estimates", "pool_rule", "kill")} | {"tie": "batch"}
        check_rules(request["strategy"], **rules)
        trace = inputs.trace_of(request)
        machine = inputs.machine_of(trace, request["procs"], request["pools"])
        return self._replay(trace, machine, request, rules, {"trace": inputs.trace_source(request)}, tell)

    def _replay(
        self,
        trace: Trace,
        machine: int | Sequence[Pool] | Site,
        request: Request,
        rules: JsonObject,
        more: JsonObject,
        tell: Tell,
    ) -> JsonObject:
        strategy, seed = request["strategy"], request["seed"]
        settings = {"strategy": strategy, "seed": seed, "procs": machine if isinstance(machine, int) else None}
        settings |= {**rules, "pools": request["pools"], **more}
        settings["command"] = replay_command(settings, request, more.get("trace"))
        with recording(self.log, "replay", request["name"] or trace.name, settings) as run:
            tell({"run_id": run.id})
            how = ReplayRules(**rules)
            found = measured_replay(trace, machine, strategy=strategy, rules=how, seed=seed, timed=False, run=run)
            summary = record_replay(run, found)
        result = found.result
        spec = {"trace": trace.name, **result.spec, "num_procs": sum(pool.num_procs for pool in result.pools)}
        return {"run_id": run.id, **plain(spec), **summary, "num_dropped": result.num_dropped}

    def what_if(self, request: Request, tell: Tell) -> JsonObject:
        """Decide the problem of a run otherwise, and set the two side by side."""
        info = self.log.run(request["run"])
        is_plan = info.kind not in ("rack", "replay") and has_problem(self.log, info.id)
        other = self._other_rack if info.kind == "rack" else self._other_plan if is_plan else self._other_replay
        after = self.log.run(other(info, request, tell)["run_id"])
        found: JsonObject = {"run_id": after.id}
        for name, one in (("before", info), ("after", after)):
            found[name] = {"run_id": one.id, "settings": dict(one.settings), "summary": dict(one.summary)}
        if is_plan:
            both = compared(self.log, info, after, is_same_problem=request["cluster"] is None)
            found = {**found, **both, **{name: {**found[name], **both[name]} for name in ("before", "after")}}
        return found

    def _other_plan(self, info: RunInfo, request: Request, tell: Tell) -> JsonObject:
        problem = problem_of(self.log, info.id)
        settings = info.settings
        if request["cluster"] is not None:
            problem = Problem.of(problem.graph, cluster_in(request["cluster"]))
        policy = request["policy"] or settings.get("policy") or "heft"
        planner_of(policy, inputs.checked(request["policy_params"], "policy_params"))
        asked = {**request, "policy": policy, "contention": contention_of(info), "discipline": None}
        source = settings.get("graph")
        sources = {
            "graph_source": source if isinstance(source, str) and ":" in source else None,
            "cluster_source": request["cluster"] or settings.get("cluster"),
            "parent": info.id,
        }
        return self._plan(problem, asked, sources, tell)

    def _other_rack(self, info: RunInfo, request: Request, tell: Tell) -> JsonObject:
        case, by = str(info.settings.get("cluster")), request["policy"] or str(info.settings.get("policy"))
        stream, seed = (int(info.settings.get(name) or 0) for name in ("stream", "seed"))
        settings = {"policy": by, "cluster": case, "stream": stream, "seed": seed, "parent": info.id}
        if by == "symphony":
            settings["weights"] = weights_state(None)
        with recording(self.log, "rack", case, {**settings, "command": rack_command(settings)}) as run:
            tell({"run_id": run.id})
            run.finish("done", rack(case, by, stream=stream, seed=seed, run=run).logged)
        return {"run_id": run.id}

    def _other_replay(self, info: RunInfo, request: Request, tell: Tell) -> JsonObject:
        result = replay_of(self.log, info.id)
        if result is None:
            raise InvalidInput("has neither a plan nor a replay to compare with", field=f"run {info.id}")
        trace, machine = same_jobs(result)
        spec, settings = result.spec, info.settings
        names = ("backfill", "estimates", "kill", "tie", "pool_rule", "wait_usd_per_hour")
        rules = {"backfill": "easy", "pool_rule": "cheapest", **{name: spec[name] for name in names if name in spec}}
        rules |= {name: request[name] for name in names if request.get(name) is not None}
        asked = {**request, "strategy": request["strategy"] or str(spec["strategy"])}
        asked["procs"] = machine if isinstance(machine, int) and request["pools"] is None else None
        if request["pools"] is not None:
            machine = inputs.machine_of(trace, None, request["pools"])
        elif asked["procs"] is None:
            asked["pools"] = settings.get("pools")
        check_rules(asked["strategy"], **rules)
        more = {"trace": settings.get("trace"), "parent": info.id}
        return self._replay(trace, machine, asked, rules, more, tell)


def _cluster_text(work: TaskGraph | Workload, given: str | None) -> str:
    if given is not None:
        return given
    if getattr(work, "resources", None) is None:
        raise InvalidInput("name the machines, for example cpu:8x1.0,gpu:2x5.0", field="cluster")
    return PROJECT_CLUSTER  # a project brings its own resources


def _evaluated(problem: Problem, request: Request, rows: Rows) -> PlanResult:
    params = inputs.checked(request["policy_params"], "policy_params")
    return plan(
        problem,
        policy=request["policy"],
        params=params,
        seed=request["seed"],
        time_limit_s=request["time_limit_s"],
        discipline=request["discipline"],
        contention=request["contention"],
        num_threads=1,
        on_progress=rows.progress,
    )
