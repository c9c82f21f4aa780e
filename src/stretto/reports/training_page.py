"""The page of a training run: the picture, and the row under the pointer; needs no network."""

PAGE = r"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>@TITLE@</title>
<style>
body { margin: 0; background: #ffffff; color: #202124;
  font: 14px/1.4 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1300px; margin: 0 auto; padding: 8px; }
#place { position: relative; }
svg { display: block; width: 100%; height: auto; }
#rule { position: absolute; top: 15%; bottom: 9%; width: 1px; background: #5f636888; visibility: hidden;
  pointer-events: none; }
#tip { position: fixed; visibility: hidden; background: #ffffffee; border: 1px solid #e3e5e8; border-radius: 5px;
  padding: 6px 9px; font-size: 12.5px; box-shadow: 0 2px 8px #0003; pointer-events: none; }
#tip b { display: block; }
#tip div { color: #5f6368; font-variant-numeric: tabular-nums; }
</style>
</head>
<body>
<main><div id="place">@PICTURE@<div id="rule"></div></div></main>
<div id="tip" role="status"></div>
<script type="application/json" id="data">@DATA@</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const place = document.getElementById("place"), rule = document.getElementById("rule");
const tip = document.getElementById("tip"), [low, high] = data.span, [left, right] = data.axes;
const UNITS = [["ns", 1e-9], ["µs", 1e-6], ["ms", 1e-3], ["s", 1]];
function show(seconds) {
  let unit = UNITS[0];
  for (const next of UNITS) if (Math.abs(seconds) >= next[1]) unit = next;
  return Number((seconds / unit[1]).toPrecision(5)) + " " + unit[0];
}
function nearest(episode) {
  let a = 0, b = data.rows.length - 1;
  while (a < b) { const mid = (a + b) >> 1; if (data.rows[mid][0] < episode) a = mid + 1; else b = mid; }
  return a > 0 && episode - data.rows[a - 1][0] < data.rows[a][0] - episode ? a - 1 : a;
}
const share = episode => left + (right - left) * (episode - low) / (high - low);
place.addEventListener("pointermove", event => {
  const box = place.getBoundingClientRect(), at = (event.clientX - box.left) / box.width;
  const inside = at >= left && at <= right;
  rule.style.visibility = tip.style.visibility = inside ? "visible" : "hidden";
  if (!inside) return;
  const row = data.rows[nearest(low + (high - low) * (at - left) / (right - left))];
  rule.style.left = 100 * share(row[0]) + "%";
  const [episode, seconds, best, mean, greedy, entropy, stage] = row;
  const lines = ["episode " + episode.toLocaleString("en") + (stage ? ", " + stage : "")];
  lines.push(show(seconds) + " of training");
  for (const [name, value] of [["best", best], ["mean", mean], ["greedy", greedy]])
    if (value !== null) lines.push(name + " " + show(value));
  if (entropy !== null) lines.push("entropy " + Number(entropy.toPrecision(4)));
  tip.replaceChildren(...lines.map((text, k) => {
    const node = document.createElement(k ? "div" : "b"); node.textContent = text; return node;
  }));
  tip.style.left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8) + "px";
});
place.addEventListener("pointerleave", () => { rule.style.visibility = tip.style.visibility = "hidden"; });
</script>
</body>
</html>
"""
