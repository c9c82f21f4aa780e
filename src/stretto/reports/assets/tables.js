"use strict";
// Tables, the key figures of a run, and explanations of placements.

// heads: names, or [name, class]; a row is a list of cells, text or nodes.
Stretto.table = function (heads, rows, chosen) {
  const node = Stretto.node,
    kind = heads.map(head => (Array.isArray(head) ? head[1] : null));
  return node(
    "div",
    { class: "table", tabindex: "0" },
    node(
      "table",
      {},
      node(
        "thead",
        {},
        node(
          "tr",
          {},
          ...heads.map((head, k) => node("th", { scope: "col", class: kind[k] }, Array.isArray(head) ? head[0] : head)),
        ),
      ),
      node(
        "tbody",
        {},
        ...rows.map((row, r) =>
          node(
            "tr",
            { class: chosen === r ? "chosen" : null },
            ...row.map((cell, k) => node("td", { class: kind[k] }, cell)),
          ),
        ),
      ),
    ),
  );
};

Stretto.explanation = function (found) {
  const isWhole = found.alternatives.some(one => typeof one.makespan_s === "number");
  const rows = found.alternatives.map(one => [
    one.device + (one.is_chosen ? "  (chosen)" : ""),
    Stretto.seconds(one.data_ready_s, 5),
    one.waits_for || "–",
    Stretto.seconds(one.start_s, 5),
    Stretto.seconds(one.finish_s, 5),
    ...(isWhole ? [typeof one.makespan_s === "number" ? Stretto.seconds(one.makespan_s, 6) : "–"] : []),
  ]);
  const heads = [
    "device",
    ["data ready", "number"],
    "last data from",
    ["could start", "number"],
    ["could finish", "number"],
    ...(isWhole ? [["makespan then", "number"]] : []),
  ];
  const shown = rows.slice(0, 12),
    rest = found.alternatives.length - shown.length;
  const chosen = found.alternatives.findIndex(one => one.is_chosen);
  if (chosen >= shown.length) shown.push(rows[chosen]);
  return Stretto.node(
    "div",
    {},
    Stretto.node("h3", {}, `Why ${found.task} runs on ${found.device}`),
    Stretto.node("p", {}, found.reason),
    Stretto.table(heads, shown, chosen < 12 ? chosen : shown.length - 1),
    rest > 0 ? Stretto.node("p", { class: "faint small" }, `and ${rest} devices that would finish later`) : null,
  );
};

// The key figures of a run: [name, text, small text].
Stretto.figures = function (view) {
  const summary = view.summary,
    found = [],
    has = name => summary[name] !== undefined && summary[name] !== null;
  const add = (name, text, small) => found.push([name, text, small]);
  const addMean = (name, figure, format) => {
    const p99 = has("p99_" + figure) ? "p99 " + format(summary["p99_" + figure]) : "";
    if (has("mean_" + figure)) add(name, format(summary["mean_" + figure]), p99);
  };
  const isTimed = summary.is_timed || view.settings?.is_timed;
  const isCut = view.kind === "run" && ["failed", "interrupted"].includes(view.status);
  if (view.status === "failed") add("outcome", "failed", Stretto.failure(view));
  else if (isCut) add("outcome", "interrupted");
  if (has("makespan_s") && !isCut)
    add("makespan", Stretto.seconds(summary.makespan_s, 5), isTimed ? "timed run: tasks sleep instead of computing" : "");
  else if (isTimed) add("engine", "timed", "tasks sleep instead of computing");
  if (has("predicted_s"))
    add("predicted", Stretto.seconds(summary.predicted_s, 5), isCut ? "for the complete run, by the simulator" : "by the simulator");
  if (has("lower_bound_s")) add("lower bound", Stretto.seconds(summary.lower_bound_s, 5), summary.bound_method);
  if (has("gap"))
    add(
      "gap",
      Stretto.isOptimal(summary.gap) ? "0 %" : Stretto.gap(summary.gap),
      summary.verdict ||
        (Stretto.isOptimal(summary.gap) ? "proven optimal" : `at most ${Stretto.percent(summary.gap)} above optimal`),
    );
  addMean("mean bounded slowdown", "bounded_slowdown", Stretto.number);
  if (has("mean_wait_s"))
    add("mean wait", Stretto.seconds(summary.mean_wait_s, 3), "longest " + Stretto.seconds(summary.max_wait_s, 3));
  const use = summary.utilization;
  if (use > 1 + 1e-6)
    add("tasks at a time", Stretto.number(use, 3)); // of a project, whose tasks share one set of resources
  else if (use !== undefined) add("utilization", Stretto.percent(use));
  if (summary.cost_usd > 0) add("cost", Stretto.usd(summary.cost_usd));
  if (has("num_tasks"))
    add(
      "tasks",
      (view.status !== "done" && Stretto.numDone(summary)) || summary.num_tasks.toLocaleString("en"),
      summary.num_devices
        ? `on ${summary.num_devices.toLocaleString("en")} device${summary.num_devices > 1 ? "s" : ""}`
        : "",
    );
  addMean("mean job completion", "completion_s", Stretto.seconds);
  if (has("belief_error"))
    add(
      "load estimate error",
      Stretto.percent(summary.belief_error),
      has("counter_error") ? "of capacity; counters alone: " + Stretto.percent(summary.counter_error) : "of capacity",
    );
  if (has("coverage_95")) add("95 % intervals", Stretto.percent(summary.coverage_95), "contain the real load");
  if (has("num_decisions")) add("decisions", summary.num_decisions.toLocaleString("en"));
  if (has("num_jobs")) add("jobs", summary.num_jobs.toLocaleString("en"));
  for (const name of ["generations", "iterations"]) if (has(name)) add(name, summary[name].toLocaleString("en"));
  if (has("episodes")) add("episodes", summary.episodes.toLocaleString("en"));
  if (has("plan_seconds") && !has("train_seconds")) add("planning time", Stretto.seconds(summary.plan_seconds, 3));
  if (has("train_seconds")) add("training time", Stretto.seconds(summary.train_seconds, 3));
  return found;
};
Stretto.factList = view =>
  Stretto.node(
    "div",
    {},
    Stretto.node(
      "dl",
      { class: "facts" },
      ...Stretto.figures(view).map(([name, text, small]) =>
        Stretto.node(
          "div",
          {},
          Stretto.node("dt", {}, name),
          Stretto.node("dd", {}, text, small ? Stretto.node("small", {}, " " + small) : null),
        ),
      ),
    ),
    ...(view.summary.notes || []).map(note => Stretto.node("p", { class: "faint small" }, note)), // what it assumes
  );
