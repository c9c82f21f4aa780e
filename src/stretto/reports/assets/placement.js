"use strict";
// A placement on its graph: layers from left to right, colors by device; groups of tasks where there are too many.
Stretto.placement = function (holder, first, label) {
  const SVG = "http://www.w3.org/2000/svg",
    legend = Stretto.node("ul", { class: "legend" });
  const frame = Stretto.node("div", { class: "chart" }),
    svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("role", "img");
  frame.append(svg);
  holder.append(legend, frame);
  let data = first,
    box = [0, 0, 1000, 400];
  const make = (tag, attributes) => {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return node;
  };
  const show = () => svg.setAttribute("viewBox", box.join(" "));
  function size() {
    const counts = new Map();
    for (const node of data.nodes) counts.set(node[0], (counts.get(node[0]) || 0) + 1);
    const tallest = data.kind === "groups" ? data.rows.length : Math.max(...counts.values());
    return Math.max(120, Math.min(640, 24 + tallest * (data.kind === "groups" ? 30 : 22)));
  }
  function draw() {
    const high = size(),
      wide = 1280,
      left = data.kind === "groups" ? 90 : 24;
    const px = node => left + ((node[0] + 0.5) / data.num_layers) * (wide - left - 24),
      py = node => 12 + node[1] * (high - 24);
    box = [0, 0, wide, high];
    svg.style.maxHeight = high * 1.4 + "px";
    const most = Math.max(1, ...data.nodes.map(node => node[4]));
    const radius = node =>
      data.kind === "groups"
        ? 3 + 10 * Math.sqrt(node[4] / most)
        : Math.max(3, Math.min(8, 300 / data.nodes.length + 2));
    const heaviest = Math.max(1e-300, ...data.edges.map(edge => edge[2] || 0)),
      parts = [];
    for (const [a, b, amount, crosses] of data.edges) {
      const x0 = px(data.nodes[a]),
        y0 = py(data.nodes[a]),
        x1 = px(data.nodes[b]),
        y1 = py(data.nodes[b]),
        bend = (x1 - x0) / 2;
      const share = data.kind === "groups" ? Math.sqrt((amount || 0) / heaviest) : 0.5,
        width = 0.5 + 1.5 * share * (data.kind === "groups") + 0.4 * (data.kind !== "groups");
      const density = data.kind === "groups" ? 0.05 + 0.4 * share * share : crosses ? 0.45 : 0.35;
      parts.push(
        make("path", {
          d: `M${x0} ${y0}C${x0 + bend} ${y0} ${x1 - bend} ${y1} ${x1} ${y1}`,
          fill: "none",
          stroke: crosses ? "var(--c3)" : "var(--faint)",
          "stroke-width": width.toFixed(2),
          "stroke-opacity": density.toFixed(3),
        }),
      );
    }
    if (data.kind === "groups")
      data.rows.forEach((name, row) => {
        const text = make("text", {
          x: 6,
          y: 12 + ((row + 0.5) / data.rows.length) * (high - 24) + 4,
          "font-size": 12,
          fill: "var(--faint)",
        });
        text.textContent = name;
        parts.push(text);
      });
    for (const node of data.nodes) {
      const dot = make("circle", {
        cx: px(node),
        cy: py(node),
        r: radius(node).toFixed(2),
        fill: `var(--c${node[3] % 9})`,
        stroke: "var(--panel)",
        "stroke-width": 1,
      });
      const title = document.createElementNS(SVG, "title");
      title.textContent = node[2] + " on " + data.rows[node[3]];
      dot.append(title);
      parts.push(dot);
    }
    svg.replaceChildren(...parts);
    svg.setAttribute(
      "aria-label",
      label +
        ": " +
        data.nodes.length +
        (data.kind === "groups" ? " groups of tasks" : " tasks") +
        " in " +
        data.num_layers +
        " layers, " +
        data.edges.filter(edge => edge[3]).length +
        " links cross devices",
    );
    name();
    show();
  }
  function name() {
    const used = [...new Set(data.nodes.map(node => node[3]))].sort((a, b) => a - b).slice(0, 24);
    const entries =
      data.kind === "groups"
        ? []
        : used.map(row => Stretto.node("li", {}, Stretto.node("i", { color: `var(--c${row % 9})` }), data.rows[row]));
    entries.push(
      Stretto.node("li", {}, Stretto.node("i", { color: "var(--c3)" }), "link between devices"),
      Stretto.node("li", {}, Stretto.node("i", { color: "var(--faint)" }), "link within a device"),
    );
    legend.replaceChildren(...entries);
  }
  function zoom(factor) {
    const [x, y, w, h] = box,
      wide = Math.min(1280, w * factor),
      high = (h * wide) / w;
    box = [x + (w - wide) / 2, y + (h - high) / 2, wide, high];
    show();
  }
  const pan = (dx, dy) => {
    box[0] += dx * box[2];
    box[1] += dy * box[3];
    show();
  };
  const KEYS = {
    "+": () => zoom(0.8),
    "=": () => zoom(0.8),
    "-": () => zoom(1.25),
    0: draw,
    ArrowLeft: () => pan(-0.1, 0),
    ArrowRight: () => pan(0.1, 0),
    ArrowUp: () => pan(0, -0.1),
    ArrowDown: () => pan(0, 0.1),
  };
  Stretto.keys(svg, KEYS);
  let drag = null;
  svg.addEventListener("pointerdown", event => {
    drag = [event.clientX, event.clientY];
  });
  window.addEventListener("pointerup", () => {
    drag = null;
  });
  svg.addEventListener("pointermove", event => {
    if (!drag || !event.buttons) return;
    pan((drag[0] - event.clientX) / svg.clientWidth, (drag[1] - event.clientY) / svg.clientHeight);
    drag = [event.clientX, event.clientY];
  });
  Stretto.wheel(svg, event => zoom(Math.exp(event.deltaY / 400)));
  draw();
  return {
    update: next => {
      data = next;
      draw();
    },
  };
};
