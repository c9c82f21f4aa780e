"use strict";
// Our own and not a library: uPlot draws series over one axis and has no bars in rows that can be searched by time.
// A Gantt chart on a canvas. Rows of bars sorted by time are searched, never walked: it stays quick at 100,000 tasks.
// data: what reports/gantt/html.py's chart_json returns. options: { onPick(task, name), label, isAlone, group }: alone on
// its page, the chart takes the height of the window, and the wheel zooms without a click before; the charts of a group
// { charts, until } share one time axis.
Stretto.gantt = function (holder, first, options) {
  const RIGHT = 60,
    TOP = 28,
    MAX_HIGH = options.isAlone ? Math.max(300, window.innerHeight - 190) : 560,
    MAX_ROW = options.isAlone ? 46 : 30;
  let data,
    bars,
    moves,
    total,
    numRows,
    left = 80,
    rowHigh = 20,
    from = 0,
    to = 1,
    top0 = 0,
    lit = -1,
    hover = null,
    picked = -1,
    coloring = null, // of the tasks: the chart's own, or that by job
    isTail = false, // names differ at their ends
    waits = null, // place in data.waits of each bar that has one, by bar
    found = new Set(), // bars whose names match the search
    isPathShown = false;
  let isWhole = true;
  const legend = Stretto.node("ul", { class: "legend" }),
    frame = Stretto.node("div", { class: "chart" });
  const hint = Stretto.node("p", { class: "hint" });
  const tools = Stretto.node("div", { class: "tools no-print" });
  holder.append(tools, legend, frame, hint);
  const keys = (...names) => names.map(name => Stretto.node("kbd", {}, name));
  hint.hidden = Boolean(options.group && options.group.charts.length);
  hint.append(
    "Zoom: ",
    ...keys("+", "-"),
    (options.isAlone ? " or wheel" : " or wheel (Ctrl + wheel while the chart has no focus)") +
      " · Move: drag or arrow keys · Task: ",
    ...keys(",", "."),
    ...(options.onPick ? [" then ", ...keys("Enter"), " or click " + (options.picks || "explains its placement")] : [" or hover"]),
    " · All: ",
    ...keys("0"),
  );
  const height = () => Math.min(MAX_HIGH, TOP + 6 + numRows * Math.max(14, Math.min(MAX_ROW, (options.isAlone ? MAX_HIGH - TOP : 300) / numRows)));

  // Where the bars of each row begin, and its longest bar: with it a search by time finds all that reach into view.
  function index(part) {
    const n = part.row.length,
      table = { first: new Int32Array(numRows + 1), longest: new Float64Array(numRows) };
    table.start = Float64Array.from(part.start);
    table.length = Float64Array.from(part.length);
    for (let i = 0; i < n; i++) table.first[part.row[i] + 1]++;
    for (let r = 0; r < numRows; r++) table.first[r + 1] += table.first[r];
    for (let i = 0; i < n; i++) table.longest[part.row[i]] = Math.max(table.longest[part.row[i]], table.length[i]);
    return table;
  }
  function take(next) {
    data = next;
    numRows = data.rows.length;
    total = (options.group && options.group.until) || data.makespan || 1;
    coloring = coloring && coloring.isByJob && data.by_job ? { ...data.by_job, isByJob: true } : data;
    isTail = Stretto.differAtEnd(data.names);
    waits = new Map(data.waits ? data.waits.bar.map((bar, k) => [bar, k]) : []);
    bars = index(data);
    moves = data.moves && index(data.moves);
    if (isWhole) {
      from = 0;
      to = total * 1.01;
    }
    hover = null;
  }
  take(first);
  const sheet = Stretto.canvas(frame, options.label, height, paint),
    canvas = sheet.canvas,
    pen = sheet.pen;
  const nameOf = i => (data.names ? data.names[i] : "t" + data.task[i]);
  const x = time => left + ((time - from) / (to - from)) * (sheet.width - left - RIGHT);
  const timeAt = px => from + ((px - left) / (sheet.width - left - RIGHT)) * (to - from);

  function search(table, row, time) {
    let low = table.first[row],
      high = table.first[row + 1];
    while (low < high) {
      const mid = (low + high) >> 1;
      if (table.start[mid] < time) low = mid + 1;
      else high = mid;
    }
    return low;
  }
  function clamp() {
    const span = Math.min(to - from, total * 1.01);
    from = Math.max(0, Math.min(from, total * 1.01 - span));
    to = from + span;
    isWhole = span >= total * 1.009;
    top0 = Math.max(0, Math.min(top0, numRows * rowHigh - (sheet.height - TOP)));
  }
  function draw() {
    clamp();
    sheet.draw();
    if (options.group) for (const other of options.group.charts) if (other !== me) other.look(from, to);
  }
  function zoom(factor, px) {
    const anchor = timeAt(px),
      span = Math.max(total * 1e-7, Math.min(total * 1.01, (to - from) * factor));
    const share = (anchor - from) / (to - from);
    from = anchor - share * span;
    to = from + span;
    draw();
  }
  function pan(shareX, pixelsY) {
    const span = to - from;
    from += shareX * span;
    to = from + span;
    top0 += pixelsY;
    draw();
  }
  function all() {
    from = 0;
    to = total * 1.01;
    top0 = 0;
    draw();
  }

  function paint() {
    const wide = sheet.width,
      high = sheet.height,
      end = wide - RIGHT;
    pen.font = "12px " + Stretto.FONT;
    left = 16 + Math.min(190, Math.max(64, ...data.rows.slice(0, 400).map(row => pen.measureText(row[0]).width)));
    rowHigh = Math.max(14, Math.min(MAX_ROW, (high - TOP - 4) / numRows));
    pen.fillStyle = Stretto.css("--panel");
    pen.fillRect(0, 0, wide, high);
    const r0 = Math.max(0, Math.floor(top0 / rowHigh)),
      r1 = Math.min(numRows, Math.ceil((top0 + high - TOP) / rowHigh));
    const bottom = Math.min(high, TOP + numRows * rowHigh - top0),
      ink = Stretto.css("--ink"),
      faint = Stretto.css("--faint");
    pen.save();
    pen.beginPath();
    pen.rect(0, TOP, wide, high - TOP);
    pen.clip();
    pen.fillStyle = Stretto.css("--stripe");
    for (let r = r0; r < r1; r++) if (r % 2) pen.fillRect(left, TOP + r * rowHigh - top0, end - left, rowHigh);
    pen.fillStyle = Stretto.css("--grid");
    for (const [value] of ticks()) pen.fillRect(Math.round(x(value)), TOP, 1, bottom - TOP);
    pen.save();
    pen.beginPath();
    pen.rect(left, TOP, end - left, high - TOP);
    pen.clip();
    for (let r = r0; r < r1; r++) {
      rowOf(r, ink);
      if (moves) movesOf(r);
    }
    if (isPathShown) path();
    rule(data.makespan, faint, [5, 3], bottom);
    if (data.bound !== null) rule(data.bound, Stretto.css("--bound"), [2, 2], bottom);
    pen.restore();
    sides(r0, r1, ink, faint, end);
    pen.restore();
    axis(faint, end);
  }
  const ticks = () => Stretto.ticks(from, to, (sheet.width - left - RIGHT) / 95, Stretto.unitOf(to - from)[1]);
  function axis(faint, end) {
    pen.font = "12px " + Stretto.FONT;
    pen.fillStyle = faint;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (const [value, text] of ticks()) {
      const half = pen.measureText(text).width / 2;
      if (x(value) - half >= left - 12 && x(value) + half < end + 4) pen.fillText(text, x(value), TOP - 12);
    }
    pen.textAlign = "right";
    pen.fillText("time (" + Stretto.unitOf(to - from)[0] + ")", left - 16, TOP - 12);
    pen.textAlign = "center";
    pen.fillText("busy", end + RIGHT / 2, TOP - 12);
    pen.fillRect(left, TOP - 1, end - left, 1);
  }
  function rowOf(r, ink) {
    const y = TOP + r * rowHigh - top0 + rowHigh * 0.1,
      tall = rowHigh * (moves ? 0.62 : 0.8);
    pen.font = Math.min(12, tall * 0.75) + "px " + Stretto.FONT;
    pen.textBaseline = "middle";
    pen.textAlign = "center";
    let covered = -1e9,
      style = null;
    const { start, length, first: begins, longest } = bars,
      scale = (sheet.width - left - RIGHT) / (to - from);
    for (let i = search(bars, r, from - longest[r]); i < begins[r + 1] && start[i] <= to; i++) {
      const a = left + (start[i] - from) * scale,
        wide = length[i] * scale;
      if (a + wide < left) continue;
      const thin = wide < 1.5,
        column = Math.floor(a),
        isPicked = data.task[i] === picked;
      // Thousands of bars may share a pixel: the first of them is drawn, as a whole pixel.
      if (thin && column < covered && !isPicked) continue;
      const [, fill, text] = coloring.legend[coloring.color[i]];
      const isLit = found.size ? found.has(i) : lit < 0 || lit === coloring.color[i];
      const alpha = isLit ? 1 : 0.15;
      if (waits.has(i)) waitOf(i, a, scale, y, tall);
      if (pen.globalAlpha !== alpha) pen.globalAlpha = alpha;
      if (style !== fill) {
        pen.fillStyle = fill;
        style = fill;
      }
      const w = wide - (wide > 4 ? 1 : 0);
      if (thin) {
        pen.fillRect(column, y, 1, tall);
        covered = column + 1;
      } else pen.fillRect(a, y, w, tall);
      if (data.state && data.state[i] !== 1) {
        status(data.state[i], a, y, Math.max(w, 2), tall);
        style = null;
      }
      if (isPicked || (hover && hover.part === data && hover.i === i)) {
        pen.globalAlpha = 1;
        pen.strokeStyle = ink;
        pen.lineWidth = isPicked ? 2.5 : 1.5;
        pen.strokeRect(a, y, Math.max(2, w), tall);
      }
      const a1 = Math.max(a, left),
        b1 = Math.min(a + w, sheet.width - RIGHT);
      if (b1 - a1 > 24 && tall >= 10) {
        const label = Stretto.fitted(pen, nameOf(i), b1 - a1 - 6, isTail);
        if (label) {
          style = data.state && data.state[i] === 2 ? ink : text;
          pen.fillStyle = style;
          pen.fillText(label, (a1 + b1) / 2, y + tall / 2 + 0.5);
        }
      }
    }
    pen.globalAlpha = 1;
  }
  // The status of a task: hatched where it failed, dashed while it runs.
  function status(state, a, y, wide, tall) {
    const right = Math.min(a + wide, sheet.width - RIGHT),
      begin = Math.max(a, left);
    if (right <= begin) return;
    pen.save();
    pen.globalAlpha = 1;
    pen.strokeStyle = state === 2 ? Stretto.css("--bad") : Stretto.css("--ink");
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.rect(begin, y, right - begin, tall);
    pen.clip();
    if (state === 2) {
      pen.fillStyle = Stretto.css("--panel");
      pen.globalAlpha = 0.55;
      pen.fillRect(begin, y, right - begin, tall);
      pen.globalAlpha = 1;
      pen.beginPath();
      for (let at = begin - tall; at < right; at += 6) {
        pen.moveTo(at, y + tall);
        pen.lineTo(at + tall, y);
      }
      pen.stroke();
    } else pen.setLineDash([4, 3]);
    pen.lineWidth = 3;
    pen.strokeRect(a, y, wide, tall);
    pen.restore();
  }
  // The time in which the device waits for data of the next task: a thin line that ends at the bar.
  function waitOf(i, a, scale, y, tall) {
    const long = data.waits.length[waits.get(i)] * scale;
    if (long < 1.5) return;
    pen.save();
    pen.strokeStyle = Stretto.css("--wait");
    pen.lineWidth = 1.5;
    pen.globalAlpha = 0.7;
    pen.setLineDash([2, 3]);
    pen.beginPath();
    pen.moveTo(Math.max(left, a - long), y + tall / 2);
    pen.lineTo(a, y + tall / 2);
    pen.stroke();
    pen.restore();
  }
  // The critical path: each of its bars outlined, and lines from one to the next.
  function path() {
    const tall = rowHigh * (moves ? 0.62 : 0.8);
    let before = null;
    pen.save();
    pen.strokeStyle = Stretto.css("--path");
    pen.lineWidth = 2;
    pen.beginPath();
    for (const i of data.critical) {
      const a = x(bars.start[i]),
        b = x(bars.start[i] + bars.length[i]),
        y = TOP + data.row[i] * rowHigh - top0 + rowHigh * 0.1;
      if (b - a >= 8) pen.rect(a, y, b - a - 1, tall);
      else if (b >= left && a <= sheet.width) {
        pen.moveTo(a, y + tall); // an outline would hide a thin bar
        pen.lineTo(Math.max(b, a + 1), y + tall);
      }
      if (before && (b >= left || before[0] >= left)) {
        pen.moveTo(...before);
        pen.lineTo(a, y + tall / 2);
      }
      before = [b, y + tall / 2];
    }
    pen.stroke();
    pen.restore();
  }
  function movesOf(r) {
    const y = TOP + r * rowHigh - top0 + rowHigh * 0.77,
      tall = Math.max(2, rowHigh * 0.14);
    pen.fillStyle = Stretto.css("--move");
    for (let i = search(moves, r, from - moves.longest[r]); i < moves.first[r + 1] && moves.start[i] <= to; i++)
      pen.fillRect(x(moves.start[i]), y, Math.max(0.6, x(moves.start[i] + moves.length[i]) - x(moves.start[i])), tall);
  }
  function rule(time, color, dash, bottom) {
    pen.strokeStyle = color;
    pen.lineWidth = 1.5;
    pen.setLineDash(dash);
    pen.beginPath();
    pen.moveTo(x(time), TOP);
    pen.lineTo(x(time), bottom);
    pen.stroke();
    pen.setLineDash([]);
  }
  function sides(r0, r1, ink, faint, end) {
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (let r = r0; r < r1; r++) {
      const [name, busy, starts] = data.rows[r],
        y = TOP + r * rowHigh - top0,
        tall = Math.min(14, rowHigh * 0.62);
      if (starts) {
        pen.fillStyle = Stretto.css("--line");
        pen.fillRect(0, Math.round(y), sheet.width, 1);
      }
      pen.fillStyle = Stretto.css("--rail");
      pen.fillRect(end + 8, y + (rowHigh - tall) / 2, RIGHT - 16, tall);
      pen.fillStyle = Stretto.css("--bar");
      pen.fillRect(end + 8, y + (rowHigh - tall) / 2, (RIGHT - 16) * Math.min(1, busy), tall);
      pen.font = "12px " + Stretto.FONT;
      pen.fillStyle = ink;
      pen.fillText(Stretto.fitted(pen, name, left - 14, true), left - 8, y + rowHigh / 2 + 0.5);
      pen.font = "10px " + Stretto.FONT;
      pen.fillText(Math.round(busy * 100) + " %", end + RIGHT - 11, y + rowHigh / 2 + 0.5);
    }
  }
  function find(table, r, time, slack) {
    let best = -1,
      distance = slack;
    for (
      let i = search(table, r, time - table.longest[r] - slack);
      i < table.first[r + 1] && table.start[i] <= time + slack;
      i++
    ) {
      const off = Math.max(table.start[i] - time, time - table.start[i] - table.length[i], 0);
      if (off <= distance) {
        distance = off;
        best = i;
      }
    }
    return best;
  }
  function under(px, py) {
    const r = Math.floor((py - TOP + top0) / rowHigh);
    if (r < 0 || r >= numRows || py < TOP || px < left || px > sheet.width - RIGHT) return null;
    const within = (py - TOP + top0) / rowHigh - r,
      slack = (2 * (to - from)) / sheet.width;
    const isMove = moves && within > 0.74,
      i = find(isMove ? moves : bars, r, timeAt(px), slack);
    return i < 0 ? null : { part: isMove ? data.moves : data, i, r };
  }
  function tell(now, clientX, clientY) {
    const before = hover;
    hover = now;
    if ((now && now.i) !== (before && before.i) || (now && now.part) !== (before && before.part)) sheet.draw();
    if (!now) {
      Stretto.tip(null);
      return;
    }
    const { part, i, r } = now,
      begin = part.start[i],
      long = part.length[i];
    const lines =
      part === data
        ? [nameOf(i), coloring.legend[coloring.color[i]][0], "on " + (data.rows[r][0] || "shared resources"), ...why(i)]
        : ["output of " + part.names[i], "transfer", data.rows[part.source[i]][0] + " to " + data.rows[r][0]];
    lines.push(
      Stretto.seconds(begin, 6) + " to " + Stretto.seconds(begin + long, 6),
      "takes " + Stretto.seconds(long, 5),
    );
    Stretto.tip(lines.filter(Boolean), clientX, clientY);
  }
  function why(i) {
    const told = [];
    if (data.state && data.state[i] !== 1) told.push(["running", "done", "failed"][data.state[i]]);
    if (waits.has(i)) {
      const k = waits.get(i);
      told.push(`its device waits ${Stretto.seconds(data.waits.length[k], 4)} for data of ${nameOf(data.waits.source[k])}`);
    }
    return told;
  }
  function pick(i) {
    if (!options.onPick) return;
    picked = data.task[i];
    sheet.draw();
    options.onPick(data.task[i], nameOf(i));
  }
  // The keyboard's way through the tasks: by time, over all rows.
  let order = null,
    place = -1;
  function go(i) {
    const r = data.row[i],
      span = to - from;
    if (bars.start[i] < from || bars.start[i] > to) {
      from = bars.start[i] - span / 3;
      to = from + span;
    }
    if (r * rowHigh < top0 || (r + 1) * rowHigh > top0 + sheet.height - TOP)
      top0 = r * rowHigh - (sheet.height - TOP) / 2;
    draw();
    const box = canvas.getBoundingClientRect();
    tell({ part: data, i, r }, box.left + Math.max(left, x(bars.start[i])), box.top + TOP + (r + 1) * rowHigh - top0);
  }
  function walk(step) {
    if (!order) order = Array.from(data.start.keys()).sort((a, b) => data.start[a] - data.start[b]);
    if (!order.length) return;
    place = place < 0 ? 0 : (place + step + order.length) % order.length;
    go(order[place]);
  }
  // Search by name: matches stay bright, Enter goes from one to the next.
  let step = -1;
  const searchField = Stretto.node("input", { type: "search", placeholder: "task name", "aria-label": "Search tasks by name" }),
    searchCount = Stretto.node("span", { class: "faint", role: "status" });
  function seek(text) {
    const wanted = text.trim().toLowerCase();
    found = new Set();
    step = -1;
    if (wanted) for (let i = 0; i < data.task.length; i++) if (nameOf(i).toLowerCase().includes(wanted)) found.add(i);
    searchCount.textContent = wanted ? `${found.size.toLocaleString("en")} found` : "";
    sheet.draw();
  }
  function next() {
    const all = [...found].sort((a, b) => data.start[a] - data.start[b] || a - b);
    if (!all.length) return;
    step = (step + 1) % all.length;
    searchCount.textContent = `${(step + 1).toLocaleString("en")} of ${all.length.toLocaleString("en")}`;
    go(all[step]);
  }
  searchField.addEventListener("input", () => seek(searchField.value));
  searchField.addEventListener("keydown", event => {
    if (event.key === "Enter") next();
  });
  function equip() {
    const parts = [searchField, searchCount];
    if (data.by_job) {
      const names = [data.colored_by, "job"],
        choice = Stretto.node("select", {}, ...names.map(name => Stretto.node("option", {}, name)));
      choice.value = coloring.isByJob ? "job" : data.colored_by;
      choice.addEventListener("change", () => {
        coloring = choice.value === "job" ? { ...data.by_job, isByJob: true } : data;
        lit = -1;
        name();
        sheet.draw();
      });
      parts.unshift(Stretto.node("label", {}, "Color by", choice));
    }
    if (data.critical && data.critical.length) {
      const box = Stretto.node("input", { type: "checkbox" });
      box.checked = isPathShown;
      box.addEventListener("change", () => {
        isPathShown = box.checked;
        name();
        sheet.draw();
      });
      parts.push(Stretto.node("label", { class: "check" }, box, `critical path (${data.critical.length.toLocaleString("en")} tasks)`));
    }
    tools.replaceChildren(...parts);
  }
  const middle = () => (left + sheet.width - RIGHT) / 2;
  const KEYS = {
    "+": () => zoom(0.8, middle()),
    "=": () => zoom(0.8, middle()),
    "-": () => zoom(1.25, middle()),
    0: all,
    Home: all,
    ArrowLeft: () => pan(-0.1, 0),
    ArrowRight: () => pan(0.1, 0),
    ArrowUp: () => pan(0, -2 * rowHigh),
    ArrowDown: () => pan(0, 2 * rowHigh),
    ".": () => walk(1),
    ",": () => walk(-1),
    Enter: () => {
      if (hover && hover.part === data) pick(hover.i);
    },
    Escape: () => tell(null),
  };
  Stretto.keys(canvas, KEYS);
  function turn(event) {
    const far = (event.deltaY || event.deltaX) * (event.deltaMode ? 30 : 1);
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(far / 800, 0);
    else zoom(Math.exp(far / 400), event.offsetX);
  }
  Stretto.wheel(canvas, turn, options.isAlone);
  let drag = null,
    moved = 0;
  canvas.addEventListener("pointerdown", event => {
    drag = [event.clientX, event.clientY];
    moved = 0;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", event => {
    drag = null;
    const now = under(event.offsetX, event.offsetY);
    if (moved < 4 && now && now.part === data) pick(now.i);
  });
  canvas.addEventListener("pointercancel", () => {
    drag = null;
  });
  canvas.addEventListener("pointermove", event => {
    if (drag && event.buttons) {
      moved += Math.abs(drag[0] - event.clientX) + Math.abs(drag[1] - event.clientY);
      pan((drag[0] - event.clientX) / (sheet.width - left - RIGHT), drag[1] - event.clientY);
      drag = [event.clientX, event.clientY];
    }
    tell(under(event.offsetX, event.offsetY), event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", () => tell(null));
  canvas.addEventListener("blur", () => tell(null));
  canvas.addEventListener("dblclick", all);

  function name() {
    const entries = coloring.legend
      .map(
        ([label, color], k) =>
          label &&
          Stretto.node(
            "li",
            {},
            Stretto.node(
              "button",
              {
                type: "button",
                title: "highlight " + label,
                "aria-pressed": String(lit === k),
                onclick: () => {
                  lit = lit === k ? -1 : k;
                  name();
                  sheet.draw();
                },
              },
              Stretto.node("i", { color }),
              Stretto.node("span", {}, label),
            ),
          ),
      )
      .filter(Boolean);
    const mark = (text, color) => {
      const sample = Stretto.node("i", { class: "rule" });
      sample.style.borderColor = color;
      return Stretto.node("li", {}, sample, text);
    };
    const has = state => data.state && data.state.includes(state);
    if (has(0)) entries.push(Stretto.node("li", {}, Stretto.node("i", { class: "running-task" }), "running"));
    if (has(2)) entries.push(Stretto.node("li", {}, Stretto.node("i", { class: "failed-task" }), "failed"));
    if (moves) entries.push(mark("transfer", "var(--move)"));
    if (waits.size) entries.push(mark("device waits for data", "var(--wait)"));
    if (isPathShown) entries.push(mark("critical path", "var(--path)"));
    entries.push(mark((has(0) ? "now " : "makespan ") + Stretto.seconds(data.makespan, 5), "var(--faint)"));
    if (data.bound !== null)
      entries.push(mark(`lower bound ${Stretto.seconds(data.bound, 5)}${data.state ? ", by the durations in the graph" : ""}`, "var(--bound)"));
    legend.replaceChildren(...entries);
  }
  function update(next) {
    take(next);
    order = null;
    if (document.activeElement !== searchField) equip();
    seek(searchField.value);
    name();
    sheet.size();
    clamp();
  }
  const me = {
    update,
    pick,
    find: go,
    look: (begin, end) => {
      from = begin;
      to = end;
      clamp();
      sheet.draw();
    },
  };
  if (options.group) options.group.charts.push(me);
  isPathShown = Boolean(data.critical) && data.critical.length > 0 && data.task.length <= 2000;
  equip();
  name();
  sheet.size();
  return me;
};
