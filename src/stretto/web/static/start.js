"use strict";
// Forms that start new work: a plan, a replay, or the question when a job starts.
(function () {
  const node = Stretto.node;
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
