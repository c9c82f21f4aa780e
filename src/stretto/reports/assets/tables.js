"use strict";
// Tables, the key figures of a run, and explanations of placements.

// A table that is too wide for a phone shows its rows below each other, each cell under the name of its column.
Stretto.tableSizes = new ResizeObserver(entries => entries.forEach(entry => Stretto.fitTable(entry.target)));
Stretto.fitTable = function (holder) {
  holder.classList.remove("stacked");
  const isSqueezed = () => [...holder.querySelectorAll("tbody tr")].some(row => row.offsetHeight > 90);
  if (holder.scrollWidth > holder.clientWidth + 1 || isSqueezed()) holder.classList.add("stacked");
};
Stretto.watchTable = function (holder) {
  Stretto.tableSizes.observe(holder);
  return holder;
};

// heads: names, or [name, class]; a row is a list of cells, text or nodes.
Stretto.table = function (heads, rows, chosen) {
  const node = Stretto.node,
    kind = heads.map(head => (Array.isArray(head) ? head[1] : null)),
    names = heads.map(head => (Array.isArray(head) ? head[0] : head));
  const holder = node(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": "Table: " + names.filter(Boolean).join(", ") },
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
            ...row.map((cell, k) => {
              const isLong = typeof cell === "string" && cell.length > 30;
              return node("td", { class: isLong ? (kind[k] || "") + " long" : kind[k], "data-label": names[k] }, cell);
            }),
          ),
        ),
      ),
    ),
  );
  return Stretto.watchTable(holder);
};

// A table that the server has made: the best of each column in bold, a second line of a cell is its interval.
Stretto.drawnTable = function (found) {
  const node = Stretto.node,
    best = new Set(found.best.map(String));
  const cell = (text, r, c) => {
    const [value, interval] = text.split("\n"),
      main = best.has(r + "," + c) ? node("b", {}, value) : value;
    return interval ? node("span", {}, main, node("br"), node("span", { class: "faint small" }, interval)) : main;
  };
  return Stretto.table(
    found.heads.map((head, c) => (c ? [head, "number"] : head)),
    found.rows.map((row, r) => row.map((text, c) => cell(text, r, c))),
  );
};

// Rows of values, sorted by any column; a part is shown, and all can be saved as CSV.
// columns: [{ name, key(i), text(i), isNumber, csv(i) }] over the places 0 .. count - 1.
Stretto.sortedTable = function (holder, first, options) {
  const node = Stretto.node,
    MORE = 12;
  let { columns, count } = first,
    sorted = { by: options.by || 0, isDown: Boolean(options.isDown) },
    shown = MORE,
    wanted = "";
  const place = node("div", {}),
    field = node("input", { type: "search", placeholder: options.what + " name", "aria-label": "Filter " + options.what + "s by name" });
  field.addEventListener("input", () => {
    wanted = field.value.trim().toLowerCase();
    shown = MORE;
    draw();
  });
  const save = node("button", { type: "button", onclick: () => Stretto.download(options.file, csv()) }, "Download CSV");
  holder.append(node("div", { class: "tools no-print" }, field, save), place);
  function chosen() {
    const key = columns[sorted.by].key,
      side = sorted.isDown ? -1 : 1,
      all = [];
    for (let i = 0; i < count; i++) if (!wanted || columns[0].text(i).toLowerCase().includes(wanted)) all.push(i);
    const keys = new Map(all.map(i => [i, key(i)]));
    return all.sort((a, b) => {
      const p = keys.get(a),
        q = keys.get(b);
      return (p < q ? -side : p > q ? side : 0) || a - b;
    });
  }
  function csv() {
    const quoted = value => (/[",\n\r]/.test(String(value)) ? '"' + String(value).replaceAll('"', '""') + '"' : String(value));
    const safe = value => (typeof value === "string" && /^[=+@-]/.test(value) ? "'" + value : value); // no formula in a spreadsheet
    const lines = [columns.map(column => quoted(column.csvName || column.name)).join(",")];
    for (const i of chosen()) lines.push(columns.map(column => quoted(safe((column.csv || column.key)(i)))).join(","));
    return lines.join("\n") + "\n";
  }
  function head(column, k) {
    const turn = () => {
      sorted = { by: k, isDown: sorted.by === k ? !sorted.isDown : Boolean(column.isNumber) };
      draw();
      place.querySelectorAll("th button")[k].focus();
    };
    const order = sorted.by === k ? (sorted.isDown ? "descending" : "ascending") : null;
    return node("th", { scope: "col", class: column.isNumber ? "number" : null, "aria-sort": order }, node("button", { type: "button", onclick: turn }, column.name));
  }
  function draw() {
    const all = chosen(),
      part = all.slice(0, shown);
    const line = i =>
      node(
        "tr",
        {},
        ...columns.map(column =>
          node("td", { class: column.isNumber ? "number" : null, "data-label": column.name }, (column.node || column.text)(i)),
        ),
      );
    const rest = all.length - part.length;
    const more = () => {
      shown += 100;
      draw();
    };
    const holder = node(
      "div",
      { class: "table", tabindex: "0", role: "region", "aria-label": options.what + "s" },
      node("table", {}, node("thead", {}, node("tr", {}, ...columns.map(head))), node("tbody", {}, ...part.map(line))),
    );
    place.replaceChildren(
      Stretto.watchTable(holder),
      rest
        ? node("p", { class: "small" }, node("button", { type: "button", onclick: more }, `Show more (${rest.toLocaleString("en")} left)`))
        : node("p", { class: "faint small" }, all.length ? "" : `No ${options.what} has this name.`),
    );
  }
  draw();
  return {
    update: next => {
      ({ columns, count } = next);
      if (!place.contains(document.activeElement)) draw();
    },
  };
};
Stretto.download = function (name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" })),
    link = Stretto.node("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
};
// The tasks of a chart as rows of a table.
Stretto.taskRows = function (chart, onShow) {
  const waits = new Map(chart.waits ? chart.waits.bar.map((bar, k) => [bar, chart.waits.length[k]]) : []),
    name = i => (chart.names ? chart.names[i] : "t" + chart.task[i]),
    kind = i => chart.legend[chart.color[i]][0],
    time = (title, csvName, key) => ({ name: title, csvName, key, text: i => Stretto.seconds(key(i), 4), isNumber: true }),
    isLeft = Stretto.differAtEnd(chart.names);
  const shown = i =>
    Stretto.node(
      "button",
      { type: "button", class: "as-link", title: name(i) + ": show it in the chart", onclick: () => onShow(i) },
      Stretto.node("span", { class: "tail" + (isLeft ? " left" : "") }, Stretto.node("bdi", {}, name(i))),
    );
  const columns = [{ name: "task", key: name, text: name, node: shown }];
  if (chart.legend.some(([label]) => label)) columns.push({ name: chart.colored_by || "category", key: kind, text: kind });
  const device = i => chart.rows[chart.row[i]][0];
  columns.push({ name: "device", key: device, text: device });
  if (chart.state) {
    const state = i => ["running", "done", "failed"][chart.state[i]];
    columns.push({ name: "status", key: state, text: state });
  }
  columns.push(
    time("start", "start_s", i => chart.start[i]),
    time("duration", "duration_s", i => chart.length[i]),
    time("end", "end_s", i => Number((chart.start[i] + chart.length[i]).toPrecision(12))),
  );
  if (waits.size) columns.push(time("device waited for data", "waited_for_data_s", i => waits.get(i) || 0));
  return { columns, count: chart.task.length };
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
        (Stretto.isOptimal(summary.gap) ? "proven optimal" : "at most this far above optimal"),
    );
  addMean("mean bounded slowdown", "bounded_slowdown", Stretto.number);
  if (has("mean_wait_s"))
    add("mean wait", Stretto.wait(summary.mean_wait_s), "longest " + Stretto.wait(summary.max_wait_s));
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
