"use strict";
// Runs side by side: their figures, policies on each instance, training curves overlaid, schedules on one time axis.
(function () {
  const node = Stretto.node,
    find = name => document.getElementById(name),
    MAX_CHARTS = 8;
  const label = run => {
    const by = Stretto.decider(run);
    return (run.name || run.id) + (by ? ", " + by : "");
  };
  // Names that would be equal are told apart by the id.
  function labels(runs) {
    const all = runs.map(label);
    return all.map((text, k) => (all.indexOf(text) === all.lastIndexOf(text) ? text : `${text} (${runs[k].id.slice(-6)})`));
  }
  function section(id, title, note) {
    const body = node("div", {});
    find("sections").append(
      node(
        "section",
        { id, "aria-labelledby": id + "-title" },
        node("header", {}, node("h2", { id: id + "-title" }, title), node("p", {}, note || "")),
        body,
      ),
    );
    return body;
  }
  function curves(views, names) {
    const first = view => view.training && view.training.groups[0];
    const kinds = [...new Set(views.filter(first).map(view => first(view).title))];
    kinds.forEach((kind, k) => {
      const chosen = views.map((view, n) => [view, names[n]]).filter(([view]) => first(view) && first(view).title === kind);
      const body = section("training" + (k || ""), "Training: " + kind, "thick lines are smoothed; by seconds of training");
      Stretto.lines(body, Stretto.overlaid(chosen, kind));
    });
  }
  function schedules(views, names) {
    const charts = views.map((view, k) => [view.gantt, names[k]]).filter(([chart]) => chart && chart.task.length);
    if (!charts.length) return;
    const shown = charts.slice(0, MAX_CHARTS),
      until = Math.max(...shown.map(([chart]) => chart.makespan)),
      body = section("schedules", "Schedules", "one time axis: zooming or moving one chart moves all");
    const group = { charts: [], until };
    for (const [chart, name] of shown) {
      const holder = node("div", {});
      body.append(node("h3", {}, `${name}: ${Stretto.seconds(chart.makespan, 5)}`), holder);
      Stretto.gantt(holder, chart, { label: "Gantt chart of " + name, group });
    }
    if (charts.length > shown.length)
      body.append(node("p", { class: "faint small" }, `${charts.length - shown.length} more schedules are not drawn`));
  }
  async function load() {
    const ids = new URLSearchParams(window.location.search).get("runs") || "";
    try {
      const found = await Stretto.ask("/api/compare?runs=" + encodeURIComponent(ids));
      const names = labels(found.runs);
      find("name").textContent = `Compare ${found.runs.length} runs`;
      document.title = `Compare ${found.runs.length} runs · Stretto`;
      find("about").replaceChildren(
        ...found.runs.flatMap((run, k) => [k ? " · " : "", node("a", { href: "/runs/" + run.id }, names[k])]),
      );
      if (found.answer) {
        find("sentence").hidden = false;
        find("sentence").textContent = found.answer.replaceAll(" %", "\u00a0%");
      }
      found.tables.forEach((table, k) => section("table-" + k, table.title, table.note).append(Stretto.drawnTable(table)));
      if (found.spreads.length) Stretto.spreads(section("policies", "Policies by instance", "less is better"), found.spreads);
      const views = [];
      for (const run of found.runs) views.push(await Stretto.ask(`/api/runs/${encodeURIComponent(run.id)}/view`));
      curves(views, names);
      schedules(views, names);
      const links = [...find("sections").children].map(part =>
        node("a", { href: "#" + part.id }, part.querySelector("h2").textContent),
      );
      find("jump").replaceChildren(...links);
      if (!links.length)
        find("sections").append(node("p", { class: "empty" }, "These runs have no figures, curves or schedules in common."));
    } catch (error) {
      find("sections").replaceChildren(
        node("p", { class: "note error" }, error.message),
        node("p", {}, "Select two or more runs in the ", node("a", { href: "/" }, "list of runs"), "."),
      );
    }
    document.body.dataset.ready = "true";
  }
  load();
})();
