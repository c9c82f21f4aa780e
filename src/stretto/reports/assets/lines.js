"use strict";
// Our own and not a library: with uPlot 1.6 ordinary pages were 44 to 56 % larger (164 kB instead of 114 kB), loading was
// no faster, and 294 lines of these 406 stayed: keys, labels, the strip and the tooltip are not part of it.
// Curves over a common axis: hover or arrow keys read values, + and - zoom, a strip above may name the strategy.
// spec: { label, x: [..], series: [{ name, values, color, step, fill, dash, band: [low, high], bandName }], xTime, xName, yFormat, yMin, yMax,
//         rules: [{ name, value }], strip: [{ from, to, name, text, color }], marks: [{ x, name }], height }
// Training curves of several runs by seconds of training: each faint as it was measured, and smoothed on top of it.
Stretto.overlaid = function (chosen, title) {
  const NUM_POINTS = 400,
    best = view => {
      const data = view.training,
        names = data.groups[0].names,
        series = data.series.filter(one => names.includes(one.name) && one.values.some(value => value !== null));
      return series.find(one => !one.name.startsWith("best")) || series[0];
    };
  const clock = data => (data.seconds.some(value => value !== null) ? data.seconds : data.x);
  const isTimed = chosen.every(([view]) => view.training.seconds.some(value => value !== null));
  const curves = chosen
    .map(([view, name]) => {
      const data = view.training,
        values = best(view).values,
        at = isTimed ? clock(data) : data.x;
      return { name, points: at.map((x, k) => [x, values[k]]).filter(([x, y]) => x !== null && y !== null), data };
    })
    .filter(curve => curve.points.length);
  const end = Math.max(...curves.map(curve => curve.points[curve.points.length - 1][0]), 1e-9),
    x = Array.from({ length: NUM_POINTS + 1 }, (_, k) => (k * end) / NUM_POINTS),
    series = [];
  curves.forEach(({ name, points }, k) => {
    // The last value measured up to each place; a mean that forgets with a twentieth of the curve on top.
    let next = 0,
      last = null,
      smooth = null;
    const raw = [],
      mean = [],
      keep = Math.exp(-20 / NUM_POINTS),
      over = points[points.length - 1][0];
    for (const at of x) {
      while (next < points.length && points[next][0] <= at) last = points[next++][1];
      const isOver = at > over + end / NUM_POINTS;
      if (last !== null) smooth = smooth === null ? last : keep * smooth + (1 - keep) * last;
      raw.push(isOver ? null : last);
      mean.push(isOver ? null : smooth);
    }
    const color = Stretto.series(k);
    series.push({ name, values: mean, color }, { name: name + ", measured", values: raw, color, thin: true, isFaint: true });
  });
  const rules = new Map();
  for (const { data } of curves) for (const [name, value] of Object.entries(data.baselines)) rules.set(name + value, { name, value });
  return {
    label: "Training: " + title,
    x,
    xTime: isTimed,
    xName: isTimed ? "" : chosen[0][0].training.x_name,
    yTime: chosen[0][0].training.groups[0].unit === "s",
    height: 300,
    series,
    rules: [...rules.values()].slice(0, 4),
  };
};
Stretto.lines = function (holder, first) {
  const LEFT = 64,
    RIGHT = 16,
    BOTTOM = 30;
  let spec = first,
    from = 0,
    to = 1,
    cursor = -1,
    isWhole = true;
  const legend = Stretto.node("ul", { class: "legend" }),
    frame = Stretto.node("div", { class: "chart" });
  holder.append(legend, frame);
  const top = () => ((spec.strip && spec.strip.length) || (spec.marks && spec.marks.length) ? 34 : 14);
  const sheet = Stretto.canvas(frame, first.label, () => spec.height || 220, paint);
  const canvas = sheet.canvas;

  function ends() {
    const x = spec.x;
    return x.length ? [Math.min(x[0], spec.xMin === undefined ? x[0] : spec.xMin), x[x.length - 1]] : [0, 1];
  }
  function whole() {
    [from, to] = ends();
    if (!(to > from)) to = from + 1;
    isWhole = true;
  }
  const px = value => LEFT + ((value - from) / (to - from)) * (sheet.width - LEFT - RIGHT);
  const at = pixel => from + ((pixel - LEFT) / (sheet.width - LEFT - RIGHT)) * (to - from);
  const color = (one, k) => one.color || Stretto.series(k);

  function range() {
    let low = Infinity,
      high = -Infinity;
    const see = value => {
      if (value !== null && isFinite(value)) {
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    };
    const [a, b] = visible();
    for (const one of spec.series)
      for (const values of [one.values, ...(one.band || [])]) for (let i = a; i <= b; i++) see(values[i]);
    for (const rule of spec.rules || []) see(rule.value);
    if (!(high >= low)) return [0, 1];
    if (spec.yMin !== undefined) low = spec.yMin;
    if (spec.yMax !== undefined) high = Math.max(spec.yMax, high);
    const room = (high - low || Math.abs(high) || 1) * 0.06;
    return [spec.yMin !== undefined ? low : low - room, spec.yMax !== undefined ? high : high + room];
  }
  function visible() {
    const x = spec.x;
    let a = 0,
      b = x.length - 1;
    while (a < b && x[a + 1] < from) a++;
    while (b > a && x[b - 1] > to) b--;
    return [a, b];
  }
  function paint() {
    const pen = sheet.pen,
      wide = sheet.width,
      high = sheet.height,
      ink = Stretto.css("--faint");
    const [low, most] = range(),
      floor = high - BOTTOM,
      ceiling = top();
    const py = value => floor - ((value - low) / (most - low)) * (floor - ceiling);
    pen.fillStyle = Stretto.css("--panel");
    pen.fillRect(0, 0, wide, high);
    axes(pen, py, low, most, floor, ceiling, ink);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, ceiling - 2, wide - LEFT - RIGHT, floor - ceiling + 4);
    pen.clip();
    (spec.marks || [])
      .filter(mark => mark.x > ends()[0])
      .forEach(mark => stroke(pen, px(mark.x), ceiling, px(mark.x), floor, ink, [2, 3]));
    spec.series.forEach((one, k) => {
      if (one.band) band(pen, one, color(one, k), py);
      curve(pen, one, color(one, k), py, floor);
    });
    (spec.rules || []).forEach((rule, k) =>
      stroke(pen, LEFT, py(rule.value), wide - RIGHT, py(rule.value), ruleColor(k), [6, 4]),
    );
    pen.restore();
    if (spec.strip) strip(pen);
    names(pen, ceiling);
    if (cursor >= 0 && cursor < spec.x.length) reading(pen, py, floor, ceiling);
  }
  const ruleColor = k => Stretto.series([3, 6, 8, 7][k % 4]);
  function stroke(pen, x0, y0, x1, y1, style, dash) {
    pen.strokeStyle = style;
    pen.lineWidth = 1.2;
    pen.setLineDash(dash);
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.stroke();
    pen.setLineDash([]);
  }
  function axes(pen, py, low, most, floor, ceiling, ink) {
    const unit = spec.xTime ? Stretto.unitOf(to - from) : ["", 1];
    const yUnit = spec.yTime ? Stretto.unitOf(Math.max(Math.abs(low), Math.abs(most))) : ["", 1];
    pen.font = "12px " + Stretto.FONT;
    pen.textBaseline = "middle";
    for (const [value, text] of Stretto.ticks(low, most, (floor - ceiling) / 44, yUnit[1])) {
      pen.fillStyle = Stretto.css("--grid");
      pen.fillRect(LEFT, Math.round(py(value)), sheet.width - LEFT - RIGHT, 1);
      pen.fillStyle = ink;
      pen.textAlign = "right";
      pen.fillText(
        spec.yPercent ? Math.round(value * 1000) / 10 + " %" : text + (yUnit[0] ? " " + yUnit[0] : ""),
        LEFT - 8,
        py(value),
      );
    }
    pen.textAlign = "center";
    pen.fillStyle = ink;
    const name = spec.xTime ? "time (" + unit[0] + ")" : spec.xName || "",
      last = sheet.width - RIGHT - pen.measureText(name).width - 14;
    for (const [value, exact] of Stretto.ticks(from, to, (sheet.width - LEFT - RIGHT) / 90, unit[1])) {
      if (!spec.xTime && !Number.isInteger(value)) continue; // there is no half of a generation
      const text = spec.xTime ? exact : value.toLocaleString("en");
      pen.fillRect(Math.round(px(value)), floor, 1, 4);
      if (px(value) + pen.measureText(text).width / 2 < last) pen.fillText(text, px(value), floor + 15);
    }
    pen.textAlign = "right";
    pen.fillText(name, sheet.width - RIGHT, floor + 15);
    pen.fillRect(LEFT, floor, sheet.width - LEFT - RIGHT, 1);
  }
  function band(pen, one, style, py) {
    const [a, b] = visible(),
      [low, high] = one.band;
    pen.beginPath();
    // A step keeps its value until the next place.
    for (let i = a; i <= b; i++)
      if (high[i] !== null) {
        pen.lineTo(px(spec.x[i]), py(high[i]));
        if (one.step && i < b) pen.lineTo(px(spec.x[i + 1]), py(high[i]));
      }
    for (let i = b; i >= a; i--)
      if (low[i] !== null) {
        if (one.step && i < b) pen.lineTo(px(spec.x[i + 1]), py(low[i]));
        pen.lineTo(px(spec.x[i]), py(low[i]));
      }
    pen.globalAlpha = 0.2;
    pen.fillStyle = style;
    pen.fill();
    pen.globalAlpha = 1;
  }
  function curve(pen, one, style, py, floor) {
    const [a, b] = visible();
    pen.strokeStyle = style;
    pen.globalAlpha = one.isFaint ? 0.35 : 1;
    pen.lineWidth = one.thin ? 1 : 1.75;
    pen.lineJoin = "round";
    pen.setLineDash(one.dash || []);
    pen.beginPath();
    let before = null,
      begin = null,
      points = 0;
    for (let i = a; i <= b; i++) {
      const value = one.values[i];
      if (value === null || value === undefined) {
        if (!one.bridge) before = null;
        continue;
      }
      const X = px(spec.x[i]),
        Y = py(value);
      if (before === null) {
        pen.moveTo(X, Y);
        begin = begin === null ? X : begin;
      } else {
        if (one.step) pen.lineTo(X, before);
        pen.lineTo(X, Y);
      }
      before = Y;
      points++;
    }
    pen.stroke();
    pen.globalAlpha = 1;
    pen.setLineDash([]);
    if (one.fill && begin !== null) {
      pen.lineTo(px(spec.x[b]), floor);
      pen.lineTo(begin, floor);
      pen.globalAlpha = 0.14;
      pen.fillStyle = style;
      pen.fill();
      pen.globalAlpha = 1;
    }
    if (points === 1 && before !== null) {
      pen.fillStyle = style;
      pen.beginPath();
      pen.arc(begin, before, 3, 0, 7);
      pen.fill();
    }
  }
  function strip(pen) {
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, sheet.width - LEFT - RIGHT, 30);
    pen.clip();
    pen.font = "12px " + Stretto.FONT;
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    for (const part of spec.strip) {
      const a = Math.max(LEFT, px(part.from)),
        b = Math.min(sheet.width - RIGHT, px(part.to));
      if (b <= LEFT || a >= sheet.width - RIGHT) continue;
      pen.fillStyle = part.color;
      pen.globalAlpha = 0.3;
      pen.fillRect(a, 8, Math.max(1, b - a - 1), 18);
      pen.globalAlpha = 1;
      pen.fillRect(a, 8, Math.max(1, b - a - 1), 2);
      const text = b - a > 30 ? Stretto.fitted(pen, part.name, b - a - 8) : "";
      if (text) {
        pen.fillStyle = Stretto.css("--ink");
        pen.fillText(text, a + 4, 18.5);
      }
    }
    pen.restore();
  }
  function names(pen, ceiling) {
    const marks = spec.marks || [];
    pen.font = "12px " + Stretto.FONT;
    pen.fillStyle = Stretto.css("--faint");
    pen.textBaseline = "top";
    pen.textAlign = "left";
    marks.forEach((mark, k) => {
      const a = Math.max(LEFT, px(mark.x)),
        b = k + 1 < marks.length ? px(marks[k + 1].x) : sheet.width - RIGHT;
      const text = mark.name && b - a > 24 && a < sheet.width - RIGHT ? Stretto.fitted(pen, mark.name, b - a - 8) : "";
      if (text) pen.fillText(text, a + 5, ceiling - 20);
    });
  }
  function reading(pen, py, floor, ceiling) {
    const X = px(spec.x[cursor]);
    stroke(pen, X, ceiling, X, floor, Stretto.css("--faint"), []);
    spec.series.forEach((one, k) => {
      const value = one.values[cursor];
      if (value === null || value === undefined) return;
      pen.fillStyle = color(one, k);
      pen.beginPath();
      pen.arc(X, py(value), 3.5, 0, 7);
      pen.fill();
    });
  }
  const words = value =>
    spec.yPercent ? Stretto.percent(value) : spec.yTime ? Stretto.seconds(value, 5) : Stretto.number(value, 5);
  function tell(box) {
    if (cursor < 0 || !spec.x.length) {
      Stretto.tip(null);
      return;
    }
    const value = spec.x[cursor];
    const lines = [spec.xTime ? Stretto.seconds(value, 5) : (spec.xName || "") + " " + Stretto.number(value, 6)];
    const part = (spec.strip || []).find(one => value >= one.from && value < one.to);
    if (part) {
      lines.push([part.name, part.color]);
      if (part.text) lines.push(part.text);
    }
    spec.series.forEach((one, k) => {
      if (one.isFaint) return;
      lines.push([one.name + "  " + words(one.values[cursor]), color(one, k)]);
      if (one.band) lines.push(one.bandName + "  " + one.band.map(side => words(side[cursor])).join(" to "));
    });
    (spec.note ? spec.note(cursor) : []).forEach(line => lines.push(line));
    Stretto.tip(lines, box.left + px(value), box.top + 20);
  }
  function nearest(value) {
    let a = 0,
      b = spec.x.length - 1;
    while (a < b) {
      const mid = (a + b) >> 1;
      if (spec.x[mid] < value) a = mid + 1;
      else b = mid;
    }
    return a > 0 && value - spec.x[a - 1] < spec.x[a] - value ? a - 1 : a;
  }
  function zoom(factor, pixel) {
    const [low, high] = ends(),
      anchor = at(pixel),
      share = (anchor - from) / (to - from);
    const span = Math.max((high - low) * 1e-6, Math.min(high - low || 1, (to - from) * factor));
    from = Math.max(low, anchor - share * span);
    to = from + span;
    if (to > high) {
      to = high;
      from = to - span;
    }
    isWhole = span >= (high - low) * 0.999;
    sheet.draw();
  }
  function pan(share) {
    const [low, high] = ends(),
      span = to - from;
    from = Math.max(low, Math.min(high - span, from + share * span));
    to = from + span;
    sheet.draw();
  }
  function read(step) {
    cursor = Math.max(0, Math.min(spec.x.length - 1, (cursor < 0 ? nearest((from + to) / 2) : cursor) + step));
    if (spec.x[cursor] < from) pan(-0.3);
    else if (spec.x[cursor] > to) pan(0.3);
    sheet.draw();
    tell(canvas.getBoundingClientRect());
  }
  const middle = () => (cursor >= 0 ? px(spec.x[cursor]) : (LEFT + sheet.width - RIGHT) / 2);
  const KEYS = {
    ArrowLeft: () => read(-1),
    ArrowRight: () => read(1),
    PageUp: () => pan(-0.5),
    PageDown: () => pan(0.5),
    "+": () => zoom(0.7, middle()),
    "=": () => zoom(0.7, middle()),
    "-": () => zoom(1.4, middle()),
    0: () => {
      whole();
      sheet.draw();
    },
    Escape: () => {
      cursor = -1;
      sheet.draw();
      Stretto.tip(null);
    },
  };
  Stretto.keys(canvas, KEYS);
  Stretto.wheel(canvas, event => zoom(Math.exp(event.deltaY / 300), event.offsetX));
  let drag = null;
  canvas.addEventListener("pointerdown", event => {
    drag = event.clientX;
    canvas.setPointerCapture(event.pointerId);
  });
  for (const name of ["pointerup", "pointercancel"])
    canvas.addEventListener(name, () => {
      drag = null;
    });
  canvas.addEventListener("pointermove", event => {
    if (drag !== null && event.buttons) {
      pan((drag - event.clientX) / (sheet.width - LEFT - RIGHT));
      drag = event.clientX;
    }
    cursor = spec.x.length ? nearest(at(event.offsetX)) : -1;
    sheet.draw();
    tell(canvas.getBoundingClientRect());
  });
  canvas.addEventListener("dblclick", () => {
    whole();
    sheet.draw();
  });
  for (const name of ["pointerleave", "blur"])
    canvas.addEventListener(name, () => {
      cursor = -1;
      Stretto.tip(null);
      sheet.draw();
    });

  function name() {
    const entries = [];
    spec.series.forEach((one, k) => {
      if (one.isFaint) return;
      entries.push(Stretto.node("li", {}, Stretto.node("i", { color: color(one, k) }), one.name));
      if (one.band) {
        const shade = Stretto.node("i", { color: color(one, k) });
        shade.style.opacity = "0.25";
        entries.push(Stretto.node("li", {}, shade, one.bandName));
      }
    });
    (spec.rules || []).forEach((rule, k) => {
      const mark = Stretto.node("i", { class: "rule" });
      mark.style.borderColor = ruleColor(k);
      entries.push(Stretto.node("li", {}, mark, rule.name + " " + words(rule.value)));
    });
    legend.replaceChildren(...entries);
    legend.hidden = entries.length < 2;
    const ranges = spec.series.map(one => {
      const values = one.values.filter(value => value !== null && value !== undefined);
      return values.length
        ? `${one.name} from ${words(Math.min(...values))} to ${words(Math.max(...values))}, ${words(values[values.length - 1])} at the end`
        : one.name;
    });
    canvas.setAttribute("aria-label", spec.label + ": " + ranges.join("; "));
  }
  Stretto.painters.add(name);
  function update(next) {
    spec = next;
    if (isWhole) whole();
    cursor = Math.min(cursor, spec.x.length - 1);
    name();
    sheet.size();
  }
  update(first);
  return { update };
};
