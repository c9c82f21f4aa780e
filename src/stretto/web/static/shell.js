"use strict";
// Shared by all pages: the theme, requests with readable errors, event streams, fields.
(function () {
  const root = document.documentElement,
    dark = window.matchMedia("(prefers-color-scheme: dark)");
  const kept = localStorage.getItem("stretto-theme");
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  const now = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const button = document.getElementById("theme");
  const name = () => {
    button.textContent = now() === "dark" ? "Light" : "Dark";
  };
  button.addEventListener("click", () => {
    root.dataset.theme = now() === "dark" ? "light" : "dark";
    localStorage.setItem("stretto-theme", root.dataset.theme);
    name();
    Stretto.repaint();
  });
  dark.addEventListener("change", name);
  name();
})();

Stretto.ask = async function (path, body) {
  const options =
    body === undefined
      ? {}
      : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const reply = await fetch(path, options);
  if (reply.status === 401) {
    window.location = "/login?next=" + encodeURIComponent(window.location.pathname);
  }
  const found = await reply.json();
  if (!reply.ok) throw new Error(found.error + (found.field ? " (" + found.field + ")" : ""));
  return found;
};

// A stream of events, open while the page is visible: browsers allow few of them at a time.
// path() says where to begin; handlers get the data, and one that returns true ends the stream.
Stretto.stream = function (path, handlers) {
  let source = null,
    isOver = false;
  function close() {
    if (source) source.close();
    source = null;
  }
  function open() {
    if (source || isOver || document.hidden) return;
    source = new EventSource(path());
    for (const [name, handle] of Object.entries(handlers))
      source.addEventListener(name, message => {
        if (handle(JSON.parse(message.data))) {
          isOver = true;
          close();
        }
      });
  }
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  open();
};

// Names that fields accept, suggested while typing.
Stretto.offer = async function () {
  const names = await Stretto.ask("/api/names");
  for (const [kind, list] of Object.entries(names))
    document.body.append(
      Stretto.node("datalist", { id: "names-" + kind }, ...list.map(value => Stretto.node("option", { value }))),
    );
};

// A field with a name: text, a number, or one of a list.
Stretto.field = function (label, name, value, attributes, choices) {
  const input = choices
    ? Stretto.node(
        "select",
        { name, ...attributes },
        ...choices.map(one => Stretto.node("option", { selected: one === value }, one)),
      )
    : Stretto.node("input", { name, value, ...attributes });
  return Stretto.node("label", {}, label, input);
};

Stretto.headline = function (run) {
  const summary = run.summary;
  if (["failed", "interrupted"].includes(run.status) && (run.kind === "run" || run.status === "failed")) {
    const what = Stretto.failure(run),
      done = Stretto.numDone(summary);
    return run.status + (what ? ": " + what : "") + (done ? "; " + done + " tasks done" : "");
  }
  if (summary.error) return summary.error;
  if (summary.best) return "best: " + summary.best;
  if (summary.mean_bounded_slowdown !== undefined) return "slowdown " + Stretto.number(summary.mean_bounded_slowdown);
  if (typeof summary.mean_completion_s === "number")
    return "mean completion " + Stretto.seconds(summary.mean_completion_s);
  if (summary.makespan_s !== undefined)
    return (
      (run.kind === "train" ? "best plan " : "") +
      Stretto.seconds(summary.makespan_s) +
      (typeof summary.gap === "number" ? (Stretto.isOptimal(summary.gap) ? ", " : ", gap ") + Stretto.gap(summary.gap) : "") +
      (summary.is_timed ? ", timed" : "")
    );
  return run.num_events ? run.num_events.toLocaleString("en") + " events" : "";
};
Stretto.decider = run =>
  (run.settings.dispatch || run.settings.policy || run.settings.strategy || run.settings.algorithm || run.settings.engine || "") +
  (run.settings.weights ? ` (${run.settings.weights})` : "");

// A command with a button that copies it.
Stretto.command = function (text) {
  const button = Stretto.node("button", { type: "button", "aria-label": "Copy: " + text }, "Copy"),
    shown = Stretto.node("code", {}, text);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      window.getSelection().selectAllChildren(shown); // browsers let pages copy over https or on this machine only
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  return Stretto.node("div", { class: "command" }, shown, button);
};
// What an empty list offers: examples to load, and commands that make a first run.
Stretto.noRuns = function () {
  const node = Stretto.node,
    note = node("div", { "aria-live": "polite" });
  const example = (title, text, path, body) => {
    const button = node("button", { type: "button", class: "primary" }, title);
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        window.location = "/runs/" + (await Stretto.ask(path, { ...body, wait: false })).run_id;
      } catch (error) {
        note.replaceChildren(node("p", { class: "note error" }, error.message));
        button.disabled = false;
      }
    });
    return node("div", { class: "example" }, button, node("p", { class: "faint" }, text));
  };
  return node(
    "div",
    { class: "empty" },
    node("h2", {}, "No runs yet"),
    node("p", {}, "Load an example:"),
    node(
      "div",
      { class: "examples" },
      example("Plan a task graph", "A Cholesky factorization on 8 CPUs and 2 GPUs.", "/api/plan", {
        workload: "cholesky",
        cluster: "cpu:8x1.0,gpu:2x5.0",
        policy: "heft",
        name: "example: cholesky",
      }),
      example("Replay a queue", "1,000 generated jobs on 128 processors.", "/api/replay", {
        generator: "lublin",
        generator_params: { num_jobs: 1000, num_procs: 128 },
        strategy: "saf",
        name: "example: queue",
      }),
    ),
    note,
    node("p", {}, "Or make one in a terminal:"),
    Stretto.command("stretto plan workload:cholesky -c cpu:8x1.0,gpu:2x5.0 --log"),
    Stretto.command("stretto train doppler workload:cholesky -c cpu:8x1.0,gpu:2x5.0 --budget 30s"),
    Stretto.command("stretto replay trace:lublin --strategy saf --log"),
  );
};
