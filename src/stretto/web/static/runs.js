"use strict";
// The list of runs, kept up to date by the server.
(function () {
  const node = Stretto.node,
    list = document.getElementById("list"),
    filters = document.getElementById("filters"),
    NUM_SHOWN = 80; // letters of an outcome; the title has all of a longer one
  let runs = null;

  function lasted(run) {
    if (run.ended_s === null && run.status !== "running") return "–";
    return Stretto.seconds(Math.max(0, (run.ended_s === null ? Date.now() / 1000 : run.ended_s) - run.started_s), 3);
  }
  function fits(run) {
    const kind = filters.kind.value,
      status = filters.status.value,
      text = filters.text.value.trim().toLowerCase();
    if ((kind && run.kind !== kind) || (status && run.status !== status)) return false;
    return (
      !text ||
      [
        run.id,
        run.name,
        run.kind,
        Stretto.decider(run),
        run.settings.cluster,
        run.settings.graph,
        run.settings.trace,
      ].some(part =>
        String(part || "")
          .toLowerCase()
          .includes(text),
      )
    );
  }
  const shortened = text => (text.length > NUM_SHOWN ? text.slice(0, NUM_SHOWN - 1) + "…" : text);
  function row(run) {
    const outcome = Stretto.headline(run);
    return node(
      "tr",
      {},
      node("td", {}, node("span", { class: "state " + run.status }, run.status)),
      node("td", {}, node("a", { href: "/runs/" + encodeURIComponent(run.id), title: run.id }, run.name || run.id)),
      node("td", {}, run.kind),
      node("td", {}, Stretto.decider(run)),
      node("td", { class: "number", title: outcome.length > NUM_SHOWN ? outcome : null }, shortened(outcome)),
      node("td", { class: "number" }, lasted(run)),
      node("td", { class: "number", title: Stretto.clock(run.started_s) }, Stretto.ago(run.started_s)),
    );
  }
  function show() {
    if (!runs) return;
    for (const kind of new Set(runs.map(run => run.kind)))
      if (![...filters.kind.options].some(option => option.value === kind))
        filters.kind.append(node("option", { value: kind }, kind));
    const chosen = runs.filter(fits),
      live = runs.filter(run => run.status === "running").length;
    document.getElementById("count").textContent =
      `${chosen.length} of ${runs.length}` + (live ? `, ${live} running` : "");
    if (!runs.length) {
      list.replaceChildren(
        node(
          "p",
          { class: "empty" },
          "No runs yet. Start one above, or with ",
          node("code", {}, "stretto plan … --log"),
          ".",
        ),
      );
      return;
    }
    const focused = document.activeElement && document.activeElement.getAttribute("href");
    const heads = ["status", "name", "kind", "method"]
      .map(name => node("th", { scope: "col" }, name))
      .concat(["outcome", "took", "started"].map(name => node("th", { scope: "col", class: "number" }, name)));
    list.replaceChildren(
      node(
        "div",
        { class: "table" },
        node(
          "table",
          { class: "runs" },
          node("thead", {}, node("tr", {}, ...heads)),
          node("tbody", {}, ...chosen.map(row)),
        ),
      ),
    );
    if (focused && focused.startsWith("/runs/")) {
      const link = list.querySelector(`a[href="${CSS.escape(focused)}"]`) || list.querySelector(`a[href="${focused}"]`);
      if (link) link.focus();
    }
  }
  filters.addEventListener("input", show);
  filters.addEventListener("submit", event => event.preventDefault());
  Stretto.stream(() => "/api/stream", {
    runs: found => {
      runs = found.runs;
      show();
    },
  });
  setInterval(() => {
    if (runs && runs.some(run => run.status === "running")) show();
  }, 1000);

  document.querySelector("details").addEventListener("toggle", Stretto.offer, { once: true });
  // Forms for new work; the page of the run opens as soon as there is one.
  function form(title, path, fields, read) {
    const note = node("div", { "aria-live": "polite" }),
      button = node("button", { class: "primary", type: "submit" }, title);
    const made = node("form", { class: "line" }, ...fields, button);
    made.addEventListener("submit", async event => {
      event.preventDefault();
      button.disabled = true;
      note.replaceChildren();
      try {
        window.location = "/runs/" + (await Stretto.ask(path, { ...(await read(made)), wait: false })).run_id;
      } catch (error) {
        note.replaceChildren(node("p", { class: "note error" }, error.message));
      }
      button.disabled = false;
    });
    return node("div", {}, made, note);
  }
  // A question: its answer is shown below the form.
  function question(title, path, fields, read, tell) {
    const note = node("div", { "aria-live": "polite" }),
      button = node("button", { class: "primary", type: "submit" }, title);
    const made = node("form", { class: "line" }, ...fields, button);
    made.addEventListener("submit", async event => {
      event.preventDefault();
      button.disabled = true;
      note.replaceChildren(node("p", { class: "note" }, "learning from past jobs …"));
      try {
        note.replaceChildren(...tell(await Stretto.ask(path, await read(made))).map(line => node("p", { class: "note" }, line)));
      } catch (error) {
        note.replaceChildren(node("p", { class: "note error" }, error.message));
      }
      button.disabled = false;
    });
    return node("div", {}, made, note);
  }
  // What a file holds, packed into text so that any format may come.
  const content = file =>
    new Promise((done, fail) => {
      const reader = new FileReader();
      reader.addEventListener("load", () => done(reader.result.slice(reader.result.indexOf(",") + 1)));
      reader.addEventListener("error", () => fail(new Error("the file cannot be read")));
      reader.readAsDataURL(file);
    });
  const file = (label, name) => Stretto.field(label, name, null, { type: "file" });
  const text = (label, name, value, attributes) =>
    Stretto.field(label, name, value, { required: true, size: 16, ...attributes });
  document.getElementById("new").append(
    form(
      "Plan",
      "/api/plan",
      [
        file("Graph file", "file"),
        text("or a workload", "workload", "cholesky", { list: "names-workloads" }),
        text("Cluster", "cluster", "cpu:8x1.0,gpu:2x5.0", { size: 24 }),
        text("Policy", "policy", "heft", { list: "names-policies" }),
        Stretto.field("Time limit, s", "limit", "", { type: "number", min: "0.1", step: "any", size: 6 }),
      ],
      async made => ({
        ...(made.file.files.length
          ? { graph: await content(made.file.files[0]), encoding: "base64", name: made.file.files[0].name }
          : { workload: made.workload.value }),
        cluster: made.cluster.value,
        policy: made.policy.value,
        time_limit_s: made.limit.value ? Number(made.limit.value) : null,
      }),
    ),
    form(
      "Replay",
      "/api/replay",
      [
        file("Trace file", "file"),
        text("or number of generated jobs", "jobs", "1000", { type: "number", min: "1" }),
        text("Processors", "procs", "128", { type: "number", min: "1" }),
        text("Strategy", "strategy", "saf", { list: "names-strategies" }),
        text("Backfilling", "backfill", "easy", { list: "names-backfills" }),
      ],
      async made => ({
        ...(made.file.files.length
          ? {
              trace: await content(made.file.files[0]),
              encoding: "base64",
              procs: Number(made.procs.value),
              name: made.file.files[0].name,
            }
          : {
              generator: "lublin",
              generator_params: { num_jobs: Number(made.jobs.value), num_procs: Number(made.procs.value) },
            }),
        strategy: made.strategy.value,
        backfill: made.backfill.value,
      }),
    ),
    question(
      "When does it start?",
      "/api/when",
      [
        file("Trace file", "file"),
        text("or number of generated jobs", "jobs", "1000", { type: "number", min: "1" }),
        text("Processors", "procs", "128", { type: "number", min: "1" }),
        text("Job", "job", "row:900", { size: 10 }),
        text("Strategy", "strategy", "fcfs", { list: "names-strategies" }),
        text("Backfilling", "backfill", "easy", { size: 10 }),
        Stretto.field("If", "change", "", { size: 14, placeholder: "limit=2h,procs=16" }),
      ],
      async made => ({
        ...(made.file.files.length
          ? { trace: await content(made.file.files[0]), encoding: "base64", procs: Number(made.procs.value) }
          : {
              generator: "lublin",
              generator_params: { num_jobs: Number(made.jobs.value), num_procs: Number(made.procs.value) },
            }),
        job: made.job.value,
        strategy: made.strategy.value,
        backfill: made.backfill.value,
        change: made.change.value || null,
      }),
      found => [
        "Job " + found.job + ": " + found.sentence,
        ...(found.if_sentence ? ["With " + found.if.change + ": " + found.if_sentence] : []),
        ...found.assumed.map(one => "Assumed: " + one),
      ],
    ),
  );
})();
