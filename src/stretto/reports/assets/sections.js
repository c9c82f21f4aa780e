"use strict";
// The sections of a run: each appears when there is something to show, and is updated in place when there is more.
// explain(task) gives a promise of an explanation, or null where there is none to be had.
Stretto.sections = function (root, options) {
  const parts = new Map(),
    node = Stretto.node;
  let rank = 0;
  function section(key, title, note) {
    if (!parts.has(key)) {
      const text = node("p", {}),
        body = node("div", {});
      const id = (options.prefix || "") + key;
      const made = node(
        "section",
        { id, "aria-labelledby": id + "-title" },
        node("header", {}, node("h2", { id: id + "-title" }, title), text),
        body,
      );
      // What comes to be known late still stands in its usual place.
      const next = [...parts.values()].filter(part => part.rank > rank).sort((a, b) => a.rank - b.rank)[0];
      root.insertBefore(made, next ? next.made : null);
      parts.set(key, { made, rank, body, text, heading: made.querySelector("h2"), chart: null });
    }
    const part = parts.get(key);
    part.heading.textContent = title;
    part.text.textContent = note || "";
    return part;
  }
  function chart(key, title, note, make, data) {
    const part = section(key, title, note);
    if (part.chart) part.chart.update(data);
    else part.chart = make(part.body, data);
    return part;
  }

  function gantt(view) {
    if (!view.gantt || !view.gantt.task.length) return;
    const title =
      view.is_planned || view.kind === "plan" || view.kind === "train"
        ? "Planned schedule"
        : view.status === "running"
          ? "Executed so far"
          : "Executed schedule";
    // A task that failed is tried again: each attempt is a bar of its own.
    const bars = view.gantt.task.length,
      count = view.gantt.num_tasks || new Set(view.gantt.task).size,
      rows = view.gantt.rows.length;
    const counted =
      `${count.toLocaleString("en")} task${count === 1 ? "" : "s"}` +
      (view.gantt.num_tasks && bars > count ? `, ${bars.toLocaleString("en")} attempts` : "");
    const label = `Gantt chart: ${counted} in ${rows} rows, ${Stretto.seconds(view.gantt.makespan)} long`;
    const part = chart(
      "gantt",
      title,
      counted,
      (body, data) => {
        const panel = node("div", { "aria-live": "polite" });
        const made = Stretto.gantt(body, data, {
          label,
          onPick:
            options.explain && view.can_explain
              ? task => explain(panel, task)
              : options.output && view.has_output
                ? (_, name) => output(panel, name)
                : null,
          picks: view.can_explain ? "explains its placement" : "shows its output",
        });
        body.append(panel);
        return made;
      },
      view.gantt,
    );
    part.body.querySelector("canvas").setAttribute("aria-label", label);
  }
  function durations(view) {
    const found = view.gantt;
    if (!found || found.legend.filter(([name]) => name).length < 2) return;
    const part = section("durations", "Duration of tasks by " + (found.colored_by || "category"), "");
    Stretto.durations(part.body, found);
  }
  function tasks(view) {
    const drawing = parts.get("gantt");
    if (!drawing) return;
    const onShow = i => {
      drawing.made.scrollIntoView({ block: "start" });
      drawing.chart.find(i);
      drawing.chart.pick(i);
    };
    chart(
      "tasks",
      "Tasks",
      "sort by any column; a name shows the task in the chart",
      (body, data) => Stretto.sortedTable(body, data, { what: "task", file: (view.name || view.id) + "-tasks.csv" }),
      Stretto.taskRows(view.gantt, onShow),
    );
  }
  async function explain(panel, task) {
    try {
      panel.replaceChildren(Stretto.explanation(await options.explain(task)));
    } catch (error) {
      panel.replaceChildren(node("p", { class: "note error" }, String(error.message || error)));
    }
  }
  // What a task has written to stdout and stderr.
  async function output(panel, name) {
    try {
      const found = await options.output(name);
      panel.replaceChildren(
        node("h3", {}, "Output of " + name),
        ...found.pieces.map(piece =>
          node(
            "div",
            {},
            node("p", { class: "faint small" }, `${piece.stream}, attempt ${piece.attempt}` + (piece.is_cut ? ", the end of it" : "")),
            node("pre", { class: "output", tabindex: "0" }, piece.text),
          ),
        ),
        found.pieces.length ? "" : node("p", { class: "faint" }, "This task has written nothing."),
      );
    } catch (error) {
      panel.replaceChildren(node("p", { class: "note error" }, String(error.message || error)));
    }
  }
  function use(view) {
    const data = view.use || (view.queue && { end_s: view.queue.end_s, series: view.queue.use });
    if (!data) return;
    const bins = data.series[0].mean.length,
      step = data.end_s / bins;
    chart(
      "use",
      "Utilization over time",
      view.queue ? "share of processors in use" : "share of devices running a task",
      Stretto.lines,
      {
        label: "Utilization over time",
        x: Array.from({ length: bins }, (_, k) => (k + 0.5) * step),
        xMin: 0,
        xTime: true,
        yPercent: true,
        yMin: 0,
        yMax: 1,
        height: 200,
        series: data.series.map((one, k) => ({ name: one.name, values: one.mean, fill: k === 0, thin: k > 0 })),
      },
    );
  }
  function map(view) {
    if (!view.map) return;
    const note = view.queue
      ? "share of each pool's processors in use"
      : "share of time each device was busy";
    chart("map", "Cluster map", note, Stretto.map, view.map);
  }
  function belief(view) {
    if (!view.belief) return;
    const isLive = view.status === "running",
      note = "estimated load of every shared part, with its 95 % interval" + (isLive ? "; updated live" : "");
    chart("belief", "Estimated load", note, Stretto.map, { ...view.belief, isLive });
  }
  function strip(view, end) {
    const choices = view.choices || [],
      names = [...new Set(choices.map(choice => choice.chosen))],
      found = [];
    for (const choice of choices) {
      const last = found[found.length - 1];
      if (last && last.name === choice.chosen) continue;
      if (last) last.to = choice.at_s;
      found.push({
        from: choice.at_s,
        to: end,
        name: choice.chosen,
        text: choice.reason,
        color: Stretto.series(names.indexOf(choice.chosen)),
      });
    }
    return found;
  }
  function queue(view) {
    const data = view.queue;
    if (!data) return;
    const bins = data.waiting_mean.length,
      step = data.end_s / bins;
    chart(
      "queue",
      "Queue length and strategy",
      "waiting jobs; the strip above the chart shows the strategy in use",
      Stretto.lines,
      {
        label: "Queue length over time",
        x: Array.from({ length: bins }, (_, k) => (k + 0.5) * step),
        xMin: 0,
        xTime: true,
        yMin: 0,
        height: 240,
        strip: strip(view, data.end_s),
        series: [
          { name: "waiting (mean)", values: data.waiting_mean, fill: true },
          { name: "waiting (maximum)", values: data.waiting_most, thin: true },
        ],
      },
    );
  }
  function samples(view) {
    if (!view.samples) return;
    const x = view.samples.map(one => one[0]),
      series = [{ name: "waiting", values: view.samples.map(one => one[1]), step: true, fill: true }];
    if (view.samples.some(one => one[2] !== null))
      series.push({ name: "running", values: view.samples.map(one => one[2]), step: true });
    chart("samples", "Live queue", "waiting and running jobs at each decision", Stretto.lines, {
      label: "Waiting and running jobs over time",
      x,
      xTime: true,
      yMin: 0,
      series,
      strip: strip(view, x[x.length - 1]),
    });
  }
  // Waits beside the baseline and the record.
  function waits(view) {
    if (!view.waits) return;
    const [total, ...rest] = view.waits.tables,
      part = section("waits", total.title, "against the baseline and what was recorded, where that is known");
    part.body.replaceChildren(
      Stretto.drawnTable(total),
      ...(view.waits.promises ? [node("p", { class: "note" }, view.waits.promises)] : []),
      ...view.waits.notes.map(text => node("p", { class: "faint small" }, text)),
    );
    const groups = section("wait-groups", "Who waits", "means by group, and the jobs that waited longest");
    groups.body.replaceChildren(
      node("div", { class: "split" }, ...rest.map(table => node("div", {}, node("h3", {}, table.title), Stretto.drawnTable(table)))),
    );
  }
  // The waiting jobs of a steered cluster, and the switch that stops the steering.
  function steered(view) {
    const found = view.steered;
    if (!found) return;
    const part = section(
      "steered",
      "Waiting jobs in their order",
      `${found.num_waiting.toLocaleString("en")} waiting, ${found.num_running.toLocaleString("en")} running; ordered by ${found.chosen}; places in the queue as submitted and now`,
    );
    const moved = job => (job.before === job.after ? "–" : (job.after < job.before ? "↑ " : "↓ ") + Math.abs(job.after - job.before));
    const said = view.status !== "running"
      ? "Steering has ended; this was its last order."
      : found.fallback
      ? "Slurm's own order applies: " + found.fallback
      : found.is_applied
        ? "This order is applied."
        : "Dry run: Slurm is not told.";
    const stop = view.status === "running" && options.stopSteering ? Stretto.stopButton(options.stopSteering, view) : null;
    if (!part.body.children.length) part.body.append(node("div", {}), node("div", {}));
    const [list, tools] = part.body.children;
    list.replaceChildren(
      node("p", {}, said + (found.promises ? " Promises: " + found.promises + "." : "")),
      Stretto.table(
        ["job", ["submitted", "number"], ["now", "number"], ["moved", "number"], ["processors", "number"], ["requested", "number"]],
        found.jobs.map(job => [String(job.job), String(job.before), String(job.after), moved(job), String(job.procs), Stretto.seconds(job.estimate_s, 3)]),
      ),
      found.num_waiting > found.jobs.length ? node("p", { class: "faint small" }, `the first ${found.jobs.length} of ${found.num_waiting}`) : "",
    );
    if (stop && !tools.children.length) tools.append(stop);
    else if (!stop) tools.querySelector("button")?.remove(); // what came of it stays
  }
  function choices(view) {
    if (!view.choices || !view.choices.length || (view.choices.length === 1 && !view.choices[0].cost)) return;
    const isChange = (choice, k, all) => !k || choice.chosen !== all[k - 1].chosen,
      count = view.choices.filter(isChange).length - 1,
      total = view.choices.length;
    const note =
      `${total.toLocaleString("en")} decision${total === 1 ? "" : "s"}, ` +
      (count ? `${count.toLocaleString("en")} change${count === 1 ? "" : "s"} of strategy` : "no change of strategy") +
      "; latest first";
    const part = section("choices", "Decisions and reasons", note);
    // The latest is of interest whether or not it changed anything.
    const rows = view.choices
      .filter((choice, k, all) => isChange(choice, k, all) || k === total - 1)
      .slice(-20)
      .reverse()
      .map(choice => {
        const sorted = Object.entries(choice.cost || {})
            .filter(([, cost]) => cost !== null)
            .sort((a, b) => a[1] - b[1]),
          costs = sorted.filter(([name], k) => k < 4 || name === choice.chosen);
        return [
          Stretto.seconds(choice.at_s),
          choice.chosen,
          choice.reason || "",
          costs
            .map(
              ([name, cost]) => name + " " + Stretto.number(cost, 3) + (name === choice.chosen ? " (chosen)" : ""),
            )
            .join(", "),
        ];
      });
    part.body.replaceChildren(Stretto.table([["time", "number"], "strategy", "reason", "cheapest candidates (expected cost)"], rows));
  }
  function training(view) {
    const data = view.training;
    if (!data) return;
    const note = k =>
      [data.seconds[k] !== null ? Stretto.seconds(data.seconds[k]) + " of training" : null, data.stage[k]].filter(
        Boolean,
      );
    const marks = data.stage
      .map((stage, k) => ({ x: data.x[k], name: stage }))
      .filter((mark, k) => !k || data.stage[k] !== data.stage[k - 1]);
    const common = { x: data.x, xName: data.x_name, marks, note, height: 240 };
    const named = one => ({
      name: one.name.replace(/_s$/, "").replaceAll("_", " "),
      values: one.values,
      step: one.name.startsWith("best"),
      thin: !one.name.startsWith("best"),
      bridge: true,
    });
    data.groups.forEach((group, k) => {
      const series = group.names
        .map(name => data.series.find(one => one.name === name))
        .filter(one => one.values.some(value => value !== null));
      if (!series.length) return;
      chart(
        k ? "training-" + group.names[0] : "training",
        k ? "Training: " + group.title : "Training",
        k ? "" : group.title + ", by " + data.x_name,
        Stretto.lines,
        {
          ...common,
          label: "Training: " + group.title,
          yTime: group.unit === "s",
          series: series.map(one => (series.length > 1 ? named(one) : { ...named(one), name: group.title })),
          rules: k ? [] : Object.entries(data.baselines).map(([name, value]) => ({ name, value })),
          height: k ? 160 : 240,
        },
      );
    });
  }
  function judged(view) {
    const found = view.summary && view.summary.judged;
    if (!found) return;
    const rows = Object.entries(found)
        .filter(([, value]) => typeof value === "number")
        .sort((a, b) => a[1] - b[1]),
      least = rows[0][1],
      most = rows[rows.length - 1][1],
      own = view.settings.algorithm;
    const part = section("judged", "Evaluation", (view.summary.judged_as || "") + "; lower is better");
    part.body.replaceChildren(
      Stretto.table(
        ["", ["value", "number"], ["above the best", "number"], ""],
        rows.map(([name, value]) => {
          const meter = node("span", { class: "meter" }, node("i", {}));
          meter.firstChild.style.width = (100 * value) / most + "%";
          return [name, Stretto.number(value), value > least ? "+" + Stretto.percent(value / least - 1) : "", meter];
        }),
        rows.findIndex(([name]) => name === own),
      ),
    );
  }
  function failures(view) {
    if (!view.failures || !view.failures.length) return;
    const count = view.num_failures;
    const part = section(
      "failures",
      "Failed attempts",
      count > view.failures.length ? `the first ${view.failures.length} of ${count.toLocaleString("en")}` : "",
    );
    part.body.replaceChildren(
      Stretto.table(
        [["time", "number"], "task", "device", ["attempt", "number"], "cause", "reason"],
        view.failures.map(one => [
          Stretto.seconds(one.at_s),
          one.task,
          one.device,
          one.attempt === null || one.attempt === undefined ? "" : String(one.attempt),
          one.blame || "",
          one.reason || "",
        ]),
      ),
    );
  }
  function progress(view) {
    if (!view.progress) return;
    chart("progress", "Search progress", "best makespan found so far", Stretto.lines, {
      label: "Best makespan by search time",
      xTime: true,
      yTime: true,
      height: 180,
      x: view.progress.map(one => one[0]),
      series: [{ name: "best", values: view.progress.map(one => one[1]), step: true }],
      rules: view.summary.lower_bound_s ? [{ name: "lower bound", value: view.summary.lower_bound_s }] : [],
    });
  }
  function graph(view) {
    if (!view.graph) return;
    const note =
      view.graph.kind === "groups"
        ? "tasks grouped by depth and device; a larger dot stands for more tasks"
        : "one dot per task; depth increases to the right";
    chart(
      "graph",
      "Placement on the graph",
      note,
      (body, data) => Stretto.placement(body, data, "Placement"),
      view.graph,
    );
  }
  function cost(view) {
    if (!view.cost || !view.cost.length) return;
    const total = view.cost.reduce((sum, line) => sum + line.usd, 0),
      most = Math.max(1e-300, ...view.cost.map(line => line.usd));
    const part = section(
      "cost",
      total > 0 ? "Cost" : "Device time",
      total > 0 ? Stretto.usd(total) + " in total" : "no prices are known",
    );
    const idle = view.cost.filter(line => !line.held_s && !line.usd).map(line => line.name);
    if (idle.length) part.text.textContent += "; unused: " + idle.join(", ");
    const rows = view.cost
      .filter(line => line.held_s || line.usd)
      .map(line => {
        const meter = node("span", { class: "meter" }, node("i", {}));
        // The bar shows the number that stands before it: the cost, or else the share that was used.
        const share = total > 0 ? line.usd / most : line.busy_s / Math.max(1e-300, line.held_s);
        meter.firstChild.style.width = 100 * Math.min(1, share) + "%";
        return [
          line.name + (line.count > 1 ? " × " + line.count : ""),
          Stretto.seconds(line.held_s),
          Stretto.seconds(line.busy_s),
          line.held_s > 0 ? Stretto.percent(line.busy_s / line.held_s) : "–",
          ...(total > 0 ? [Stretto.usd(line.usd)] : []),
          meter,
        ];
      });
    part.body.replaceChildren(
      Stretto.table(
        ["", ["reserved", "number"], ["busy", "number"], ["utilization", "number"], ...(total > 0 ? [["cost", "number"]] : []), ""],
        rows,
      ),
    );
  }
  function tables(view) {
    (view.tables || []).forEach((found, k) => {
      section("table-" + k, found.title, found.note).body.replaceChildren(Stretto.drawnTable(found));
    });
  }
  function spreads(view) {
    if (view.spreads && view.spreads.length)
      Stretto.spreads(section("policies", "Policies by instance", "less is better").body, view.spreads);
  }
  return {
    update: view => {
      [waits, steered, spreads, tables, failures, belief, gantt, durations, tasks, map, use, queue, samples, choices, training, judged, progress, graph, cost].forEach((draw, place) => {
        rank = place;
        draw(view);
      });
    },
  };
};
