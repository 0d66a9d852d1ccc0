// The sections of the report. Each takes the place to fill and returns what draws it again when a choice changes.

const data = JSON.parse(document.getElementById("report-data").textContent);
const models = data.models, baseline = data.baseline;
const state = { measure: 0, hidden: new Set() };
const visible = () => models.map((model, number) => ({ ...model, number })).filter((model) => !state.hidden.has(model.number));
const measureName = () => data.measures[state.measure];

// A labelled choice. Options are [value, text]; `change` gets the value.
function choice(label, options, value, change, attributes) {
  const select = make("select", { ...attributes, change: (event) => change(event.target.value) },
    options.map(([key, text]) => make("option", { value: key, selected: String(key) === String(value) }, text)));
  return make("label", { class: "choice" }, label, select);
}
function tick(label, value, change, attributes) {
  const box = make("input", { type: "checkbox", checked: value, ...attributes, change: (event) => change(event.target.checked) });
  return make("label", { class: "choice" }, box, label);
}
// A figure with a title, a caption, and its numbers as CSV.
function figure(name, title, { caption = "", lines = null, wide = false, untitled = false } = {}) {
  const place = make("div", { class: "chart", id: `chart-${name}` });
  const button = lines && make("button", {
    type: "button", title: "Download the numbers as CSV", click: () => saveText(`${name}.csv`, asCsv({ lines: lines().map((line) => line.map(String)) })),
  }, "CSV");
  const element = make("figure", { class: wide ? "wide" : null },
    make("div", { class: untitled ? "figure-head raised" : "figure-head" }, make("h3", { class: untitled ? "unseen" : null }, title), button), place, caption ? make("figcaption", null, caption) : null);
  return { element, place };
}
const interval = (low, high, text) => low === null || low === undefined ? "" : `${text(low)} to ${text(high)}`;
const named = (number) => make("span", { class: "named" }, swatch(number), make("span", null, models[number].name));

// 1. Models
function modelsSection(place) {
  const others = () => data.measures.map((_, k) => k).filter((k) => k !== state.measure);
  const columns = () => [
    { title: "model" },
    { title: measureName(), hint: "mean over queries, 95 % interval below" },
    { title: "difference", hint: `of ${measureName()} from the baseline, 95 % interval below` },
    { title: "p", hint: "randomisation test, corrected (Holm)" },
    { title: "µs per doc", hint: "median, 95 % interval below" },
    { title: "speed-up" },
    { title: "trees" }, { title: "leaves" }, { title: "nodes", hint: "inner nodes" },
    { title: "mean depth", hint: "mean over trees of the longest path" },
    { title: "size", hint: "as rankwood's model file" },
    ...others().map((k) => ({ title: data.measures[k], hint: "mean over queries, 95 % interval below" })),
  ];
  const both = (text, under) => ({ text: under ? `${text} (${under})` : text, node: [text, under ? make("small", null, under) : null] });
  function row(model, number) {
    const difference = model.difference[state.measure], isBase = number === baseline;
    const isSure = difference && difference[4] !== null && difference[4] < data.alpha;
    const quality = (k) => ({ ...both(four(model.quality[k][0]), interval(model.quality[k][1], model.quality[k][2], four)), sort: model.quality[k][0] });
    const verdict = isSure ? (difference[0] > 0 ? "better" : "worse") : null;
    const cells = [
      { text: model.name, hint: model.name, node: [named(number), isBase && models.length > 1 ? make("small", null, "baseline") : null] },
      quality(state.measure),
      difference ? { ...both(signed(difference[0]), interval(difference[1], difference[2], signed)), sort: difference[0], class: verdict } : { text: "", sort: null },
      difference ? { text: pText(difference[4]), sort: difference[4], class: verdict, node: verdict ? [pText(difference[4]), make("small", null, verdict)] : null } : { text: "", sort: null },
      { ...both(three(model.us[0]), interval(model.us[1], model.us[2], three)), sort: model.us[0] },
      { text: model.speedUp === null ? "–" : `${model.speedUp.toFixed(model.speedUp < 10 ? 2 : 1)}×`, sort: model.speedUp },
      { text: whole(model.trees), sort: model.trees }, { text: whole(model.leaves), sort: model.leaves },
      { text: whole(model.nodes), sort: model.nodes }, { text: model.depth.toFixed(1), sort: model.depth },
      { text: bytes(model.bytes), sort: model.bytes }, ...others().map(quality),
    ];
    cells.className = state.hidden.has(number) ? "off" : null;
    return cells;
  }
  const several = models.length > 1;
  const engines = [...new Set(models.map((model) => model.engine))].join(", ");
  const caption = `Means over ${whole(data.data.queries)} queries with 95 % bootstrap intervals. ` +
    (several ? `Differences from ${models[baseline].name} are paired by query; p is of the randomisation test, corrected for all models and measures (Holm). ` : "") +
    `Times: one thread, ${whole(models[0].batch)} documents per call, median of ${whole(Math.min(...models.map((m) => m.calls)))} calls or more, engine ${engines}. Convention ${data.convention}.`;
  const kept = (list) => list.filter((_, k) => several || !["p", "speed-up", "difference"].includes(columns()[k].title));
  const table = tableOf("models", "All models", () => ({
    columns: kept(columns()),
    rows: models.map((model, number) => { const full = row(model, number); const cells = kept(full); cells.className = full.className; return cells; }),
    caption,
  }), { sortable: true, untitled: true });
  place.append(table.element);
  return table.refill;
}

// 2. Quality against cost
const COSTS = {
  us: ["µs per document", (model) => model.us], leaves: ["leaves", (model) => [model.leaves]], trees: ["trees", (model) => [model.trees]],
  path: ["longest paths, in splits", (model) => [model.path]], bytes: ["bytes of the model file", (model) => [model.bytes]],
};
function tradeoffSection(place) {
  const local = { cost: "us", shown: "value", log: true };
  const qualityOf = (model) => local.shown === "value" ? model.quality[state.measure]
    : model.difference[state.measure] || [0, null, null];
  const lines = () => [["model", COSTS[local.cost][0], "low", "high", measureName(), "low", "high", "on the Pareto front"],
    ...points().map((point) => [point.model.name, ...full(point.cost), ...full(point.quality.slice(0, 3)), point.front ? "yes" : "no"])];
  const full = (values) => [0, 1, 2].map((k) => values[k] === undefined || values[k] === null ? "" : values[k]);
  const { element, place: chart } = figure("tradeoff", "Quality against cost", {
    lines, wide: true, untitled: true,
    caption: "Up and to the left is better. Bars are 95 % intervals; the dashed line is the Pareto front: no other model is both cheaper and better than those on it.",
  });
  const redo = () => refill();
  const controls = make("div", { class: "controls" },
    choice("Cost", Object.entries(COSTS).map(([key, [title]]) => [key, title]), local.cost, (value) => { local.cost = value; redo(); }, { id: "choose-cost" }),
    models.length > 1 ? choice("Show", [["value", "the measure"], ["difference", `difference from ${short(models[baseline].name, 24)}`]], local.shown, (value) => { local.shown = value; redo(); }, { id: "choose-shown" }) : null,
    tick("logarithmic cost", local.log, (value) => { local.log = value; redo(); }, { id: "choose-log" }));
  place.append(controls, element);

  function points() {
    const found = visible().map((model) => ({ model, cost: COSTS[local.cost][1](model), quality: qualityOf(model) }))
      .filter((point) => point.quality[0] !== null && point.cost[0] !== null);
    for (const point of found)
      point.front = !found.some((other) => other !== point && other.cost[0] <= point.cost[0] && other.quality[0] >= point.quality[0]
        && (other.cost[0] < point.cost[0] || other.quality[0] > point.quality[0]));
    return found;
  }
  function refill() {
    const found = points();
    if (!found.length) return empty(chart, "No model is chosen: press a name above.");
    const costs = found.flatMap((point) => point.cost).filter((value) => value !== null && value !== undefined);
    const values = found.flatMap((point) => point.quality.slice(0, 3)).filter((value) => value !== null && value !== undefined);
    const canLog = local.log && Math.min(...costs) > 0;
    let low = Math.min(...costs), high = Math.max(...costs);
    const spread = canLog ? Math.max(1.15, Math.pow(high / low, 0.12)) : (high - low) * 0.1 || Math.abs(high) * 0.1 || 1;
    low = canLog ? low / spread : Math.max(0, low - spread); high = canLog ? high * spread : high + spread;
    const bottom = Math.min(...values), top = Math.max(...values), pad = (top - bottom) * 0.08 || 0.01;
    const title = local.shown === "value" ? measureName() : `${measureName()}, difference from ${short(models[baseline].name, 20)}`;
    const sheet = paper(chart, {
      height: Math.min(460, Math.max(330, chart.clientWidth * 0.55)),
      x: { kind: canLog ? "log" : "linear", low, high, title: COSTS[local.cost][0] + (canLog ? " (log scale)" : "") },
      y: { low: bottom - pad, high: top + pad, title },
      label: `${measureName()} of ${found.length} models against ${COSTS[local.cost][0]}`,
    });
    const { svg, sx, sy } = sheet;
    if (local.shown !== "value" && sy.low < 0 && sy.high > 0)
      svg.append(draw("line", { class: "zero", x1: sheet.left, x2: sheet.width - sheet.right, y1: sy.at(0), y2: sy.at(0) }));
    drawFront(sheet, found.filter((point) => point.front));
    for (const point of found) drawWhiskers(sheet, point);
    const taken = found.map((point) => box(sx.at(point.cost[0]), sy.at(point.quality[0]), 9));
    const bars = found.filter((point) => point.quality[1] !== null && point.quality[1] !== undefined)
      .map((point) => [sx.at(point.cost[0]) - 3, sy.at(point.quality[2]), sx.at(point.cost[0]) + 3, sy.at(point.quality[1])]);
    for (const point of found) drawLabel(sheet, point, taken, bars);
    for (const point of found) {
      const { model, cost, quality } = point;
      const lines = [model.name, `${COSTS[local.cost][0]}: ${three(cost[0])}${cost[1] !== undefined ? ` (${interval(cost[1], cost[2], three)})` : ""}`,
        `${title}: ${local.shown === "value" ? four(quality[0]) : signed(quality[0])}${quality[1] !== null ? ` (${interval(quality[1], quality[2], local.shown === "value" ? four : signed)})` : ""}`,
        `${whole(model.trees)} trees, ${whole(model.leaves)} leaves`, point.front ? "on the Pareto front" : "not on the Pareto front"];
      svg.append(withTip(marker(model.number, sx.at(cost[0]), sy.at(quality[0]), 7.5, {
        class: "point", tabindex: "0", role: "img", "data-model": model.number, "aria-label": lines.join(", "),
      }), lines));
    }
  }
  return refill;
}
function drawFront({ svg, sx, sy, width, right }, front) {
  const sorted = [...front].sort((a, b) => a.cost[0] - b.cost[0]);
  if (!sorted.length) return;
  let path = "";
  sorted.forEach((point, k) => {
    const x = sx.at(point.cost[0]), y = sy.at(point.quality[0]);
    path += k ? `H${x}V${y}` : `M${x},${y}`;
  });
  svg.append(draw("path", { class: "front", d: `${path}H${width - right}` }));
}
function drawWhiskers({ svg, sx, sy }, { model, cost, quality }) {
  const x = sx.at(cost[0]), y = sy.at(quality[0]), stroke = colour(model.number);
  const line = (x1, y1, x2, y2) => svg.append(draw("line", { class: "whisker", x1, y1, x2, y2, stroke }));
  if (quality[1] !== null && quality[1] !== undefined) {
    const [a, b] = [sy.at(quality[1]), sy.at(quality[2])];
    line(x, a, x, b); line(x - 4, a, x + 4, a); line(x - 4, b, x + 4, b);
  }
  if (cost[1] !== null && cost[1] !== undefined) {
    const [a, b] = [sx.at(cost[1]), sx.at(cost[2])];
    line(a, y, b, y); line(a, y - 4, a, y + 4); line(b, y - 4, b, y + 4);
  }
}
const box = (x, y, r) => [x - r, y - r, x + r, y + r];
const meet = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
// The name beside its point, where it covers nothing, or if need be other points' bars; not at all without room.
function drawLabel({ svg, sx, sy, width, left, top, height, bottom }, { model, cost, quality }, taken, bars) {
  const text = short(model.name, 22), x = sx.at(cost[0]), y = sy.at(quality[0]), wide = text.length * 7.3;
  const places = [[x + 13, y + 4, "start"], [x - 13, y + 4, "end"], [x + 9, y - 13, "start"], [x - 9, y - 13, "end"],
    [x + 9, y + 21, "start"], [x - 9, y + 21, "end"], [x + 9, y - 30, "start"], [x + 9, y + 38, "start"], [x - 9, y - 30, "end"], [x - 9, y + 38, "end"]];
  for (const [at, base, anchor, avoided] of [...places.map((one) => [...one, [...taken, ...bars]]), ...places.map((one) => [...one, taken])]) {
    const area = anchor === "start" ? [at, base - 12, at + wide, base + 4] : [at - wide, base - 12, at, base + 4];
    if (area[0] < left || area[2] > width || area[1] < top || area[3] > height - bottom || avoided.some((other) => meet(area, other))) continue;
    taken.push(area);
    svg.append(draw("text", { class: "name", x: at, y: base, "text-anchor": anchor, style: `fill:${colour(model.number)}` }, text));
    return;
  }
}

// 3. Learning curves
function curvesSection(place) {
  const kinds = [...new Set(models.flatMap((model) => Object.values(model.curves).flatMap(Object.keys)))];
  const sets = [...new Set(models.flatMap((model) => Object.keys(model.curves)))];
  if (!kinds.length) {
    place.append(make("p", { class: "empty" }, "No model brings its learning curve. Models that rankwood trains with validation data do; for others give curves to write_report."));
    return () => {};
  }
  const local = { kind: kinds.includes(data.measures[0]) ? data.measures[0] : kinds[0], sets: "all" };
  const solid = (name) => name !== "train" && name !== "training";
  const series = () => visible().flatMap((model) => Object.entries(model.curves)
    .filter(([name, curves]) => curves[local.kind] && (local.sets === "all" || local.sets === name))
    .map(([name, curves]) => {
      const [xs, ys] = curves[local.kind];
      const best = ys.reduce((k, value, n) => value !== null && (k < 0 || value > ys[k]) ? n : k, -1);
      return { number: model.number, name: `${model.name}, ${name}`, xs, ys, dashed: !solid(name), mark: best < 0 ? 0 : best };
    }));
  const without = models.filter((model) => !Object.keys(model.curves).length).map((model) => model.name);
  const { element, place: chart } = figure("curves", "Learning curves", {
    wide: true, untitled: true,
    caption: `Solid: validation; dotted: training. The marker is the best iteration on validation data.${without.length ? ` Without a curve: ${without.join(", ")}.` : ""}`,
    lines: () => [["model and data", "iteration", local.kind], ...series().flatMap((one) => one.xs.map((x, k) => [one.name, x, one.ys[k] === null ? "" : one.ys[k]]))],
  });
  place.append(make("div", { class: "controls" },
    choice("Measure", kinds.map((kind) => [kind, kind]), local.kind, (value) => { local.kind = value; refill(); }, { id: "choose-curve" }),
    sets.length > 1 ? choice("Data", [["all", "all"], ...sets.map((name) => [name, name])], local.sets, (value) => { local.sets = value; refill(); }) : null), element);
  function refill() {
    lineChart(chart, series(), { xTitle: "iteration", yTitle: local.kind, label: `${local.kind} by iteration`, height: 360, format: four });
  }
  return refill;
}

// 4. Anatomy
function anatomySection(place) {
  const local = { weight: "ranges", share: "splits" };
  const bins = (first, step, key) => () => [["model", "from", "trees"],
    ...visible().flatMap((model) => model[key].map((count, k) => [model.name, first + k * step, count]))];
  const depth = figure("depths", "Depth of trees", { lines: bins(...data.depthBins, "depths") });
  const leaves = figure("leaves", "Leaves per tree", { lines: bins(...data.leafBins, "leafCounts") });
  const weights = figure("weights", "Tree by tree", {
    wide: true,
    lines: () => [["model", "tree", "weight", "output range"], ...visible().flatMap((model) => model.treeNumbers.map((tree, k) => [model.name, tree, model.weights[k], model.ranges[k]]))],
    caption: "How far the output of each tree can move a score (its weight times the largest minus the smallest leaf value), or its weight alone.",
  });
  const pick = choice("Show", [["ranges", "range of output"], ["weights", "weight"]], local.weight, (value) => { local.weight = value; refill(); }, { id: "choose-weight" });
  weights.element.insertBefore(make("div", { class: "controls" }, pick), weights.place);
  place.append(make("div", { class: "grid" }, depth.element, leaves.element, weights.element));
  const features = tableOf("features", "Feature use", () => {
    const shown = visible(), total = (one) => shown.reduce((sum, model) => sum + (one[local.share][model.number] || 0), 0);
    const most = Math.max(1e-9, ...data.features.flatMap((one) => one[local.share].filter((value) => value !== null)));
    return {
      columns: [{ title: "feature" }, ...shown.map((model) => ({ title: model.name }))],
      rows: [...data.features].sort((a, b) => total(b) - total(a)).map((one) => [{ text: one.name, hint: one.name }, ...shown.map((model) => heat(one[local.share][model.number], most))]),
      caption: `Share of all ${local.share === "splits" ? "splits" : "gain in training"}, for the ${data.features.length} features that some model uses most. ` +
        `Features that have splits, of ${whole(data.data.features)}: ${shown.map((model) => `${model.name} ${whole(model.featuresUsed)} (${percent(model.featuresUsed / Math.max(1, data.data.features))})`).join(", ")}.` +
        (local.share === "gain" ? " A dash: the model does not know its gains." : ""),
    };
  }, { sortable: true });
  const hasGain = data.features.some((one) => one.gain.some((value) => value !== null));
  if (hasGain) features.element.insertBefore(make("div", { class: "controls" },
    choice("Share of", [["splits", "splits"], ["gain", "gain"]], local.share, (value) => { local.share = value; features.refill(); }, { id: "choose-share" })), features.element.children[1]);
  if (data.features.length) place.append(features.element);
  function heat(share, most) {
    if (share === null) return { text: "–", sort: null };
    const node = make("span", { class: "heat", style: `--share:${(share / most).toFixed(3)}` }, percent(share));
    return { text: percent(share), sort: share, node };
  }
  function refill() {
    const rows = (key) => visible().map((model) => ({ number: model.number, name: model.name, counts: model[key] })).filter((row) => row.counts.length);
    histogramRows(depth.place, rows("depths"), { first: data.depthBins[0], width: data.depthBins[1], xTitle: "longest path, in splits", unit: "depth", label: "Trees by depth" });
    histogramRows(leaves.place, rows("leafCounts"), { first: data.leafBins[0], width: data.leafBins[1], xTitle: "leaves", unit: "leaves", label: "Trees by number of leaves" });
    lineChart(weights.place, visible().filter((model) => model.trees).map((model) => ({ number: model.number, name: model.name, xs: model.treeNumbers, ys: model[local.weight] })),
      { xTitle: "tree", yTitle: local.weight === "weights" ? "weight" : "range of output", label: "Weights by tree", height: 280, fromZero: true });
    features.refill();
  }
  return refill;
}

// 5. Query by query
const pairOf = (a, b, measure) => {
  const found = data.pairs.find((pair) => pair.m === measure && (pair.a === a && pair.b === b || pair.a === b && pair.b === a));
  if (!found || found.a === a) return found;
  const turned = (one) => [one[0], one[1], one[2], one[4], one[3], one[6], one[5]];
  return { ...found, a, b, wins: found.losses, losses: found.wins, difference: found.difference === null ? null : -found.difference,
    d: found.d.map((value) => -value || 0).reverse(), q: [...found.q].reverse(), worst: found.best.map(turned), best: found.worst.map(turned) };
};
function queriesSection(place) {
  if (models.length < 2) {
    place.append(make("p", { class: "empty" }, "There is one model: nothing to compare with."));
    return () => {};
  }
  const local = { a: baseline, b: baseline === 0 ? 1 : 0 };
  const names = models.map((model, number) => [number, model.name]);
  const pick = (key, label) => choice(label, names, local[key], (value) => { local[key] = Number(value); refill(); }, { id: `choose-${key}` });
  const tally = make("div", { class: "tally", id: "tally" }), told = make("p", { id: "told" });
  const { element, place: chart } = figure("queries", "Differences, sorted", {
    wide: true, caption: "",
    lines: () => [["query", "difference"], ...(pair() ? pair().q.map((query, k) => [data.queries[query], pair().d[k]]) : [])],
  });
  const caption = make("figcaption");
  element.append(caption);
  const pair = () => local.a === local.b ? null : pairOf(local.a, local.b, state.measure);
  const labels = data.data.labels.map((entry) => entry[0]), most = Math.max(...labels, 1);
  const ranking = (text) => ({ text, node: make("span", { class: "rank" }, text.split(" ").map((label) => make("i", { style: `--share:${Math.max(0, Number(label) / most).toFixed(2)}` }, label))) });
  const extremes = (name, title, key) => tableOf(name, title, () => ({
    columns: [{ title: "query" }, { title: "difference" }, { title: "first" }, { title: "second" }, { title: "first ranks", class: "text", hint: "labels of the top 10" },
      { title: "second ranks", class: "text", hint: "labels of the top 10" }, { title: "documents" }, { title: "labels", class: "text" }],
    rows: (pair() ? pair()[key] : []).map(([query, docs, labelText, first, second, one, two]) =>
      [data.queries[query], signed(second - first), four(first), four(second), ranking(one), ranking(two), whole(docs), labelText]),
  }));
  const worst = extremes("worst", "Where the second model loses most", "worst"), best = extremes("best", "Where the second model gains most", "best");
  place.append(make("div", { class: "controls" }, pick("a", "First"), pick("b", "Second"),
    make("button", { type: "button", id: "swap", click: () => {
      [local.a, local.b] = [local.b, local.a];
      for (const key of ["a", "b"]) document.getElementById(`choose-${key}`).value = local[key];
      refill();
    } }, "⇄ Swap")), told, tally, make("div", { class: "stack" }, element, worst.element, best.element));

  function refill() {
    const found = pair();
    worst.refill(); best.refill();
    if (!found) {
      tally.replaceChildren(); told.textContent = ""; caption.textContent = "";
      return empty(chart, "Choose two different models.");
    }
    const n = found.wins + found.ties + found.losses || 1;
    const part = (kind, count, word) => {
      const room = tally.clientWidth * count / n, text = `${whole(count)} ${word}`;
      return make("div", { class: kind, style: `flex:${Math.max(count, n * 0.001)} 1 0`, title: text }, room > 9 * text.length ? text : room > 30 ? whole(count) : "");
    };
    tally.replaceChildren(part("w", found.wins, found.wins === 1 ? "win" : "wins"), part("t", found.ties, found.ties === 1 ? "tie" : "ties"), part("l", found.losses, found.losses === 1 ? "loss" : "losses"));
    told.textContent = `${models[local.b].name} against ${models[local.a].name} by ${measureName()}: ${whole(found.wins)} wins, ${whole(found.ties)} ties, ${whole(found.losses)} losses; ` +
      `mean difference ${signed(found.difference)}, p = ${pText(found.p)} (for this pair alone).`;
    caption.textContent = found.d.length < found.wins + found.ties + found.losses
      ? `${whole(found.d.length)} of ${whole(n)} queries, evenly spread over the sorted differences; counts and lists are of all.`
      : "Every bar is a query: above zero the second model is better.";
    drawDifferences(found);
  }
  function drawDifferences(found) {
    if (!found.d.length) return empty(chart, "No query has a value in both models.");
    const order = [...found.d.keys()].reverse(), size = Math.max(...found.d.map(Math.abs), 0.01);
    const sheet = paper(chart, {
      height: 300, label: `Differences in ${measureName()} of ${found.d.length} queries, sorted`,
      x: { low: 0, high: found.d.length, title: "queries, sorted by difference", text: () => "" },
      y: { low: -size * 1.08, high: size * 1.08, title: `${measureName()}: ${short(models[local.b].name, 18)} − ${short(models[local.a].name, 18)}` },
    });
    const { svg, sx, sy } = sheet, wide = sx.at(1) - sx.at(0), gap = wide > 3 ? 1 : 0;
    svg.append(draw("line", { class: "zero", x1: sheet.left, x2: sheet.width - sheet.right, y1: sy.at(0), y2: sy.at(0) }));
    order.forEach((k, at) => {
      const value = found.d[k], y = sy.at(Math.max(0, value)), tall = Math.abs(sy.at(value) - sy.at(0));
      svg.append(draw("rect", { class: `bar ${value > 0 ? "win" : value < 0 ? "loss" : "tie"}`, x: sx.at(at), y: value === 0 ? y - 0.5 : y, width: Math.max(0.6, wide - gap), height: Math.max(1, tall) }));
    });
    withCursor(sheet, (x) => {
      const at = Math.min(order.length - 1, Math.max(0, Math.floor((x - sheet.left) / wide))), k = order[at];
      return { x: sx.at(at + 0.5), lines: [`query ${data.queries[found.q[k]]}`, `difference ${signed(found.d[k])}`] };
    });
  }
  return refill;
}

// 6. Significance
function significanceSection(place) {
  if (models.length < 2) {
    place.append(make("p", { class: "empty" }, "There is one model: nothing to test."));
    return () => {};
  }
  const local = { p: "holm" };
  const table = tableOf("significance", "Every pair", () => {
    const shown = visible();
    return {
      columns: [{ title: "row against column" }, ...shown.map((model) => ({ title: model.name }))],
      rows: shown.map((row) => [{ text: row.name, hint: row.name, node: named(row.number) }, ...shown.map((column) => cell(row, column))]),
      caption: `p of the paired randomisation test by ${measureName()}${local.p === "holm" ? ", corrected for all pairs (Holm)" : ", not corrected"}. ` +
        `▲ the row is better, ▼ worse, with p below ${data.alpha}. That a difference is not significant does not show that there is none: look at its interval.`,
    };
  }, { untitled: true });
  function cell(row, column) {
    if (row.number === column.number) return { text: "", node: "·" };
    const found = pairOf(column.number, row.number, state.measure), p = found[local.p];
    const isSure = p !== null && p < data.alpha, better = found.difference > 0;
    return {
      text: pText(p) + (isSure ? (better ? " ▲" : " ▼") : ""), class: isSure ? (better ? "wash-better" : "wash-worse") : null,
      node: [pText(p) + (isSure ? (better ? " ▲" : " ▼") : ""), make("small", null, signed(found.difference))],
    };
  }
  place.append(make("div", { class: "controls" }, choice("p-values", [["holm", "corrected (Holm)"], ["p", "as they are"]], local.p, (value) => { local.p = value; table.refill(); }, { id: "choose-p" })), table.element);
  return table.refill;
}

// 7. Settings, machine and versions
function settingsSection(place) {
  const local = { differing: models.length > 1 };
  const differs = (values) => new Set(values.filter((value) => value !== null)).size > 1;
  const table = tableOf("settings", "Settings of the models", () => {
    const shown = visible();
    const rows = data.settings.filter(([, values]) => !local.differing || differs(shown.map((model) => values[model.number])));
    return {
      columns: [{ title: "setting" }, ...shown.map((model) => ({ title: model.name, class: "text" }))],
      rows: rows.map(([name, values]) => [name.replace(/_/g, " "), ...shown.map((model) => ({ text: values[model.number] === null ? "–" : values[model.number], class: "wraps" }))]),
      caption: rows.length ? "" : "Nothing differs among the models chosen.",
    };
  });
  if (data.settings.length) {
    if (models.length > 1) place.append(make("div", { class: "controls" }, tick("only what differs", local.differing, (value) => { local.differing = value; table.refill(); }, { id: "choose-differing" })));
    place.append(table.element);
  } else place.append(make("p", { class: "empty" }, "The models carry no notes of their training."));
  const facts = [
    ["report made", data.made], ["queries", whole(data.data.queries)], ["documents", whole(data.data.documents)], ["features", whole(data.data.features)],
    ["labels", data.data.labels.map(([label, n]) => `${label}: ${whole(n)}`).join(", ") + (data.data.n_labels > data.data.labels.length ? ", …" : "")],
    ["convention", data.convention], ...Object.entries(data.environment).map(([name, value]) => [name.replace(/_/g, " "), value]),
  ];
  const machine = tableOf("environment", "Data, machine and versions", () => ({
    columns: [{ title: "what" }, { title: "value", class: "text" }],
    rows: facts.map(([name, value]) => [name, { text: value, class: "wraps" }]),
  }));
  place.append(machine.element);
  return table.refill;
}
