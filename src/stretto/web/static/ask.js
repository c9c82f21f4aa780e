"use strict";
// What if: a form to solve the problem of a run in another way, and both outcomes side by side.
(function () {
  const node = Stretto.node,
    field = Stretto.field;
  // Fields have the names of the request, so that a form is a request.
  function rack(settings) {
    return [field("Rule", "policy", settings.policy || "", { size: 18, placeholder: "srpt-belief, mct, symphony (untrained)" })];
  }
  function plan(settings) {
    return [
      field("Policy", "policy", settings.policy || "heft", { size: 16, list: "names-policies" }),
      field("Cluster", "cluster", "", { size: 24, placeholder: "unchanged" }),
      field("Time limit (s)", "time_limit_s", "", { type: "number", min: "0.1", step: "any", size: 6 }),
    ];
  }
  function replay(settings) {
    const fields = [
      field("Strategy", "strategy", settings.strategy || "fcfs", { size: 16, list: "names-strategies" }),
      field("Backfilling", "backfill", settings.backfill || "easy", { size: 12, list: "names-backfills" }),
    ];
    if (settings.procs) return fields;
    const worth = { type: "number", min: "0", step: "any", size: 6, placeholder: "1 (for burst)" };
    return fields.concat(
      field("Pool rule", "pool_rule", settings.pool_rule || "cheapest", { size: 12, list: "names-pool_rules" }),
      field("Value of an hour of waiting, $", "wait_usd_per_hour", "", worth),
      field("Pools", "pools", "", { size: 34, placeholder: "unchanged" }),
    );
  }
  function request(form) {
    const inputs = [...form.elements].filter(one => one.name);
    return Object.fromEntries(
      inputs.map(one => [one.name, one.value === "" ? null : one.type === "number" ? Number(one.value) : one.value]),
    );
  }

  // A share changes by points: a percentage of a percentage would be read as the share itself.
  const SHARES = new Set([Stretto.percent, Stretto.gap]);
  const FIGURES = [
    ["makespan_s", "makespan", Stretto.seconds],
    ["mean_completion_s", "mean job completion", Stretto.seconds],
    ["p99_completion_s", "p99 job completion", Stretto.seconds],
    ["belief_error", "load estimate error", Stretto.percent],
    ["gap", "gap", Stretto.gap],
    ["cost_usd", "cost", Stretto.usd],
    ["mean_bounded_slowdown", "mean bounded slowdown", Stretto.number],
    ["p99_bounded_slowdown", "p99 bounded slowdown", Stretto.number],
    ["mean_flow_s", "mean flow time", Stretto.seconds],
    ["mean_wait_s", "mean wait", Stretto.seconds],
    ["max_wait_s", "longest wait", Stretto.seconds],
    ["utilization", "utilization", Stretto.percent],
  ];
  function decider({ settings }) {
    if (settings.dispatch) return settings.dispatch;
    if (settings.policy || !settings.strategy) return settings.policy || settings.algorithm || "";
    return settings.strategy + (settings.procs ? "" : ", " + (settings.pool_rule || "cheapest"));
  }
  function change(before, after, show) {
    if (SHARES.has(show)) {
      const points = 100 * (after - before);
      return Math.abs(points) < 0.005 ? "none" : (points > 0 ? "+" : "") + Stretto.number(points, 3) + " points";
    }
    if (!before) return "–";
    const share = after / before - 1;
    return Math.abs(share) < 5e-5 ? "none" : (share > 0 ? "+" : "") + Stretto.percent(share);
  }
  function answer(found) {
    const a = found.before.summary,
      b = found.after.summary;
    const rows = FIGURES.filter(
      ([name]) => typeof a[name] === "number" && typeof b[name] === "number" && (a[name] || b[name] || name === "gap"),
    ).map(([name, text, show]) => [
      text,
      show(a[name]),
      show(b[name]),
      change(a[name], b[name], show),
    ]);
    const how = found.is_simulated ? ", simulated" : "";
    const heads = [
      "",
      ["this run, " + decider(found.before) + how, "number"],
      ["what if, " + decider(found.after) + how, "number"],
      ["change", "number"],
    ];
    const link = node("p", {}, node("a", { href: "/runs/" + found.run_id }, "Open the new run"));
    return [Stretto.table(heads, rows), ...basis(found), link];
  }
  // Where the two columns come from.
  function basis(found) {
    if (!found.is_simulated) return [];
    const before = found.before;
    let text = "Both plans are simulated with the durations in the graph.";
    if (before.summary.makespan_s === undefined) text = "The plan of this run cannot be simulated, so there is no comparison.";
    if (typeof before.measured_s === "number") {
      const scale = before.settings.scale;
      text += ` The run itself took ${Stretto.seconds(before.measured_s)}`;
      text += scale && scale !== 1 ? `, at a scale of ${scale} real seconds per second in the graph.` : ".";
    }
    return [node("p", { class: "faint small" }, text)];
  }

  Stretto.whatIf = function (form, place, view, path) {
    const button = node("button", { class: "primary", type: "submit" }, "Compare"),
      fields = { rack, replay }[view.kind] || plan;
    form.append(...fields(view.settings), button);
    form.addEventListener("focusin", Stretto.offer, { once: true });
    form.addEventListener("submit", async event => {
      event.preventDefault();
      button.disabled = true;
      place.replaceChildren(node("p", { class: "faint" }, "computing …"));
      try {
        place.replaceChildren(...answer(await Stretto.ask(path, request(form))));
      } catch (error) {
        place.replaceChildren(node("p", { class: "note error" }, error.message));
      }
      button.disabled = false;
    });
  };
})();

// The switch of a steered cluster: asks once more before it stops the steering.
Stretto.stopButton = function (stop, view) {
  const node = Stretto.node,
    note = node("div", { "aria-live": "polite" }),
    button = node("button", { type: "button", class: "danger" }, "Stop steering and restore Slurm's order");
  let isSure = false;
  button.addEventListener("click", async () => {
    if (!isSure) {
      isSure = true;
      button.textContent = "Click again to stop the steering";
      return;
    }
    button.disabled = true;
    try {
      const found = await stop(view.settings.partition || null);
      note.replaceChildren(...found.notices.map(text => node("p", { class: "note" }, text)));
    } catch (error) {
      note.replaceChildren(node("p", { class: "note error" }, error.message));
      button.disabled = false;
    }
    isSure = false;
    button.textContent = "Stop steering and restore Slurm's order";
  });
  return node("div", {}, button, note);
};
