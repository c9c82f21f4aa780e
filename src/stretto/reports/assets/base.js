"use strict";
// What all charts share: words for numbers, the theme, canvases that stay sharp, one tooltip.
const Stretto = {};

// The data that stand in a page of its own; large ones are packed.
Stretto.data = async function () {
  const holder = document.getElementById("data"),
    text = holder.textContent;
  if (!holder.dataset.packed) return JSON.parse(text);
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(holder.dataset.packed));
  return JSON.parse(await new Response(plain).text());
};

Stretto.UNITS = [
  ["ns", 1e-9],
  ["µs", 1e-6],
  ["ms", 1e-3],
  ["s", 1],
  ["min", 60],
  ["h", 3600],
  ["d", 86400],
];

Stretto.unitOf = function (span) {
  let best = Stretto.UNITS[0];
  for (const unit of Stretto.UNITS) if (span >= unit[1] * ({ min: 10, h: 3, d: 4 }[unit[0]] || 1)) best = unit;
  return span > 0 ? best : Stretto.UNITS[3];
};
Stretto.number = function (value, digits) {
  if (value === null || value === undefined || !isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-6)) return value.toExponential(2);
  if (size >= 1e4) return Math.round(value).toLocaleString("en");
  return Number(value.toPrecision(digits || 4)).toLocaleString("en", { maximumSignificantDigits: digits || 4 });
};
Stretto.seconds = function (value, digits) {
  if (value === null || value === undefined || !isFinite(value)) return "–";
  const [name, size] = Stretto.unitOf(Math.abs(value));
  return Stretto.number(value / size, digits) + " " + name;
};
// A wait as sentences and tables write it: in the largest unit of which it has one.
Stretto.wait = function (value) {
  if (value === null || value === undefined || !isFinite(value)) return "–";
  const [name, size] = Stretto.UNITS.slice(4).reverse().find(unit => value >= unit[1]) || ["s", 1];
  if (size === 1) return Stretto.number(value, 3) + " s";
  const found = value / size;
  return (found < 100 ? found.toFixed(1) : Math.round(found).toLocaleString("en")) + " " + name;
};
Stretto.percent = value => (value === null || value === undefined ? "–" : Stretto.number(100 * value, 3) + " %");
// A share above the lower bound: within rounding of it, the plan is proven to be optimal.
Stretto.isOptimal = gap => gap <= 1e-9;
Stretto.gap = gap => (Stretto.isOptimal(gap) ? "proven optimal" : gap < 0.0005 ? "< 0.1 %" : (100 * gap).toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 }) + " %");
Stretto.usd = value =>
  "$" + (value >= 100 ? Stretto.number(Math.round(100 * value) / 100, 6) : Stretto.number(value, 3));
Stretto.clock = seconds => new Date(seconds * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
Stretto.ago = function (seconds) {
  const past = Math.max(0, Date.now() / 1000 - seconds);
  if (past < 60) return "just now";
  if (past < 3600) return Math.floor(past / 60) + " min ago";
  if (past < 86400) return Math.floor(past / 3600) + " h ago";
  return past < 30 * 86400 ? Math.floor(past / 86400) + " d ago" : Stretto.clock(seconds);
};

// What a run that did not come to its end died of, in a few words; "" where nobody wrote it down.
Stretto.failure = function (run) {
  const failed = run.failed && run.failed.length ? run.failed : run.summary.failed || [];
  if (!failed.length) return run.summary.error || run.summary.reason || "";
  const rest = failed.length > 1 ? ` (and ${failed.length - 1} more)` : "";
  return failed[0].task + (failed[0].reason ? ", " + failed[0].reason : "") + rest;
};
Stretto.numDone = function (summary) {
  if (typeof summary.num_done_now !== "number" || typeof summary.num_tasks !== "number") return "";
  const done = summary.num_done_now + (summary.num_done_before || 0);
  return `${done.toLocaleString("en")} of ${summary.num_tasks.toLocaleString("en")}`;
};

Stretto.css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
Stretto.series = index => Stretto.css("--c" + (index % 9));
Stretto.FONT = 'system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif';

// Whoever draws with colors is told when they change.
Stretto.painters = new Set();
Stretto.repaint = () => {
  for (const paint of Stretto.painters) paint();
};
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", Stretto.repaint);

Stretto.node = function (tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "color") node.style.background = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
};

// A canvas that fills its holder's width at a height of its own, and is painted anew when that changes.
Stretto.canvas = function (holder, label, height, paint) {
  const canvas = Stretto.node("canvas", { tabindex: "0", role: "img", "aria-label": label });
  const sheet = { canvas, pen: canvas.getContext("2d"), width: 0, height: height() };
  holder.append(canvas);
  let waiting = false;
  sheet.draw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      if (sheet.width) paint(sheet);
    });
  };
  sheet.size = () => {
    const ratio = window.devicePixelRatio || 1;
    sheet.width = holder.clientWidth;
    sheet.height = height();
    canvas.style.height = sheet.height + "px";
    canvas.width = Math.round(sheet.width * ratio);
    canvas.height = Math.round(sheet.height * ratio);
    sheet.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (sheet.width) paint(sheet);
  };
  new ResizeObserver(() => {
    if (holder.clientWidth !== sheet.width) sheet.size();
  }).observe(holder);
  Stretto.painters.add(sheet.draw);
  return sheet;
};

// Keys of a chart that has the focus: a table from key to action.
Stretto.keys = function (chart, actions) {
  chart.addEventListener("keydown", event => {
    const action = actions[event.key];
    if (action && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      action();
    }
  });
};
// The wheel belongs to the page, unless the chart has the focus (or always takes it) or Ctrl is held.
Stretto.wheel = function (chart, action, isAlways) {
  const turned = event => {
    if (!isAlways && !event.ctrlKey && document.activeElement !== chart) return;
    event.preventDefault();
    action(event);
  };
  chart.addEventListener("wheel", turned, { passive: false });
};

Stretto.tip = function (lines, x, y) {
  if (!Stretto.tipNode) {
    Stretto.tipNode = Stretto.node("div", { class: "tip", role: "status" });
    document.body.append(Stretto.tipNode);
  }
  const tip = Stretto.tipNode;
  tip.style.visibility = lines ? "visible" : "hidden";
  if (!lines) return;
  tip.replaceChildren(
    ...lines.map((line, k) => {
      const [text, color] = Array.isArray(line) ? line : [line, null];
      return Stretto.node(k ? "div" : "b", {}, color ? Stretto.node("i", { color }) : null, text);
    }),
  );
  const wide = tip.offsetWidth,
    high = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(x + 14, window.innerWidth - wide - 8)) + "px";
  tip.style.top = (y + 18 + high > window.innerHeight ? y - high - 10 : y + 18) + "px";
};

// Round places on an axis: [value, text] from low to high, about so many.
Stretto.ticks = function (low, high, count, unit) {
  const size = unit || 1,
    raw = (high - low) / Math.max(1, count) / size;
  if (!(raw > 0) || !isFinite(raw)) return [];
  const power = 10 ** Math.floor(Math.log10(raw));
  const gap = [1, 2, 5, 10].find(k => k * power >= raw * 0.999) * power;
  const decimals = Math.max(0, Math.min(9, -Math.floor(Math.log10(gap) + 1e-9))),
    found = [];
  for (let k = Math.ceil(low / size / gap - 1e-9) || 0; k * gap * size <= high * (1 + 1e-12); k++) {
    const value = k * gap;
    const text = Math.abs(value) >= 1e4 && decimals === 0 ? Stretto.number(value) : value.toFixed(decimals);
    found.push([value * size, text]);
  }
  return found;
};

// Text cut to a width, as the pen writes it; from the left where names begin alike and differ at their ends.
Stretto.fitted = function (pen, text, room, isTail) {
  if (pen.measureText(text).width <= room) return text;
  const cut = count => (isTail ? "…" + text.slice(text.length - count) : text.slice(0, count) + "…");
  let low = 0,
    high = text.length;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (pen.measureText(cut(mid)).width <= room) low = mid;
    else high = mid - 1;
  }
  return low > 3 ? cut(low) : "";
};
// Whether names begin alike for several letters: then their ends tell them apart.
Stretto.differAtEnd = function (names) {
  if (!names || names.length < 2) return false;
  let shared = names[0].length;
  for (const name of names) {
    let k = 0;
    while (k < shared && name[k] === names[0][k]) k++;
    shared = k;
    if (shared < 4) return false;
  }
  return true;
};
