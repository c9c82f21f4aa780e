"use strict";
// The list of runs, kept up to date by the server: sorted by any column, filtered, and selected for a comparison.
(function () {
  const node = Stretto.node,
    list = document.getElementById("list"),
    filters = document.getElementById("filters"),
    NUM_SHOWN = 80, // letters of an outcome; the title has all of a longer one
    selected = new Set();
  let runs = null,
    sorted = { by: "started", isDown: true };

  const where = run => run.settings.cluster || (run.settings.procs ? run.settings.procs + " processors" : "");
  const took = run =>
    run.ended_s === null && run.status !== "running"
      ? null
      : Math.max(0, (run.ended_s === null ? Date.now() / 1000 : run.ended_s) - run.started_s);
  const seconds = value => (value === null ? "–" : Stretto.seconds(value, 3));
  const outcome = run => (run.live ? run.live.text : Stretto.headline(run));
  // Columns: how a run is sorted there, and what the cell shows.
  const COLUMNS = {
    status: { key: run => run.status, cell: run => node("span", { class: "state " + run.status }, run.status) },
    name: {
      key: run => (run.name || run.id).toLowerCase(),
      cell: run => {
        const href = "/runs/" + encodeURIComponent(run.id);
        return node("a", { href, title: run.id, "data-key": href }, run.name || run.id);
      },
    },
    kind: { key: run => run.kind, cell: run => run.kind },
    method: { key: run => Stretto.decider(run).toLowerCase(), cell: run => Stretto.decider(run) },
    cluster: { key: run => where(run).toLowerCase(), cell: run => where(run) },
    outcome: { key: outcome, cell: told },
    took: { key: run => (took(run) === null ? -1 : took(run)), cell: run => seconds(took(run)), isNumber: true },
    started: {
      key: run => run.started_s,
      cell: run => node("span", { title: Stretto.clock(run.started_s) }, Stretto.ago(run.started_s)),
      isNumber: true,
    },
  };
  function told(run) {
    const text = outcome(run),
      shown = text.length > NUM_SHOWN ? text.slice(0, NUM_SHOWN - 1) + "…" : text;
    if (!run.live) return node("span", { title: shown === text ? null : text }, shown);
    const meter = node("span", { class: "meter", "aria-hidden": "true" }, node("i", {}));
    meter.firstChild.style.width = 100 * run.live.share + "%";
    return node("span", { class: "live" }, meter, shown);
  }
  function fits(run) {
    const kind = filters.kind.value,
      status = filters.status.value,
      text = filters.text.value.trim().toLowerCase();
    if ((kind && run.kind !== kind) || (status && run.status !== status)) return false;
    const parts = [run.id, run.name, run.kind, Stretto.decider(run), where(run), run.settings.graph, run.settings.trace];
    return !text || parts.some(part => String(part || "").toLowerCase().includes(text));
  }
  function inOrder(chosen) {
    const key = COLUMNS[sorted.by].key,
      side = sorted.isDown ? -1 : 1;
    const place = new Map(runs.map((run, k) => [run.id, k]));
    const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    return [...chosen].sort((a, b) => side * compare(key(a), key(b)) || place.get(a.id) - place.get(b.id));
  }
  function sortBy(name) {
    sorted = { by: name, isDown: sorted.by === name ? !sorted.isDown : ["took", "started"].includes(name) };
    filters.sort.value = name;
    show();
  }
  function head(name) {
    const { isNumber } = COLUMNS[name],
      isHere = sorted.by === name;
    const button = node("button", { type: "button", "data-key": "sort " + name, onclick: () => sortBy(name) }, name);
    const order = isHere ? (sorted.isDown ? "descending" : "ascending") : null;
    return node("th", { scope: "col", class: isNumber ? "number" : null, "aria-sort": order }, button);
  }
  function select(run) {
    const box = node("input", {
      type: "checkbox",
      "aria-label": "Select " + (run.name || run.id) + " for a comparison",
      "data-key": "select " + run.id,
      onchange: () => {
        selected[box.checked ? "add" : "delete"](run.id);
        show();
      },
    });
    box.checked = selected.has(run.id);
    return node("td", { class: "pick" }, node("label", {}, box));
  }
  function row(run) {
    const cells = Object.entries(COLUMNS).map(([name, column]) =>
      node("td", { class: name + (column.isNumber ? " number" : ""), "data-name": name }, column.cell(run)),
    );
    const open = event => {
      if (event.target.closest("a, input, label, button") || String(window.getSelection())) return;
      window.location = "/runs/" + encodeURIComponent(run.id);
    };
    return node("tr", { class: selected.has(run.id) ? "chosen-run" : null, onclick: open }, select(run), ...cells);
  }
  function choices() {
    for (const kind of new Set(runs.map(run => run.kind)))
      if (![...filters.kind.options].some(option => option.value === kind))
        filters.kind.append(node("option", { value: kind }, kind));
  }
  function compareBar() {
    const bar = document.getElementById("compare");
    for (const id of [...selected]) if (!runs.some(run => run.id === id)) selected.delete(id);
    bar.hidden = !selected.size;
    const isEnough = selected.size > 1;
    const link = isEnough
      ? node("a", { class: "primary", href: "/compare?runs=" + [...selected].join(","), "data-key": "compare" }, `Compare ${selected.size} runs`)
      : node("span", { class: "faint" }, "1 run selected; select another one to compare them");
    const none = () => {
      selected.clear();
      show();
    };
    bar.replaceChildren(link, node("button", { type: "button", "data-key": "none", onclick: none }, "Clear selection"));
  }
  function show() {
    if (!runs) return;
    choices();
    const chosen = runs.filter(fits),
      live = runs.filter(run => run.status === "running").length;
    document.getElementById("count").textContent =
      `${chosen.length} of ${runs.length}` + (live ? `, ${live} running` : "");
    filters.hidden = !runs.length;
    const focused = document.activeElement && document.activeElement.dataset.key;
    compareBar();
    if (!runs.length) {
      if (!list.querySelector(".empty")) list.replaceChildren(Stretto.noRuns());
      return;
    }
    if (!chosen.length) {
      list.replaceChildren(node("p", { class: "empty" }, "No run matches the filters."));
      return;
    }
    const heads = [node("th", { scope: "col", class: "pick" }, node("span", { class: "unseen" }, "select"))];
    list.replaceChildren(
      node(
        "div",
        { class: "table" },
        node(
          "table",
          { class: "runs" },
          node("thead", {}, node("tr", {}, ...heads, ...Object.keys(COLUMNS).map(head))),
          node("tbody", {}, ...inOrder(chosen).map(row)),
        ),
      ),
    );
    const again = focused && document.querySelector(`[data-key="${CSS.escape(focused)}"]`);
    if (again) again.focus();
  }
  for (const name of Object.keys(COLUMNS)) filters.sort.append(node("option", { selected: name === "started" }, name));
  filters.addEventListener("input", event => (event.target === filters.sort ? sortBy(filters.sort.value) : show()));
  filters.addEventListener("submit", event => event.preventDefault());
  Stretto.stream(() => "/api/stream", {
    runs: found => {
      runs = found.runs;
      show();
      document.body.dataset.ready = String(runs.length);
    },
  });
  setInterval(() => {
    if (runs && runs.some(run => run.status === "running")) show();
  }, 1000);
})();
