"use strict";
// Small charts as SVG. Texts become text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 10;

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}
const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Numbers for people.
function three(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e6 || (size < 1e-4 && size > 0)) return value.toExponential(1);
  const decimals = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 4;
  return minus(value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }));
}
const minus = (text) => text.replace("-", "−");
const whole = (value) => (value === null ? "–" : value.toLocaleString("en-US"));
const four = (value) => (value === null || value === undefined ? "–" : minus(value.toFixed(4)));
const plus = (value) => (value > 0 ? "+" : "") + three(value);
const signed = (value) => (value === null || value === undefined ? "–" : (value > 0 ? "+" : "") + four(value));
const percent = (share) => (share === null || share === undefined ? "–" : (100 * share).toFixed(1) + " %");
const pText = (p) => (p === null || p === undefined ? "–" : p < 0.001 ? "< 0.001" : p.toFixed(3));
const bytes = (n) => (n >= 1e6 ? (n / 1e6).toFixed(1) + " MB" : n >= 1e3 ? (n / 1e3).toFixed(1) + " kB" : n + " B");
function short(text, most) {
  if (text.length <= most) return text;
  const head = Math.ceil((most - 1) / 2);
  return text.slice(0, head) + "…" + text.slice(text.length - (most - 1 - head));
}

// Ticks at round numbers.
function roundTicks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999) || 10);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++)
    ticks.push(Number((k * step).toPrecision(12)));
  return { ticks, step };
}
function tickText(step) {
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return (value) =>
    minus(value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }));
}

function scale(kind, low, high, from, to, count) {
  if (!(high > low)) {
    const pad = Math.abs(low) * 0.1 || 1;
    low -= pad;
    high += pad;
  }
  if (kind === "log") {
    const a = Math.log(low),
      b = Math.log(high);
    const at = (value) => from + ((to - from) * (Math.log(value) - a)) / (b - a);
    let ticks = [];
    const decades = Math.log10(high / low);
    for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++)
      for (const factor of decades > 3 ? [1] : [1, 2, 5]) ticks.push(factor * Math.pow(10, k));
    ticks = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
    if (ticks.length >= 3)
      return {
        at,
        ticks,
        text: (value) =>
          minus(String(Number(value.toPrecision(3)).toLocaleString("en-US", { maximumFractionDigits: 6 }))),
        low,
        high,
      };
    const { ticks: plain, step } = roundTicks(low, high, count);
    return { at, ticks: plain.filter((tick) => tick > 0), text: tickText(step), low, high };
  }
  const { ticks, step } = roundTicks(low, high, count);
  return { at: (value) => from + ((to - from) * (value - low)) / (high - low), ticks, text: tickText(step), low, high };
}

// A chart's paper: axes with titles. `x` and `y` say { kind, low, high, title, ticks, text }; `right` is the margin there.
function paper(place, { height, x, y, label, right = 18 }) {
  const width = Math.max(260, place.clientWidth || 640);
  const top = 30,
    bottom = 46;
  const sy = scale(y.kind, y.low, y.high, height - bottom, top, Math.max(2, Math.floor(height / 42)));
  const left = 16 + 7.2 * Math.max(3, ...sy.ticks.map((tick) => sy.text(tick).length));
  const sx = scale(x.kind, x.low, x.high, left, width - right, Math.max(2, Math.floor((width - left) / 90)));
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": label });
  for (const tick of sy.ticks) {
    svg.append(
      draw("line", { class: "grid-line", x1: left, x2: width - right, y1: sy.at(tick), y2: sy.at(tick) }),
      draw("text", { x: left - 8, y: sy.at(tick) + 4, "text-anchor": "end" }, sy.text(tick)),
    );
  }
  let last = -Infinity;
  for (const tick of sx.ticks) {
    const at = sx.at(tick),
      text = (x.text || sx.text)(tick);
    svg.append(draw("line", { class: "grid-line", x1: at, x2: at, y1: top, y2: height - bottom }));
    if (at - last < 8 * text.length + 6) continue; // would touch its neighbour
    last = at;
    svg.append(draw("text", { x: at, y: height - bottom + 18, "text-anchor": "middle" }, text));
  }
  svg.append(
    draw("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }),
    draw("text", { class: "title", x: 2, y: 16 }, y.title),
    draw("text", { class: "title", x: width - right, y: height - 8, "text-anchor": "end" }, x.title),
  );
  place.replaceChildren(svg);
  return { svg, sx, sy, width, height, left, right, top, bottom };
}

const colour = (number) => `var(--c${number % COLOURS})`;
const textColour = (number) => `fill:color-mix(in srgb, ${colour(number)} 70%, var(--ink))`; // dark enough to read
const dash = (number) => ["none", "7 4", "2 4", "9 3 2 3"][Math.floor(number / COLOURS) % 4];

// Markers differ in shape, so that series need no colour to be told apart.
function marker(number, x, y, r, attributes) {
  const s = r * 0.9,
    t = r * 1.2;
  const shapes = [
    `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
    `M${x - s},${y - s}h${2 * s}v${2 * s}h${-2 * s}Z`,
    `M${x},${y - t}L${x + t},${y + s}H${x - t}Z`,
    `M${x},${y - t}L${x + t},${y}L${x},${y + t}L${x - t},${y}Z`,
    `M${x},${y + t}L${x + t},${y - s}H${x - t}Z`,
    star(x, y, 5, t * 1.1, t * 0.5),
    cross(x, y, t, t * 0.42),
    saltire(x, y, t * 0.75, t * 0.42),
    `M${x - s},${y - t}L${x + t},${y}L${x - s},${y + t}Z`,
    `M${x + s},${y - t}L${x - t},${y}L${x + s},${y + t}Z`,
  ];
  return draw("path", { d: shapes[number % shapes.length], fill: colour(number), ...attributes });
}
function star(x, y, n, outer, inner) {
  const corners = [];
  for (let k = 0; k < 2 * n; k++) {
    const r = k % 2 ? inner : outer,
      angle = Math.PI * (k / n - 0.5);
    corners.push(`${x + r * Math.cos(angle)},${y + r * Math.sin(angle)}`);
  }
  return `M${corners.join("L")}Z`;
}
const cross = (x, y, a, b) =>
  `M${x - b},${y - a}H${x + b}V${y - b}H${x + a}V${y + b}H${x + b}V${y + a}H${x - b}V${y + b}H${x - a}V${y - b}H${x - b}Z`;
// A cross that stands on two of its ends.
const saltire = (x, y, a, b) =>
  `M${x},${y - b}L${x + a},${y - a - b}L${x + a + b},${y - a}L${x + b},${y}L${x + a + b},${y + a}L${x + a},${y + a + b}L${x},${y + b}L${x - a},${y + a + b}L${x - a - b},${y + a}L${x - b},${y}L${x - a - b},${y - a}L${x - a},${y - a - b}Z`;
const swatch = (number) => draw("svg", { width: 15, height: 15, "aria-hidden": "true" }, marker(number, 7.5, 7.5, 5));

// One tooltip for all: the first line is bold.
const tip = document.getElementById("tip");
function showTip(lines, x, y) {
  tip.replaceChildren(make("b", null, lines[0]), lines.slice(1).join("\n"));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > window.innerWidth ? x - 16 - box.width : x + 16;
  tip.style.left = Math.max(6, Math.min(left, window.innerWidth - box.width - 6)) + "px";
  tip.style.top = Math.max(6, Math.min(y - box.height - 8, window.innerHeight - box.height - 6)) + "px";
}
let showFocused = null; // shows the tooltip of the element that has the focus, beside it
const hideTip = () => {
  tip.hidden = true;
  showFocused = null;
};
// The pointer has left: what has the focus gets its tooltip back.
const leaveTip = () => (showFocused ? showFocused() : hideTip());
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTip();
});
// What has the focus keeps its tooltip: the browser scrolls there to show it.
window.addEventListener("scroll", leaveTip, { passive: true });

// Show a tooltip over an element, by pointer and by keyboard.
function withTip(element, lines) {
  const atPointer = (event) => showTip(lines, event.clientX, event.clientY);
  const atBox = () => {
    const box = element.getBoundingClientRect();
    showTip(lines, box.right, box.top);
    showFocused = atBox;
  };
  return fill(
    element,
    { pointerenter: atPointer, pointermove: atPointer, pointerleave: leaveTip, focus: atBox, blur: hideTip },
    [],
  );
}

// Something follows the pointer over a chart: `find(x)` gives { x, lines } for a position, or null.
function withCursor(sheet, find) {
  const { svg, top, bottom, height, width } = sheet;
  const line = draw("line", { class: "cursor", y1: top, y2: height - bottom, visibility: "hidden" });
  svg.append(line);
  const leave = () => {
    line.setAttribute("visibility", "hidden");
    leaveTip();
  };
  const move = (event) => {
    const box = svg.getBoundingClientRect();
    const found = find(((event.clientX - box.left) * width) / box.width);
    if (!found) return leave();
    line.setAttribute("x1", found.x);
    line.setAttribute("x2", found.x);
    line.setAttribute("visibility", "visible");
    showTip(found.lines, event.clientX, event.clientY);
  };
  fill(svg, { pointermove: move, pointerdown: move, pointerleave: leave }, []);
}

// Lines over a common x. A series is { number, name, label, brief, xs, ys, dashed }; gaps are null. Labels stand at the
// ends of lines, `brief` where there is no room for `label`.
function lineChart(place, series, { xTitle, yTitle, label, height = 320, fromZero = false, format = three }) {
  const xs = series.flatMap((one) => one.xs),
    ys = series.flatMap((one) => one.ys).filter((value) => value !== null);
  if (!ys.length) return empty(place, "There is nothing to draw for the models chosen.");
  let low = Math.min(...ys),
    high = Math.max(...ys);
  if (fromZero) {
    low = Math.min(0, low);
    high = Math.max(0, high);
  }
  const pad = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  const room = Math.max(260, place.clientWidth || 640) * 0.3;
  const longest = Math.max(...series.map((one) => one.label.length));
  const sheet = paper(place, {
    height,
    label,
    right: Math.min(room, 16 + LETTER * Math.min(longest, LONGEST_LABEL)),
    x: { low: Math.min(...xs), high: Math.max(...xs), title: xTitle },
    y: { low: fromZero && low === 0 ? 0 : low - pad, high: high + pad, title: yTitle },
  });
  const { svg, sx, sy } = sheet;
  const points = [];
  for (const one of series) {
    let path = "",
      pen = false;
    one.ys.forEach((value, k) => {
      if (value === null) {
        pen = false;
        return;
      }
      const at = [sx.at(one.xs[k]), sy.at(value)];
      path += `${pen ? "L" : "M"}${at[0].toFixed(1)},${at[1].toFixed(1)}`;
      points.push(at);
      pen = true;
    });
    svg.append(
      draw("path", {
        class: "series",
        d: path,
        stroke: colour(one.number),
        "data-model": one.number,
        "stroke-dasharray": one.dashed ? "2 3" : dash(one.number),
        opacity: one.dashed ? 0.75 : 1,
      }),
    );
    const marked = one.mark === undefined ? one.ys.length - 1 : one.mark;
    if (one.ys[marked] !== null && !one.dashed)
      svg.append(marker(one.number, sx.at(one.xs[marked]), sy.at(one.ys[marked]), 5, { class: "mark" }));
  }
  labelEnds(sheet, series, points);
  withCursor(sheet, (x) => {
    const all = [...new Set(xs)];
    const nearest = all.reduce(
      (best, value) => (Math.abs(sx.at(value) - x) < Math.abs(sx.at(best) - x) ? value : best),
      all[0],
    );
    const lines = [];
    for (const one of series) {
      const k = one.xs.findIndex((value) => value >= nearest);
      if (k >= 0 && one.ys[k] !== null) lines.push([one.ys[k], `${short(one.name, 30)}: ${format(one.ys[k])}`]);
    }
    lines.sort((a, b) => b[0] - a[0]);
    return {
      x: sx.at(nearest),
      lines: [`${xTitle} ${whole(nearest)}`, ...lines.slice(0, 12).map((entry) => entry[1])],
    };
  });
  return sheet;
}

// The name of every line at its end: where it covers no other name and as few points of lines as can be, with a leader
// when it had to move away. A name for which there is no room is left out, those of dashed lines first.
const LONGEST_LABEL = 22,
  LETTER = 9.2; // pixels
function labelEnds({ svg, sx, sy, width, height, top, bottom, right }, series, points) {
  const most = Math.floor((right - 12) / LETTER);
  const taken = [];
  for (const one of [...series].sort((a, b) => Boolean(a.dashed) - Boolean(b.dashed))) {
    const last = one.ys.findLastIndex((value) => value !== null);
    if (last < 0) continue;
    const [x, y] = [sx.at(one.xs[last]), sy.at(one.ys[last])];
    const letters = x > width - right - 40 ? Math.min(most, LONGEST_LABEL) : LONGEST_LABEL;
    const label = draw(
      "text",
      { class: "name end", style: textColour(one.number), "data-model": one.number },
      one.label.length <= letters ? one.label : short(one.brief || one.label, letters),
    );
    svg.append(label);
    const wide = label.getComputedTextLength();
    const isAtEdge = x + 8 + wide > width - 18 || x > width - right - 40;
    const from = isAtEdge ? width - right + 8 : x + 8;
    let best = null;
    for (let step = 0; step <= 24; step++) {
      const base = y + 4 + (step % 2 ? -1 : 1) * Math.ceil(step / 2) * 8;
      const area = [from, base - 11, from + wide, base + 3];
      if (area[1] < top - 8 || area[3] > height - bottom + 8 || area[2] > width || taken.some((other) => meet(area, other)))
        continue;
      const covered = points.filter(([px, py]) => px > area[0] && px < area[2] && py > area[1] && py < area[3]).length;
      const cost = step + 3 * covered;
      if (best === null || cost < best.cost) best = { cost, base, area };
    }
    if (best === null) {
      label.remove();
      continue;
    }
    taken.push(best.area);
    fill(label, { x: from, y: best.base }, []);
    if (Math.abs(best.base - 4 - y) > 6 || from - x > 16)
      svg.insertBefore(
        draw("line", { class: "leader", stroke: colour(one.number), x1: x + 2, y1: y, x2: from - 2, y2: best.base - 4 }),
        label,
      );
  }
}
const meet = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

// One row of bars for every model over common bins: histograms that never hide each other.
function histogramRows(place, rows, { first, width: step, xTitle, label, unit }) {
  if (!rows.length) return empty(place, "No model is chosen.");
  const width = Math.max(260, place.clientWidth || 500);
  const n = Math.max(...rows.map((row) => row.counts.length), 1);
  const row = 40,
    left = Math.min(140, width * 0.34),
    right = 8,
    foot = 42;
  const height = rows.length * row + foot;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": label });
  const cell = (width - left - right) / n;
  const range = (k) =>
    step === 1 ? whole(first + k) : `${whole(first + k * step)}–${whole(first + (k + 1) * step - 1)}`;
  rows.forEach((one, r) => {
    const base = (r + 1) * row - 4,
      total = one.counts.reduce((a, b) => a + b, 0) || 1,
      most = Math.max(...one.counts, 1);
    svg.append(
      draw("line", { class: "grid-line", x1: left, x2: width - right, y1: base, y2: base }),
      draw("text", { class: "name", x: 0, y: base - 8 }, short(one.name, Math.floor(left / 9.2))),
    );
    one.counts.forEach((count, k) => {
      if (!count) return;
      const tall = Math.max(1.5, ((row - 12) * count) / most);
      const bar = draw("rect", {
        x: left + k * cell + Math.min(1, cell * 0.1),
        y: base - tall,
        width: Math.max(1, cell - Math.min(2, cell * 0.2)),
        height: tall,
        fill: colour(one.number),
        rx: Math.min(2, cell / 4),
        "data-model": one.number,
      });
      svg.append(withTip(bar, [one.name, `${unit} ${range(k)}: ${whole(count)} trees (${percent(count / total)})`]));
    });
  });
  const stride = Math.ceil((whole(first + n * step).length * 8 + 12) / cell);
  for (let k = 0; k < n; k += stride) {
    const at = left + (k + (step === 1 ? 0.5 : 0)) * cell;
    svg.append(draw("text", { x: at, y: height - foot + 16, "text-anchor": "middle" }, whole(first + k * step)));
  }
  svg.append(draw("text", { class: "title", x: width - right, y: height - 6, "text-anchor": "end" }, xTitle));
  place.replaceChildren(svg);
}

// Bars side by side, a group for every row and a bar for every series in it: { name, number, values }, gaps are null.
function groupedBars(place, rows, series, { label, format }) {
  if (!series.length || !rows.length) return empty(place, "There is nothing to draw for the models chosen.");
  const width = Math.max(260, place.clientWidth || 640);
  const bar = series.length > 4 ? 8 : 12,
    group = series.length * bar + 12,
    left = Math.min(210, width * 0.36),
    right = 56;
  const height = rows.length * group + 8;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": label });
  const most = Math.max(1e-12, ...series.flatMap((one) => one.values.map((value) => value || 0)));
  rows.forEach((row, r) => {
    const top = r * group + 6,
      title = draw("text", { class: "name", x: 0, y: top + (series.length * bar) / 2 + 4 }, short(row, Math.floor(left / 8.4)));
    svg.append(fill(title, {}, [draw("title", null, row)]));
    series.forEach((one, k) => {
      const value = one.values[r];
      if (value === null) return;
      const y = top + k * bar,
        long = ((width - left - right) * value) / most;
      const drawn = draw("rect", {
        x: left,
        y: y + 1,
        width: Math.max(1, long),
        height: bar - 2,
        rx: 2,
        fill: colour(one.number),
        "data-model": one.number,
      });
      svg.append(withTip(drawn, [one.name, `${row}: ${format(value)}`]));
      if (bar >= 12) svg.append(draw("text", { x: left + long + 5, y: y + bar - 2 }, format(value)));
    });
  });
  svg.append(draw("line", { class: "axis", x1: left, x2: left, y1: 2, y2: height - 4 }));
  place.replaceChildren(svg);
}

function empty(place, text) {
  place.replaceChildren(make("p", { class: "empty" }, text));
  return null;
}
