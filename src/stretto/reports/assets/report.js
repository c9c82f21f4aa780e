"use strict";
// The runs of a report: their data stand in the page, explanations included.
(async function () {
  const views = await Stretto.data(),
    root = document.getElementById("runs"),
    node = Stretto.node;
  function why(view, task) {
    const all = view.why;
    let low = 0,
      high = all.task.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (all.task[mid] < task) low = mid + 1;
      else high = mid;
    }
    if (all.task[low] !== task)
      throw new Error("Only the longest tasks of this plan have explanations, and this task is not one of them.");
    const names = new Map(),
      chart = view.gantt,
      alternatives = [];
    const name = index => {
      if (!chart.names) return "t" + index;
      if (!names.size) chart.task.forEach((t, i) => names.set(t, chart.names[i]));
      return names.get(index);
    };
    const actual = chart.rows[chart.row[chart.task.indexOf(task)]][0];
    for (let k = all.first[low]; k < all.first[low + 1]; k++)
      alternatives.push({
        device: all.devices[all.device[k]],
        is_chosen: false,
        data_ready_s: all.ready_s[k],
        waits_for: all.parent[k] < 0 ? null : name(all.parent[k]),
        start_s: all.start_s[k],
        finish_s: all.finish_s[k],
      });
    const chosen = alternatives.find(one => actual === one.device || actual.endsWith("/" + one.device));
    if (chosen) chosen.is_chosen = true;
    return { task: name(task), device: chosen ? chosen.device : actual, reason: all.reason[low], alternatives };
  }
  views.forEach((view, k) => {
    const by = view.settings.dispatch || view.settings.policy || view.settings.strategy || view.settings.algorithm || "";
    const weights = view.settings.weights ? " (" + view.settings.weights + ")" : "";
    const on = view.settings.cluster || (view.settings.procs ? view.settings.procs + " processors" : "");
    const text = [view.kind + (by ? " by " + by + weights : "") + (on ? " on " + on : ""), view.id].filter(Boolean).join(" · ");
    const part = node(
      "section",
      { id: "run" + k },
      views.length > 1 ? node("h1", {}, view.name) : null,
      views.length > 1 && view.answer ? node("p", { class: "answer" }, view.answer) : null,
      node("p", { class: "faint" }, text),
      Stretto.factList(view),
    );
    root.append(part);
    Stretto.sections(part, {
      prefix: "run" + k + "-",
      explain: view.why ? task => Promise.resolve().then(() => why(view, task)) : null,
    }).update(view);
  });
  for (const table of document.querySelectorAll("section > .table")) Stretto.watchTable(table);
  document.body.dataset.ready = "true";
})();
