"use strict";
// One run: its view is fetched when the page opens, and again whenever the stream reports events.
(function () {
  const node = Stretto.node,
    id = decodeURIComponent(window.location.pathname.split("/").pop()),
    api = "/api/runs/" + encodeURIComponent(id);
  const find = name => document.getElementById(name),
    NUM_EVENTS = 12;
  let view = null,
    isStale = false,
    isFetching = false,
    events = [],
    lastTook = 0;
  const sections = Stretto.sections(find("sections"), {
    explain: task => Stretto.ask("/api/explain/" + encodeURIComponent(id) + "/" + task),
    stopSteering: partition => Stretto.ask("/api/steering", { is_on: false, partition }),
    output: task => Stretto.ask(api + "/output/" + encodeURIComponent(task)),
  });

  function head() {
    document.title = view.name + " · Stretto";
    find("name").textContent = view.name || view.id;
    find("state").textContent = view.status;
    find("state").className = "state " + view.status;
    find("found").textContent = view.answer.replaceAll(" %", "\u00a0%");
    find("found").hidden = !view.answer;
    const by = Stretto.decider(view),
      stream = view.settings.stream,
      on =
        view.settings.cluster && stream !== undefined
          ? view.settings.cluster + ", stream " + stream
          : view.settings.cluster || (view.settings.procs ? view.settings.procs + " processors" : "");
    const parent = view.settings.parent;
    find("about").replaceChildren(
      ...[
        view.kind + (by ? " by " + by : "") + (on ? " on " + on : ""),
        "started " + Stretto.clock(view.started_s),
        view.ended_s ? "took " + Stretto.seconds(view.ended_s - view.started_s, 3) : null,
        view.id,
      ]
        .filter(Boolean)
        .join(" · "),
      parent ? " · what-if of " : "",
      parent ? node("a", { href: "/runs/" + parent }, parent) : "",
    );
    const figures = find("figures");
    figures.replaceChildren(Stretto.factList(view));
    if (view.summary.error) figures.append(node("p", { class: "note error" }, view.summary.error));
  }
  function jump() {
    const links = [...find("sections").children].map(part =>
      node("a", { href: "#" + part.id }, part.querySelector("h2").textContent),
    );
    find("jump").replaceChildren(...links);
  }
  function how() {
    const command = view.settings.command,
      rest = Object.entries(view.settings).filter(([name, value]) => name !== "command" && value !== null);
    find("how").replaceChildren(
      command
        ? node("pre", { tabindex: "0" }, command)
        : node(
            "p",
            { class: "faint" },
            view.can_ask
              ? "The input was sent with the request and is kept with the run; there is no command that repeats it."
              : "This run has no recorded command.",
          ),
      ["failed", "interrupted"].includes(view.status) && ["run", "train"].includes(view.kind)
        ? node(
            "p",
            { class: "small" },
            "Resume: ",
            node("code", {}, `stretto ${view.kind} ${view.kind === "run" ? "--resume" : "--continue"} ${view.id}`),
          )
        : "",
      node("p", { class: "small" }, "Report: ", node("code", {}, `stretto report ${view.id} -o report.html`)),
      view.gantt && ["plan", "run", "train"].includes(view.kind)
        ? node("p", { class: "small" }, node("a", { href: api + "/plan" }, "Download the plan (JSON)"))
        : "",
      node(
        "details",
        {},
        node("summary", {}, "Settings"),
        Stretto.table(
          ["setting", "value"],
          rest.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
        ),
      ),
    );
  }
  function log() {
    find("events-note").textContent = events.length
      ? "the latest " +
        Math.min(NUM_EVENTS, events.length) +
        " of " +
        events[events.length - 1].seq.toLocaleString("en")
      : "none";
    const rows = events
      .slice(-NUM_EVENTS)
      .reverse()
      .map(event => [
        String(event.seq),
        Stretto.seconds(event.at_s - view.started_s),
        event.kind,
        event.subject,
        Object.entries(event.fields)
          .map(
            ([name, value]) => name + " " + (typeof value === "number" ? Stretto.number(value) : JSON.stringify(value)),
          )
          .join(", ")
          .slice(0, 300),
      ]);
    find("events").replaceChildren(
      rows.length ? Stretto.table([["#", "number"], ["time", "number"], "kind", "subject", ["fields", "cut"]], rows) : "",
    );
  }
  function ask() {
    find("ask").hidden = !view.can_ask;
    if (view.can_ask && !find("ask-form").children.length)
      Stretto.whatIf(find("ask-form"), find("answer"), view, api + "/what-if");
  }
  async function fetchView() {
    if (isFetching) {
      isStale = true;
      return;
    }
    isFetching = true;
    isStale = false;
    const begin = performance.now();
    try {
      view = await Stretto.ask(api + "/view");
      head();
      sections.update(view);
      jump();
      ask();
      how();
      log();
      document.body.dataset.ready = String(view.num_events);
    } catch (error) {
      find("figures").replaceChildren(node("p", { class: "note error" }, error.message));
    }
    isFetching = false;
    lastTook = performance.now() - begin;
    // A large view is fetched less often, so that following a run never takes more than a part of the time.
    if (isStale) setTimeout(fetchView, Math.min(10000, 2 * lastTook));
  }
  function follow() {
    let isFirst = true;
    const place = () => (events.length ? events[events.length - 1].seq : Math.max(0, view.num_events - NUM_EVENTS));
    Stretto.stream(() => api + "/stream?after=" + place(), {
      events: found => {
        events = events.concat(found.events).slice(-10 * NUM_EVENTS);
        log();
        if (!isFirst || events[events.length - 1].seq > view.num_events) fetchView();
        isFirst = false;
      },
      end: found => {
        if (found.status !== view.status || isStale) fetchView();
        return true;
      },
    });
  }
  fetchView().then(() => {
    if (view) follow();
  });
})();
