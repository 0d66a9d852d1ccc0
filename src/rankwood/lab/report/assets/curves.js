// Learning curves.

function curvesSection(place) {
  const kinds = [...new Set(models.flatMap((model) => Object.values(model.curves).flatMap(Object.keys)))];
  const sets = [...new Set(models.flatMap((model) => Object.keys(model.curves)))];
  if (!kinds.length) {
    place.append(
      make(
        "p",
        { class: "empty" },
        "No model brings its learning curve. Models that rankwood trains with validation data do; for others give curves to write_report.",
      ),
    );
    return () => {};
  }
  const local = { kind: kinds.includes(data.measures[0]) ? data.measures[0] : kinds[0], sets: "all" };
  const solid = (name) => name !== "train" && name !== "training";
  const series = () =>
    visible().flatMap((model) =>
      Object.entries(model.curves)
        .filter(([name, curves]) => curves[local.kind] && (local.sets === "all" || local.sets === name))
        .map(([name, curves]) => {
          const [xs, ys] = curves[local.kind];
          const best = ys.reduce((k, value, n) => (value !== null && (k < 0 || value > ys[k]) ? n : k), -1);
          return {
            number: model.number,
            name: `${model.name}, ${name}`,
            label: sets.length > 1 ? `${model.name}, ${name}` : model.name,
            brief: solid(name) ? model.name : name,
            xs,
            ys,
            dashed: !solid(name),
            mark: best < 0 ? 0 : best,
          };
        }),
    );
  const without = models.filter((model) => !Object.keys(model.curves).length).map((model) => model.name);
  const { element, place: chart } = figure("curves", "Learning curves", {
    wide: true,
    untitled: true,
    lines: () => [
      ["model and data", "iteration", local.kind],
      ...series().flatMap((one) => one.xs.map((x, k) => [one.name, x, one.ys[k] === null ? "" : one.ys[k]])),
    ],
  });
  const caption = make("figcaption");
  element.append(caption);
  place.append(
    make(
      "div",
      { class: "controls" },
      choice(
        "Measure",
        kinds.map((kind) => [kind, kind]),
        local.kind,
        (value) => {
          local.kind = value;
          refill();
        },
        { id: "choose-curve" },
      ),
      sets.length > 1
        ? choice("Data", [["all", "all"], ...sets.map((name) => [name, name])], local.sets, (value) => {
            local.sets = value;
            refill();
          })
        : null,
    ),
    element,
  );
  // Says no more than the figure shows.
  function told(shown) {
    const [trained, judged] = [true, false].map((dashed) => shown.some((one) => one.dashed === dashed));
    const lines = trained && judged ? "Solid: validation data; dotted: training data." : trained ? "Dotted: training data." : "";
    const mark = judged ? "The marker is the best iteration on validation data." : "";
    return [lines, mark, without.length ? `Without a curve: ${without.join(", ")}.` : ""].filter(Boolean).join(" ");
  }
  function refill() {
    const shown = series();
    caption.textContent = told(shown);
    lineChart(chart, shown, {
      xTitle: "iteration",
      yTitle: local.kind,
      label: `${local.kind} by iteration`,
      height: 360,
      format: four,
    });
  }
  return refill;
}
