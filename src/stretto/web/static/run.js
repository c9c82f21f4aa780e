"use strict";
// One run: its view is fetched when the page opens, and again whenever the stream tells of news.
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
  });

  function head() {
    document.title = view.name + " · Stretto";
    find("name").textContent = view.name || view.id;
    find("state").textContent = view.status;
    find("state").className = "state " + view.status;
    const by = Stretto.decider(view),
      on = view.settings.cluster || (view.settings.procs ? view.settings.procs + " processors" : "");
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
              ? "The input came with a request; it is kept with the run."
              : "No command is kept with this run.",
          ),
      node("p", { class: "small" }, "Report: ", node("code", {}, `stretto report ${view.id} -o report.html`)),
      view.gantt && view.kind !== "compare"
        ? node("p", { class: "small" }, node("a", { href: api + "/plan" }, "The plan as JSON"))
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
      rows.length ? Stretto.table([["#", "number"], ["at", "number"], "kind", "subject", ["fields", "cut"]], rows) : "",
    );
  }
  function ask() {
    find("ask").hidden = !view.can_ask;
    if (!view.can_ask || find("ask-form").children.length) return;
    const isPlan = Boolean(view.graph),
      fields = isPlan
        ? [
            Stretto.field("Policy", "policy", view.settings.policy || "heft", { size: 16, list: "names-policies" }),
            Stretto.field("Cluster", "cluster", "", { size: 24, placeholder: "the same" }),
          ]
        : [
            Stretto.field("Strategy", "strategy", view.settings.strategy || "fcfs", {
              size: 16,
              list: "names-strategies",
            }),
            Stretto.field("Backfilling", "backfill", view.settings.backfill || "easy", {
              size: 12,
              list: "names-backfills",
            }),
          ];
    if (isPlan)
      fields.push(Stretto.field("Time limit, s", "limit", "", { type: "number", min: "0.1", step: "any", size: 6 }));
    const button = node("button", { class: "primary", type: "submit" }, "Ask"),
      form = find("ask-form");
    form.append(...fields, button);
    form.addEventListener("focusin", Stretto.offer, { once: true });
    form.addEventListener("submit", async event => {
      event.preventDefault();
      button.disabled = true;
      find("answer").replaceChildren(node("p", { class: "faint" }, "deciding …"));
      const body = isPlan
        ? {
            policy: form.policy.value || null,
            cluster: form.cluster.value || null,
            time_limit_s: form.limit.value ? Number(form.limit.value) : null,
          }
        : { strategy: form.strategy.value || null, backfill: form.backfill.value || null };
      try {
        answer(await Stretto.ask(api + "/what-if", body));
      } catch (error) {
        find("answer").replaceChildren(node("p", { class: "note error" }, error.message));
      }
      button.disabled = false;
    });
  }
  function answer(found) {
    const names = [
      ["makespan_s", "makespan", Stretto.seconds],
      ["gap", "gap", Stretto.percent],
      ["cost_usd", "cost", Stretto.usd],
      ["utilisation", "utilisation", Stretto.percent],
      ["mean_bounded_slowdown", "mean bounded slowdown", Stretto.number],
      ["p99_bounded_slowdown", "its p99", Stretto.number],
      ["mean_wait_s", "mean wait", Stretto.seconds],
      ["max_wait_s", "longest wait", Stretto.seconds],
      ["utilization", "utilisation", Stretto.percent],
    ];
    const a = found.before.summary,
      b = found.after.summary,
      by = one => one.settings.policy || one.settings.strategy || "";
    const rows = names
      .filter(([name]) => typeof a[name] === "number" && typeof b[name] === "number" && (a[name] || b[name]))
      .map(([name, text, show]) => [
        text,
        show(a[name]),
        show(b[name]),
        a[name] ? (b[name] >= a[name] ? "+" : "") + Stretto.percent(b[name] / a[name] - 1) : "–",
      ]);
    find("answer").replaceChildren(
      Stretto.table(
        [
          "",
          ["this run, " + by(found.before), "number"],
          ["what if, " + by(found.after), "number"],
          ["change", "number"],
        ],
        rows,
      ),
      node("p", {}, node("a", { href: "/runs/" + found.run_id }, "Open the new run")),
    );
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
