"""The page of an interactive Gantt chart: markup, style and script, with places for the data."""

PAGE = r"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>@TITLE@</title>
<style>
:root { --ground: #ffffff; --ink: #202124; --faint: #5f6368; --grid: #e3e5e8; --stripe: #f7f8f9; --bar: #8ab4d8;
  --rail: #eef0f2; --bound: #b00020; --move: #5f636899; --tip: #ffffffee; }
@media (prefers-color-scheme: dark) { :root { --ground: #17181a; --ink: #e8eaed; --faint: #9aa0a6; --grid: #303236;
  --stripe: #1d1e21; --bar: #3d6b94; --rail: #26282b; --bound: #ff8a80; --move: #9aa0a699; --tip: #26282bee; } }
html, body { height: 100%; margin: 0; }
body { display: flex; flex-direction: column; background: var(--ground); color: var(--ink);
  font: 14px/1.4 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
header { padding: 10px 16px 4px; }
h1 { font-size: 17px; margin: 0; overflow-wrap: anywhere; }
p { margin: 2px 0 0; color: var(--faint); font-size: 13px; }
#legend { display: flex; flex-wrap: wrap; gap: 2px 4px; margin: 6px 0 2px -6px; }
#legend button { font: inherit; font-size: 12px; color: inherit; background: none; border: 1px solid transparent;
  border-radius: 4px; padding: 1px 6px; cursor: pointer; display: flex; align-items: center; gap: 6px;
  max-width: 22em; }
#legend em { font-style: normal; font-size: 12px; padding: 2px 7px; display: flex; align-items: center; gap: 6px; }
#legend button[aria-pressed=true] { border-color: var(--ink); }
#legend span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
#legend i { flex: none; width: 11px; height: 11px; border-radius: 2px; }
#place { flex: 1; min-height: 120px; position: relative; }
canvas { position: absolute; inset: 0; width: 100%; height: 100%; outline-offset: -2px; touch-action: none; }
#tip { position: fixed; pointer-events: none; visibility: hidden; background: var(--tip); border: 1px solid var(--grid);
  border-radius: 5px; padding: 6px 9px; font-size: 12.5px; max-width: 26em; box-shadow: 0 2px 8px #0003; z-index: 2; }
#tip b { display: block; overflow-wrap: anywhere; }
#tip div { color: var(--faint); }
footer { padding: 2px 16px 6px; font-size: 12px; color: var(--faint); }
kbd { font: inherit; border: 1px solid var(--grid); border-radius: 3px; padding: 0 4px; }
</style>
</head>
<body>
<header><h1>@TITLE@</h1><p>@FACTS@</p><div id="legend"></div></header>
<div id="place"><canvas id="chart" tabindex="0" role="img" aria-label="Gantt chart: @TITLE@; @FACTS@"></canvas></div>
<div id="tip" role="status"></div>
<footer>Zoom: wheel or <kbd>+</kbd> <kbd>-</kbd> &nbsp; Move: drag, <kbd>Shift</kbd> + wheel or arrow keys &nbsp;
All: <kbd>0</kbd> or double click &nbsp; Highlight: click the legend</footer>
<script type="application/json" id="data">@DATA@</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("chart"), pen = canvas.getContext("2d"), tip = document.getElementById("tip");
const RIGHT = 64, TOP = 26, FONT = 'system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif';
const numRows = data.rows.length, total = data.makespan || 1;
const nameOf = i => data.names ? data.names[i] : "t" + data.task[i];
let left = 60, wide = 100, high = 100, rowHigh = 20, from = 0, to = total * 1.01, top0 = 0, lit = -1, hover = null;

// Where the bars of each row begin, and its longest bar: with it a search by time finds all that reach into view.
function index(part) {
  const first = new Int32Array(numRows + 1), n = part.row.length, longest = new Float64Array(numRows);
  for (const row of part.row) first[row + 1]++;
  for (let r = 0; r < numRows; r++) first[r + 1] += first[r];
  for (let i = 0; i < n; i++) longest[part.row[i]] = Math.max(longest[part.row[i]], part.length[i]);
  return { first, longest };
}
const bars = index(data), moves = data.moves && index(data.moves);

function search(part, table, row, time) {
  let low = table.first[row], high = table.first[row + 1];
  while (low < high) { const mid = (low + high) >> 1; if (part.start[mid] < time) low = mid + 1; else high = mid; }
  return low;
}
const UNITS = [["ns", 1e-9], ["µs", 1e-6], ["ms", 1e-3], ["s", 1], ["min", 60], ["h", 3600], ["d", 86400]];
function unitOf(span) {
  let best = UNITS[0];
  for (const unit of UNITS) if (span >= unit[1] * ({ min: 10, h: 3, d: 4 }[unit[0]] || 1)) best = unit;
  return best;
}
function show(seconds) {
  const [name, size] = unitOf(Math.abs(seconds) || 1);
  return Number((seconds / size).toPrecision(6)).toLocaleString("en", { maximumSignificantDigits: 6 }) + " " + name;
}
function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
const x = time => left + (time - from) / (to - from) * (wide - left - RIGHT);
const timeAt = px => from + (px - left) / (wide - left - RIGHT) * (to - from);

function size() {
  const box = canvas.parentElement.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
  wide = box.width; high = box.height;
  canvas.width = Math.round(wide * ratio); canvas.height = Math.round(high * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  rowHigh = Math.max(14, Math.min(46, (high - TOP - 4) / numRows));
  pen.font = "12px " + FONT;
  left = 16 + Math.min(190, Math.max(68, ...data.rows.slice(0, 400).map(row => pen.measureText(row[0]).width)));
  clamp(); paint();
}
function clamp() {
  const span = Math.min(to - from, total * 1.01);
  from = Math.max(0, Math.min(from, total * 1.01 - span)); to = from + span;
  top0 = Math.max(0, Math.min(top0, numRows * rowHigh - (high - TOP)));
}
function zoom(factor, px) {
  const anchor = timeAt(px), span = Math.max(total * 1e-7, Math.min(total * 1.01, (to - from) * factor));
  const share = (anchor - from) / (to - from);
  from = anchor - share * span; to = from + span; draw();
}
function pan(shareX, pixelsY) {
  const span = to - from;
  from += shareX * span; to = from + span; top0 += pixelsY; draw();
}
let waiting = false;
function draw() {
  clamp();
  if (waiting) return;
  waiting = true; requestAnimationFrame(() => { waiting = false; paint(); });
}
function fitted(text, room) {
  if (pen.measureText(text).width <= room) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (pen.measureText(text.slice(0, mid) + "…").width <= room) low = mid; else high = mid - 1;
  }
  return low > 5 ? text.slice(0, low) + "…" : "";
}
function paint() {
  const ink = css("--ink"), faint = css("--faint"), grid = css("--grid"), end = wide - RIGHT;
  pen.fillStyle = css("--ground"); pen.fillRect(0, 0, wide, high);
  pen.save(); pen.beginPath(); pen.rect(0, TOP, wide, high - TOP); pen.clip();
  const r0 = Math.max(0, Math.floor(top0 / rowHigh)), r1 = Math.min(numRows, Math.ceil((top0 + high - TOP) / rowHigh));
  const bottom = Math.min(high, TOP + numRows * rowHigh - top0);
  pen.fillStyle = css("--stripe");
  for (let r = r0; r < r1; r++) if (r % 2) pen.fillRect(left, TOP + r * rowHigh - top0, end - left, rowHigh);
  ticks((px) => { pen.fillStyle = grid; pen.fillRect(px, TOP, 1, bottom - TOP); });
  pen.save(); pen.beginPath(); pen.rect(left, TOP, end - left, high - TOP); pen.clip();
  for (let r = r0; r < r1; r++) { rowOf(r); if (moves) movesOf(r); }
  line(data.makespan, ink, [5, 3], bottom);
  if (data.bound !== null) line(data.bound, css("--bound"), [2, 2], bottom);
  pen.restore();
  sides(r0, r1, ink, faint, end);
  pen.restore();
  axis(faint, end);
}
function step() {
  const unit = unitOf(to - from)[1], raw = (to - from) / Math.max(2, (wide - left - RIGHT) / 95) / unit;
  const power = 10 ** Math.floor(Math.log10(raw));
  const nice = [1, 2, 5, 10].find(k => k * power >= raw * 0.999) * power;
  return [nice * unit, unit];
}
function ticks(mark) {
  const [gap, unit] = step();
  for (let k = Math.ceil(from / gap - 1e-9); k * gap <= to; k++) {
    const px = x(k * gap);
    if (px >= left - 1 && px <= wide - RIGHT) mark(Math.round(px), k * gap / unit, gap / unit);
  }
}
function axis(faint, end) {
  pen.font = "12px " + FONT; pen.fillStyle = faint; pen.textAlign = "center"; pen.textBaseline = "middle";
  let last = -1e9;
  ticks((px, value, gap) => {
    const text = value.toFixed(Math.max(0, Math.min(9, -Math.floor(Math.log10(gap) + 1e-9))));
    const half = pen.measureText(text).width / 2;
    if (px - half > last + 8 && px + half < end + 4) { pen.fillText(text, px, TOP - 10); last = px + half; }
  });
  pen.textAlign = "right"; pen.fillText("time (" + unitOf(to - from)[0] + ")", left - 18, TOP - 10);
  pen.textAlign = "center"; pen.fillText("busy", end + RIGHT / 2, TOP - 10);
  pen.fillRect(left, TOP - 1, end - left, 1);
}
function rowOf(r) {
  const y = TOP + r * rowHigh - top0 + rowHigh * 0.08, tall = rowHigh * (moves ? 0.64 : 0.84);
  pen.font = Math.min(12, tall * 0.72) + "px " + FONT; pen.textBaseline = "middle"; pen.textAlign = "center";
  let covered = -1e9;
  for (let i = search(data, bars, r, from - bars.longest[r]); i < bars.first[r + 1] && data.start[i] <= to; i++) {
    const a = x(data.start[i]), b = x(data.start[i] + data.length[i]);
    if (b < left) continue;
    // Thousands of bars may share a pixel: draw the first of them, as a whole pixel.
    const thin = b - a < 1.5, column = Math.floor(a);
    if (thin && column < covered) continue;
    const w = b - a - (b - a > 4 ? 1 : 0), [, fill, text] = data.legend[data.colour[i]];
    pen.globalAlpha = lit < 0 || lit === data.colour[i] ? 1 : 0.15;
    pen.fillStyle = fill;
    if (thin) { pen.fillRect(column, y, 1, tall); covered = column + 1; }
    else pen.fillRect(a, y, w, tall);
    if (hover && hover.part === data && hover.i === i) {
      pen.globalAlpha = 1; pen.strokeStyle = css("--ink"); pen.lineWidth = 2;
      pen.strokeRect(a + 1, y + 1, Math.max(1, w - 2), tall - 2);
    }
    const a1 = Math.max(a, left), b1 = Math.min(a + w, wide - RIGHT);
    if (b1 - a1 > 24 && tall >= 10) {
      const label = fitted(nameOf(i), b1 - a1 - 4);
      if (label) { pen.fillStyle = text; pen.fillText(label, (a1 + b1) / 2, y + tall / 2 + 0.5); }
    }
  }
  pen.globalAlpha = 1;
}
function movesOf(r) {
  const part = data.moves, y = TOP + r * rowHigh - top0 + rowHigh * 0.76, tall = Math.max(2, rowHigh * 0.15);
  pen.fillStyle = css("--move");
  for (let i = search(part, moves, r, from - moves.longest[r]); i < moves.first[r + 1] && part.start[i] <= to; i++) {
    const a = x(part.start[i]), b = x(part.start[i] + part.length[i]);
    pen.fillRect(a, y, Math.max(0.6, b - a), tall);
  }
}
function line(time, colour, dash, bottom) {
  const px = x(time);
  pen.strokeStyle = colour; pen.lineWidth = 1.5; pen.setLineDash(dash);
  pen.beginPath(); pen.moveTo(px, TOP); pen.lineTo(px, bottom); pen.stroke(); pen.setLineDash([]);
}
function sides(r0, r1, ink, faint, end) {
  const every = Math.max(1, Math.ceil(12 / rowHigh));
  pen.textBaseline = "middle";
  for (let r = r0; r < r1; r++) {
    const [name, busy, starts] = data.rows[r], y = TOP + r * rowHigh - top0;
    if (starts) { pen.fillStyle = faint; pen.fillRect(0, Math.round(y), wide, 1); }
    const tall = Math.min(16, rowHigh * 0.7), y1 = y + (rowHigh - tall) / 2;
    pen.fillStyle = css("--rail"); pen.fillRect(end + 8, y1, RIGHT - 16, tall);
    pen.fillStyle = css("--bar"); pen.fillRect(end + 8, y1, (RIGHT - 16) * busy, tall);
    if (r % every) continue;
    pen.font = "12px " + FONT; pen.textAlign = "right"; pen.fillStyle = ink;
    pen.fillText(fitted(name, left - 14), left - 8, y + rowHigh / 2 + 0.5);
    pen.font = Math.min(11, tall) + "px " + FONT;
    pen.fillText(Math.round(busy * 100) + " %", end + RIGHT - 12, y + rowHigh / 2 + 0.5);
  }
}
function find(part, table, r, time, slack) {
  let best = -1, distance = slack;
  for (let i = search(part, table, r, time - table.longest[r] - slack); i < table.first[r + 1]; i++) {
    if (part.start[i] > time + slack) break;
    const off = Math.max(part.start[i] - time, time - part.start[i] - part.length[i], 0);
    if (off <= distance) { distance = off; best = i; }
  }
  return best;
}
function at(px, py) {
  const r = Math.floor((py - TOP + top0) / rowHigh);
  if (r < 0 || r >= numRows || py < TOP || px < left || px > wide - RIGHT) return null;
  const within = (py - TOP + top0) / rowHigh - r, time = timeAt(px), slack = 2 * (to - from) / wide;
  if (moves && within > 0.73) {
    const i = find(data.moves, moves, r, time, slack);
    return i < 0 ? null : { part: data.moves, i, r };
  }
  const i = find(data, bars, r, time, slack);
  return i < 0 ? null : { part: data, i, r };
}
function tell(px, py) {
  const now = at(px, py), before = hover;
  hover = now;
  if ((now && now.i) !== (before && before.i) || (now && now.part) !== (before && before.part)) draw();
  tip.style.visibility = now ? "visible" : "hidden";
  if (!now) return;
  const { part, i, r } = now, box = canvas.getBoundingClientRect(), a = part.start[i], long = part.length[i];
  const lines = part === data
    ? [nameOf(i), data.legend[data.colour[i]][0], "on " + data.rows[r][0]]
    : ["output of " + part.names[i], "transfer", data.rows[part.from[i]][0] + " to " + data.rows[r][0]];
  lines.push(show(a) + " to " + show(a + long), "takes " + show(long));
  tip.replaceChildren(...lines.filter(Boolean).map((text, k) => {
    const node = document.createElement(k ? "div" : "b"); node.textContent = text; return node;
  }));
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = Math.min(box.left + px + 14, window.innerWidth - w - 8) + "px";
  tip.style.top = (box.top + py + 18 + h > window.innerHeight ? box.top + py - h - 10 : box.top + py + 18) + "px";
}
let drag = null;
canvas.addEventListener("wheel", event => {
  event.preventDefault();
  const turn = (event.deltaY || event.deltaX) * (event.deltaMode ? 30 : 1);
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(turn / 800, 0);
  else zoom(Math.exp(turn / 400), event.offsetX);
}, { passive: false });
canvas.addEventListener("pointerdown", event => {
  drag = [event.clientX, event.clientY]; canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointerup", () => { drag = null; });
canvas.addEventListener("pointercancel", () => { drag = null; });
canvas.addEventListener("pointermove", event => {
  if (drag) {
    pan((drag[0] - event.clientX) / (wide - left - RIGHT), drag[1] - event.clientY);
    drag = [event.clientX, event.clientY];
  }
  tell(event.offsetX, event.offsetY);
});
canvas.addEventListener("pointerleave", () => { hover = null; tip.style.visibility = "hidden"; draw(); });
function all() { from = 0; to = total * 1.01; top0 = 0; draw(); }
canvas.addEventListener("dblclick", all);
const middle = () => (left + wide - RIGHT) / 2;
const KEYS = { "+": () => zoom(0.8, middle()), "=": () => zoom(0.8, middle()), "-": () => zoom(1.25, middle()),
  "0": all, Home: all, ArrowLeft: () => pan(-0.1, 0), ArrowRight: () => pan(0.1, 0),
  ArrowUp: () => pan(0, -2 * rowHigh), ArrowDown: () => pan(0, 2 * rowHigh),
  PageUp: () => pan(0, TOP - high), PageDown: () => pan(0, high - TOP) };
window.addEventListener("keydown", event => {
  const action = KEYS[event.key];
  if (action && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); action(); }
});
function sample(label, style) {
  const [entry, mark] = ["em", "i"].map(tag => document.createElement(tag));
  mark.style.cssText = style; entry.append(mark, label); document.getElementById("legend").append(entry);
}
data.legend.forEach(([label, colour], k) => {
  if (!label) return;
  const [button, dot, text] = ["button", "i", "span"].map(tag => document.createElement(tag));
  dot.style.background = colour; text.textContent = label; button.title = label;
  button.setAttribute("aria-pressed", "false"); button.append(dot, text);
  button.addEventListener("click", () => {
    lit = lit === k ? -1 : k;
    for (const other of document.querySelectorAll("#legend button"))
      other.setAttribute("aria-pressed", String(other === button && lit === k));
    draw();
  });
  document.getElementById("legend").append(button);
});
if (moves) sample("transfer", "height:4px; background:var(--move)");
const rule = "height:0; width:20px; border-radius:0; border-top:2px ";
sample("makespan", rule + "dashed var(--ink)");
if (data.bound !== null) sample("lower bound", rule + "dotted var(--bound)");
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
new ResizeObserver(size).observe(canvas.parentElement);
size();
</script>
</body>
</html>
"""
