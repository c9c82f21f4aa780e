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
      Stretto.seconds(summary.makespan_s) +
      (typeof summary.gap === "number" ? (Stretto.isOptimal(summary.gap) ? ", " : ", gap ") + Stretto.gap(summary.gap) : "") +
      (summary.is_timed ? ", timed" : "")
    );
  return run.num_events ? run.num_events.toLocaleString("en") + " events" : "";
};
Stretto.decider = run =>
  (run.settings.dispatch || run.settings.policy || run.settings.strategy || run.settings.algorithm || run.settings.engine || "") +
  (run.settings.weights ? ` (${run.settings.weights})` : "");
