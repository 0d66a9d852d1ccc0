// Quality against cost, with the Pareto front.

const COSTS = {
  us: ["µs per document", (model) => model.us],
  leaves: ["leaves", (model) => [model.leaves]],
  trees: ["trees", (model) => [model.trees]],
  path: ["longest paths, in splits", (model) => [model.path]],
  bytes: ["bytes of the model file", (model) => [model.bytes]],
};
function tradeoffSection(place) {
  const local = { cost: "us", shown: "value", log: true };
  const qualityOf = (model) =>
    local.shown === "value" ? model.quality[state.measure] : model.difference[state.measure] || [0, null, null];
  const lines = () => [
    ["model", COSTS[local.cost][0], "low", "high", measureName(), "low", "high", "on the Pareto front"],
    ...points().map((point) => [
      point.model.name,
      ...full(point.cost),
      ...full(point.quality.slice(0, 3)),
      point.front ? "yes" : "no",
    ]),
  ];
  const full = (values) => [0, 1, 2].map((k) => (values[k] === undefined || values[k] === null ? "" : values[k]));
  const { element, place: chart } = figure("tradeoff", "Quality against cost", {
    lines,
    wide: true,
    untitled: true,
    caption:
      "Up and to the left is better. Bars are 95 % intervals; the dashed line is the Pareto front: no other model is both cheaper and better than those on it.",
  });
  const redo = () => refill();
  const controls = make(
    "div",
    { class: "controls" },
    choice(
      "Cost",
      Object.entries(COSTS).map(([key, [title]]) => [key, title]),
      local.cost,
      (value) => {
        local.cost = value;
        redo();
      },
      { id: "choose-cost" },
    ),
    models.length > 1
      ? choice(
          "Show",
          [
            ["value", "the measure"],
            ["difference", `difference from ${short(models[baseline].name, 24)}`],
          ],
          local.shown,
          (value) => {
            local.shown = value;
            redo();
          },
          { id: "choose-shown" },
        )
      : null,
    tick(
      "logarithmic cost",
      local.log,
      (value) => {
        local.log = value;
        redo();
      },
      { id: "choose-log" },
    ),
  );
  place.append(controls, element);

  function points() {
    const found = visible()
      .map((model) => ({ model, cost: COSTS[local.cost][1](model), quality: qualityOf(model) }))
      .filter((point) => point.quality[0] !== null && point.cost[0] !== null);
    for (const point of found)
      point.front = !found.some(
        (other) =>
          other !== point &&
          other.cost[0] <= point.cost[0] &&
          other.quality[0] >= point.quality[0] &&
          (other.cost[0] < point.cost[0] || other.quality[0] > point.quality[0]),
      );
    return found;
  }
  function refill() {
    const found = points();
    if (!found.length) return empty(chart, "No model is chosen: press a name above.");
    const costs = found.flatMap((point) => point.cost).filter((value) => value !== null && value !== undefined);
    const values = found
      .flatMap((point) => point.quality.slice(0, 3))
      .filter((value) => value !== null && value !== undefined);
    const canLog = local.log && Math.min(...costs) > 0;
    let low = Math.min(...costs),
      high = Math.max(...costs);
    const spread = canLog
      ? Math.max(1.15, Math.pow(high / low, 0.12))
      : (high - low) * 0.1 || Math.abs(high) * 0.1 || 1;
    low = canLog ? low / spread : Math.max(0, low - spread);
    high = canLog ? high * spread : high + spread;
    const bottom = Math.min(...values),
      top = Math.max(...values),
      pad = (top - bottom) * 0.08 || 0.01;
    const title =
      local.shown === "value" ? measureName() : `${measureName()}, difference from ${short(models[baseline].name, 20)}`;
    const sheet = paper(chart, {
      height: Math.min(460, Math.max(330, chart.clientWidth * 0.55)),
      x: { kind: canLog ? "log" : "linear", low, high, title: COSTS[local.cost][0] + (canLog ? " (log scale)" : "") },
      y: { low: bottom - pad, high: top + pad, title },
      label: `${measureName()} of ${found.length} models against ${COSTS[local.cost][0]}`,
    });
    const { svg, sx, sy } = sheet;
    if (local.shown !== "value" && sy.low < 0 && sy.high > 0)
      svg.append(
        draw("line", { class: "zero", x1: sheet.left, x2: sheet.width - sheet.right, y1: sy.at(0), y2: sy.at(0) }),
      );
    drawFront(
      sheet,
      found.filter((point) => point.front),
    );
    for (const point of found) drawWhiskers(sheet, point);
    const taken = found.map((point) => box(sx.at(point.cost[0]), sy.at(point.quality[0]), 9));
    const bars = found
      .filter((point) => point.quality[1] !== null && point.quality[1] !== undefined)
      .map((point) => [
        sx.at(point.cost[0]) - 3,
        sy.at(point.quality[2]),
        sx.at(point.cost[0]) + 3,
        sy.at(point.quality[1]),
      ]);
    const isCrowded = found.length > 8; // then a name stands close to its point or nowhere
    for (const point of [...found].sort((a, b) => b.front - a.front))
      drawLabel(sheet, point, taken, bars, isCrowded ? 6 : 10);
    for (const point of found) {
      const { model, cost, quality } = point;
      const text = local.shown === "value" ? four : signed;
      const lines = [
        model.name,
        `${COSTS[local.cost][0]}: ${three(cost[0])}${inBrackets(cost, three)}`,
        `${title}: ${text(quality[0])}${inBrackets(quality, text)}`,
        `${whole(model.trees)} trees, ${whole(model.leaves)} leaves`,
        point.front ? "on the Pareto front" : "not on the Pareto front",
      ];
      svg.append(
        withTip(
          marker(model.number, sx.at(cost[0]), sy.at(quality[0]), 7.5, {
            class: "point",
            tabindex: "0",
            role: "img",
            "data-model": model.number,
            "aria-label": lines.join(", "),
          }),
          lines,
        ),
      );
    }
  }
  return refill;
}
const inBrackets = ([, low, high], text) =>
  low === null || low === undefined ? "" : ` (${interval(low, high, text)})`;
function drawFront({ svg, sx, sy, width, right }, front) {
  const sorted = [...front].sort((a, b) => a.cost[0] - b.cost[0]);
  if (!sorted.length) return;
  let path = "";
  sorted.forEach((point, k) => {
    const x = sx.at(point.cost[0]),
      y = sy.at(point.quality[0]);
    path += k ? `H${x}V${y}` : `M${x},${y}`;
  });
  svg.append(draw("path", { class: "front", d: `${path}H${width - right}` }));
}
function drawWhiskers({ svg, sx, sy }, { model, cost, quality }) {
  const x = sx.at(cost[0]),
    y = sy.at(quality[0]),
    stroke = colour(model.number);
  const line = (x1, y1, x2, y2) => svg.append(draw("line", { class: "whisker", x1, y1, x2, y2, stroke }));
  if (quality[1] !== null && quality[1] !== undefined) {
    const [a, b] = [sy.at(quality[1]), sy.at(quality[2])];
    line(x, a, x, b);
    line(x - 4, a, x + 4, a);
    line(x - 4, b, x + 4, b);
  }
  if (cost[1] !== null && cost[1] !== undefined) {
    const [a, b] = [sx.at(cost[1]), sx.at(cost[2])];
    line(a, y, b, y);
    line(a, y - 4, a, y + 4);
    line(b, y - 4, b, y + 4);
  }
}
const box = (x, y, r) => [x - r, y - r, x + r, y + r];
// The name beside its point, where it covers nothing, or if need be other points' bars; not at all without room.
function drawLabel({ svg, sx, sy, width, left, top, height, bottom }, { model, cost, quality }, taken, bars, most) {
  const x = sx.at(cost[0]),
    y = sy.at(quality[0]);
  const label = draw("text", { class: "name", style: textColour(model.number) }, short(model.name, 22));
  svg.append(label);
  const wide = label.getComputedTextLength();
  const places = [
    [x + 13, y + 4, "start"],
    [x - 13, y + 4, "end"],
    [x + 9, y - 13, "start"],
    [x - 9, y - 13, "end"],
    [x + 9, y + 21, "start"],
    [x - 9, y + 21, "end"],
    [x + 9, y - 30, "start"],
    [x + 9, y + 38, "start"],
    [x - 9, y - 30, "end"],
    [x - 9, y + 38, "end"],
  ].slice(0, most);
  for (const [at, base, anchor, avoided] of [
    ...places.map((one) => [...one, [...taken, ...bars]]),
    ...places.map((one) => [...one, taken]),
  ]) {
    const area = anchor === "start" ? [at, base - 12, at + wide, base + 4] : [at - wide, base - 12, at, base + 4];
    if (
      area[0] < left ||
      area[2] > width ||
      area[1] < top ||
      area[3] > height - bottom ||
      avoided.some((other) => meet(area, other))
    )
      continue;
    taken.push(area);
    fill(label, { x: at, y: base, "text-anchor": anchor }, []);
    return;
  }
  label.remove();
}
