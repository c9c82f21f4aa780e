"""Place the operations of a JAX function on devices: trace it, cost it, plan it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from stretto import catalog
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.errors import InvalidInput, StrettoError
from stretto.files.cost_table import MeasuredCosts
from stretto.files.graphs.jax_trace import JaxOptions, JaxProgram, trace_function
from stretto.files.graphs.roofline import costs_of
from stretto.graphs.evaluate import Setting, evaluate, planner_named
from stretto.reports.place_devices import Devices
from stretto.reports.placement import Placement
from stretto.runlog.record import Json

#: A traced function may take and return anything that JAX can trace.
Argument: TypeAlias = object
Function: TypeAlias = Callable[..., Argument]

#: Tried in this order when nobody names a policy; the first that is in the catalog is taken.
DEFAULT_POLICIES = ("doppler", "heft")


def chosen_policy(policy: str | None) -> str:
    """Return the policy that is meant; by default the first of ``DEFAULT_POLICIES`` that there is."""
    return policy if policy is not None else next(name for name in DEFAULT_POLICIES if name in catalog.PLANNERS)


def place_function(
    fn: Function,
    args: Sequence[Argument],
    kwargs: Mapping[str, Argument],
    devices: Devices,
    policy: str | None,
    params: Mapping[str, Json] | None,
    budget: Budget,
    setting: Setting,
    options: JaxOptions,
    table: MeasuredCosts | None = None,
) -> Placement:
    """Trace a function on example arguments and plan its operations on devices."""
    chosen = chosen_policy(policy)
    planner_named(chosen, params)  # a misspelt name is found before anything is traced
    cluster = devices.cluster if table is None else table.linked(devices.cluster)
    program = _trace(fn, args, kwargs, options)
    models, basis = costs_of(cluster, table.while_busy() if table is not None else None)
    graph = program.graph(models, basis)
    result = evaluate(Problem.of(graph, cluster), chosen, params=params, budget=budget, setting=setting)
    remarks = devices.notes if table is None else ()
    busy_factor = table.busy_factor if table is not None else 1.0
    return Placement(result, program, devices.of_jax, remarks, busy_factor)


def _trace(fn: Function, args: Sequence[Argument], kwargs: Mapping[str, Argument], options: JaxOptions) -> JaxProgram:
    if not callable(fn):
        raise InvalidInput(f"{type(fn).__name__} is not a function that can be called", field="fn")
    name = getattr(fn, "__name__", type(fn).__name__)
    try:
        program = trace_function(fn, args, kwargs, options)
    except StrettoError:
        raise
    except Exception as error:  # whatever the function, or JAX on its behalf, finds wrong with the arguments
        reason = " ".join(str(error).split())[:300]
        raise InvalidInput(
            f"cannot be traced on {_shapes(args, kwargs)}: {type(error).__name__}: {reason}", field=f"fn {name}"
        ) from error
    if not program.operations:
        raise InvalidInput("it has no operations that could be placed", field=f"fn {name}")
    return program


def _shapes(args: Sequence[Argument], kwargs: Mapping[str, Argument]) -> str:
    """Describe example arguments as their author would: types and shapes."""

    def one(value: Argument) -> str:
        shape = getattr(value, "shape", None)
        if shape is None:
            return type(value).__name__
        return f"{getattr(value, 'dtype', '?')}[{','.join(map(str, shape))}]"

    words = [one(value) for value in args] + [f"{key}={one(value)}" for key, value in kwargs.items()]
    return f"({', '.join(words)})"
