"use strict";
// Intervals in rows on one axis: low to high as a line, quarters as a box where they are known, the middle as a mark.
// rows: [{ name, low, q1, middle, q3, high, note }]; options: { label, unit: "s" or "" }
Stretto.boxes = function (holder, rows, options) {
  const node = Stretto.node,
    show = options.unit === "s" ? value => Stretto.seconds(value, 4) : value => Stretto.number(value, 4);
  const least = Math.min(...rows.map(row => row.low)),
    most = Math.max(...rows.map(row => row.high));
  // Close results would all look alike from zero on; the axis says where it begins.
  const begin = least > 0.5 * most ? Math.max(0, least - 0.15 * (most - least || most)) : Math.min(0, least),
    end = most + 0.04 * (most - begin || 1);
  const at = value => (100 * (value - begin)) / (end - begin) + "%";
  const mark = (kind, from, to) => {
    const made = node("i", { class: kind });
    made.style.left = at(from);
    if (to !== undefined) made.style.width = `calc(${at(to)} - ${at(from)})`;
    return made;
  };
  const isLeft = Stretto.differAtEnd(rows.map(row => row.name));
  const unit = options.unit === "s" ? Stretto.unitOf(most) : ["", 1];
  const ticks = Stretto.ticks(begin, end, 5, unit[1]).map(([value, text]) => {
    const made = node("span", {}, text);
    made.style.left = at(value);
    return made;
  });
  const lines = rows.map(row => {
    const words = row.low === row.high ? show(row.middle) : `${show(row.middle)} (${show(row.low)} to ${show(row.high)})`;
    return node(
      "tr",
      {},
      node("th", { scope: "row", title: row.name }, node("span", { class: isLeft ? "tail left" : "tail" }, node("bdi", {}, row.name))),
      node(
        "td",
        { class: "plot", title: words },
        node(
          "span",
          { class: "box-plot", "aria-hidden": "true" },
          mark("reach", row.low, row.high),
          row.q1 === undefined ? null : mark("quarters", row.q1, row.q3),
          mark("middle", row.middle),
        ),
      ),
      node("td", { class: "number" }, show(row.middle)),
      node("td", { class: "faint small note-cell" }, row.note || (row.low === row.high ? "" : `${show(row.low)} to ${show(row.high)}`)),
    );
  });
  const axis = node("div", { class: "box-axis", "aria-hidden": "true" }, ...ticks);
  holder.append(
    node(
      "div",
      { class: "table", tabindex: "0", role: "region", "aria-label": options.label },
      node(
        "table",
        { class: "boxes" },
        node("caption", {}, options.label + (begin > 0 ? `; the axis begins at ${show(begin)}` : "")),
        node("tbody", {}, ...lines),
        node(
          "tfoot",
          { "aria-hidden": "true" },
          node("tr", {}, node("td", {}, unit[0] ? "time (" + unit[0] + ")" : ""), node("td", { class: "plot" }, axis), node("td", {}), node("td", {})),
        ),
      ),
    ),
  );
};
// Policies on each instance.
Stretto.spreads = function (holder, charts) {
  holder.replaceChildren();
  for (const chart of charts) {
    const body = Stretto.node("div", {});
    holder.append(Stretto.node("h3", {}, chart.title), body);
    const rows = chart.rows.map(row => ({ ...row, name: row.name + (row.count > 1 ? ` (${row.count} results)` : "") }));
    const label = chart.figure + (chart.rows.some(row => row.high > row.low) ? ", median and 95 % interval" : "") + (chart.note ? "; " + chart.note : "");
    Stretto.boxes(body, rows, { label, unit: chart.unit });
  }
};
// How long the tasks of each category took: least, quarters and longest, as Nextflow's report shows them.
Stretto.durations = function (holder, chart) {
  const byColor = new Map();
  chart.length.forEach((value, i) => {
    if (chart.state && chart.state[i] !== 1) return; // only what came to its end
    if (!byColor.has(chart.color[i])) byColor.set(chart.color[i], []);
    byColor.get(chart.color[i]).push(value);
  });
  const quantile = (sorted, share) => {
    const place = share * (sorted.length - 1),
      low = Math.floor(place);
    return sorted[low] + (place - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
  };
  const rows = [...byColor.entries()]
    .sort((a, b) => a[0] - b[0])
    .map(([color, values]) => {
      const sorted = Float64Array.from(values).sort(),
        count = values.length,
        total = values.reduce((sum, value) => sum + value, 0);
      return {
        name: chart.legend[color][0] || "all tasks",
        low: sorted[0],
        q1: quantile(sorted, 0.25),
        middle: quantile(sorted, 0.5),
        q3: quantile(sorted, 0.75),
        high: sorted[count - 1],
        note: `${count.toLocaleString("en")} task${count === 1 ? "" : "s"}, ${Stretto.seconds(total, 3)} in total`,
      };
    });
  holder.replaceChildren();
  if (rows.length) Stretto.boxes(holder, rows, { label: "line: shortest to longest task; box: the middle half; mark: median", unit: "s" });
  return rows.length;
};
