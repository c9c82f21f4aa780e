"use strict";
// The map of a cluster: tiles in the boxes of their machines, colored by load, at a time that a slider picks.
// Two kinds of data: the utilization of devices (a tile per device), and the estimated load of shared parts (a tile
// per part: the mean as a bar, the 95 % interval as a whisker; the curve of the selected part stands below).
Stretto.map = function (holder, first) {
  const node = Stretto.node,
    isBelief = first.kind === "belief";
  let data = first,
    frame = 0,
    isFollowing = true,
    picked = null,
    refresh = [],
    curve = null,
    shape = "";
  const slider = node("input", { type: "range", min: "0", step: "1", "aria-label": "Time shown on the map" }),
    moment = node("output", {}),
    key = node("ul", { class: "legend" }),
    board = node("div", { class: "map" }),
    below = node("div", {});
  holder.append(node("div", { class: "map-time" }, slider, moment), key, board, below);
  slider.addEventListener("input", () => {
    frame = Number(slider.value);
    isFollowing = frame === frames() - 1;
    show();
  });

  const frames = () => (isBelief ? data.at_s.length : data.use[0].length + 1);
  // The last moment of a map of devices is the whole run: that is what one looks at first.
  const isWhole = () => !isBelief && frame === frames() - 1;
  const percent = value => (value === null || value === undefined ? "–" : Math.round(100 * value) + " %");
  const short = (low, high) => Math.round(100 * low) + "–" + Math.round(100 * high);
  const color = value =>
    `color-mix(in oklab, var(--heat-high) ${Math.round(100 * Math.max(0, Math.min(1, value || 0)))}%, var(--heat-low))`;
  const capacity = part =>
    part.kind === "core" || !part.capacity ? part.model || "" : Stretto.number(part.capacity / 1e9, 3) + " GB/s";

  function gauge(...marks) {
    return node("span", { class: "gauge", "aria-hidden": "true" }, ...marks);
  }
  function tile(name, note, onpick) {
    const value = node("span", { class: "tile-value" }),
      fill = node("i", { class: "fill" }),
      made = node(
        onpick ? "button" : "div",
        { class: "tile", type: onpick ? "button" : null, title: note ? name + ", " + note : name, onclick: onpick || (() => {}) },
        node("span", { class: "tile-name" }, node("span", {}, name), note ? node("small", {}, note) : null),
        value,
        gauge(fill),
      );
    return { made, value, fill };
  }
  function level(found, value) {
    found.fill.style.width = 100 * (value || 0) + "%";
    found.fill.style.background = color(value);
  }

  // Utilization of devices.
  function device(k) {
    const found = tile(data.names[k], data.notes[k]);
    refresh.push(() => {
      const value = isWhole() ? data.total[k] : data.use[k][frame];
      level(found, value);
      found.value.textContent = percent(value);
    });
    return found.made;
  }
  function devices() {
    return data.groups.map(group =>
      node(
        "div",
        { class: "box", role: "group", "aria-label": group.name || "devices" },
        group.name ? node("h3", {}, group.name) : null,
        node("div", { class: "tiles" + (data.names.length < 5 ? " few" : "") }, ...group.tiles.map(device)),
      ),
    );
  }

  // Estimated load of parts.
  function resource(part, k) {
    const found = tile(part.name, capacity(part), () => pick(k)),
      whisker = node("i", { class: "whisker" }),
      raw = node("i", { class: "raw" }),
      truth = node("i", { class: "truth" });
    found.made.querySelector(".gauge").append(whisker, raw, truth);
    const hasCounter = data.raw && data.raw[k].some(value => value !== null);
    if (!hasCounter) found.made.classList.add("hidden-part");
    refresh.push(() => {
      const low = data.low[k][frame],
        high = data.high[k][frame],
        mean = data.mean[k][frame];
      level(found, mean);
      whisker.style.left = 100 * low + "%";
      whisker.style.width = 100 * (high - low) + "%";
      const spread = high - low > 0.005 ? short(low, high) : "";
      found.value.replaceChildren(percent(mean), spread ? node("small", {}, spread) : "");
      for (const [mark, values] of [
        [raw, data.raw],
        [truth, data.truth],
      ]) {
        const value = values ? values[k][frame] : null;
        mark.hidden = value === null || value === undefined;
        if (!mark.hidden) mark.style.left = 100 * Math.max(0, Math.min(1, value)) + "%";
      }
      found.made.setAttribute("aria-pressed", String(picked === k));
      found.made.setAttribute(
        "aria-description",
        `${data.resources[k]}: estimated load ${percent(mean)}, 95 % interval ${percent(low)} to ${percent(high)}`,
      );
    });
    return found.made;
  }
  function processor(part, k) {
    const what = node("span", { class: "doing" }),
      made = node("div", { class: "chip" }, node("b", {}, part.name), what);
    refresh.push(() => {
      const now = data.running[k] ? data.running[k][frame] : -1;
      what.textContent = now < 0 ? "idle" : data.doing[now];
      made.classList.toggle("busy", now >= 0);
    });
    return made;
  }
  function box(part) {
    const own = [];
    if (part.resource !== null) own.push(resource(part, part.resource));
    if (part.processor !== null) own.push(processor(part, part.processor));
    if (!own.length) own.push(node("div", { class: "chip" }, node("b", {}, part.name), node("span", {}, part.model)));
    if (!part.inside.length) {
      const leaf = own.length > 1 ? node("div", {}, ...own) : own[0];
      leaf.classList.add("leaf");
      // A part of the way to memory keeps its line to itself, also where nothing hangs on it.
      leaf.classList.toggle("alone", !["core", "nic", "cpu", "gpu", "fpga"].includes(part.kind));
      return leaf;
    }
    return node(
      "div",
      { class: "part", role: "group", "aria-label": part.name },
      ...own,
      node("div", { class: "inside" }, ...part.inside.map(box)),
    );
  }
  function machines() {
    return data.machines.map(machine =>
      node(
        "div",
        { class: "box", role: "group", "aria-label": machine.name },
        node("h3", {}, machine.name),
        node("div", { class: "sockets" }, ...machine.boxes.map(box)),
        machine.joints.length
          ? node(
              "div",
              { class: "joints" },
              ...machine.joints.map(part =>
                part.resource === null ? node("div", { class: "chip" }, part.name) : resource(part, part.resource),
              ),
            )
          : null,
      ),
    );
  }
  function pick(k) {
    picked = k;
    show();
    draw();
  }
  function draw() {
    const k = picked,
      series = [
        {
          name: "estimate",
          values: data.mean[k],
          band: [data.low[k], data.high[k]],
          bandName: "95 % interval",
          step: true, // an estimate holds until the next reading
        },
      ];
    if (data.raw && data.raw[k].some(value => value !== null))
      series.push({
        name: "its counters",
        values: data.raw[k],
        color: Stretto.series(1),
        thin: true,
        dash: [2, 3],
        step: true,
      });
    if (data.truth)
      series.push({
        name: "real load (known in simulations only)",
        values: data.truth[k],
        color: Stretto.series(2),
        thin: true,
        step: true,
      });
    const spec = {
      label: "Estimated load of " + data.resources[k],
      x: data.at_s,
      xTime: true,
      yPercent: true,
      yMin: 0,
      yMax: 1,
      height: 200,
      series,
    };
    below.querySelector("h3")?.remove();
    below.prepend(node("h3", {}, "Estimated load of " + data.resources[k] + " over time"));
    if (curve) curve.update(spec);
    else curve = Stretto.lines(below, spec);
  }
  // Selected at first: the part with the highest estimated load among those that are uncertain.
  function fullest() {
    let best = 0,
      most = -1;
    data.mean.forEach((values, k) => {
      if (data.high[k][frame] - data.low[k][frame] > 0.01 && values[frame] > most) {
        best = k;
        most = values[frame];
      }
    });
    return best;
  }
  // A live run is followed; of a finished one, the busiest moment says more than the last.
  function begin() {
    frame = frames() - 1;
    if (!isBelief || data.isLive) return;
    let most = -1;
    data.at_s.forEach((_, t) => {
      const sum = data.mean.reduce((total, values) => total + values[t], 0);
      if (sum > most) {
        most = sum;
        frame = t;
      }
    });
    isFollowing = frame === frames() - 1;
  }
  function legend() {
    const scale = node("i", { class: "scale" });
    const entry = (mark, text) => node("li", {}, mark, text);
    const parts = [entry(scale, isBelief ? "bar: estimated load, 0 to 100 % of capacity" : "bar: share of time in use, 0 to 100 %")];
    if (isBelief) {
      parts.push(entry(node("i", { class: "whisker sample" }), "the real load lies in this range with 95 % probability"));
      if (data.raw) parts.push(entry(node("i", { class: "raw sample" }), "reading of its own counter"));
      if (data.truth) parts.push(entry(node("i", { class: "truth sample" }), "real load (known in simulations only)"));
      if (data.raw && data.raw.some(row => row.every(value => value === null)))
        parts.push(entry(node("i", { class: "dashed" }), "dashed: no counter, estimated from other parts"));
    }
    key.replaceChildren(...parts);
  }
  function show() {
    slider.max = String(frames() - 1);
    if (isFollowing) frame = frames() - 1;
    slider.value = String(frame);
    if (isBelief) moment.textContent = "at " + Stretto.seconds(data.at_s[frame], 4);
    else {
      const step = data.end_s / (frames() - 1);
      moment.textContent = isWhole()
        ? "whole run"
        : "from " + Stretto.seconds(frame * step, 3) + " to " + Stretto.seconds((frame + 1) * step, 3);
    }
    slider.setAttribute("aria-valuetext", moment.textContent);
    refresh.forEach(one => one());
  }
  function update(next) {
    data = next;
    const now = JSON.stringify(isBelief ? data.resources : [data.names, data.groups]);
    if (now !== shape) {
      shape = now;
      refresh = [];
      board.replaceChildren(...(isBelief ? machines() : devices()));
      board.classList.toggle("beliefs", isBelief);
    }
    legend();
    if (isBelief && picked === null) {
      begin();
      picked = fullest();
    }
    show();
    if (isBelief) draw();
  }
  update(first);
  return { update };
};
