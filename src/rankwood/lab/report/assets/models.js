// The table of models.

function modelsSection(place) {
  const others = () => data.measures.map((_, k) => k).filter((k) => k !== state.measure);
  const columns = () => [
    { title: "model" },
    { title: measureName(), hint: "mean over queries, 95 % interval below" },
    { title: "difference", compares: true, hint: `of ${measureName()} from the baseline, 95 % interval below` },
    { title: "corrected p", compares: true, hint: "randomisation test, corrected for all pairs of models (Holm)" },
    { title: `loses < ${data.margin}`, compares: true, hint: `shown: by less than ${data.margin} of ${measureName()}, if at all` },
    { title: "µs per doc", hint: "lower quartile of the calls, 95 % interval below" },
    { title: "speed-up", compares: true, hint: "times as fast as the baseline, 95 % interval below" },
    { title: "trees", hint: "below, the mean over trees of the longest path" },
    { title: "leaves", hint: "below, inner nodes" },
    { title: "size", hint: "as rankwood's model file" },
    ...others().map((k) => ({ title: data.measures[k], hint: "mean over queries, 95 % interval below" })),
  ];
  const times = (value) => (value === null ? "–" : value.toFixed(value < 10 ? 2 : 1));
  const both = (text, under) => ({
    text: under ? `${text} (${under})` : text,
    node: [text, under ? make("small", null, under) : null],
  });
  function row(model, number) {
    const difference = model.difference[state.measure],
      isBase = number === baseline;
    const isSure = difference && difference[3] !== null && difference[3] < data.alpha;
    const quality = (k) => ({
      ...both(four(model.quality[k][0]), interval(model.quality[k][1], model.quality[k][2], four)),
      sort: model.quality[k][0],
    });
    const verdict = isSure ? (difference[0] > 0 ? "better" : "worse") : null,
      sign = { better: "▲ better", worse: "▼ worse" };
    const cells = [
      {
        text: model.name,
        hint: model.name,
        node: [named(number), isBase && models.length > 1 ? make("small", null, "baseline") : null],
      },
      quality(state.measure),
      difference
        ? {
            ...both(signed(difference[0]), interval(difference[1], difference[2], signed)),
            sort: difference[0],
            class: verdict,
          }
        : { text: "", sort: null },
      difference
        ? {
            text: pText(difference[3]),
            sort: difference[3],
            class: verdict,
            node: verdict ? [pText(difference[3]), make("small", null, sign[verdict])] : null,
          }
        : { text: "", sort: null },
      difference
        ? { text: difference[4] ? "shown" : "not shown", sort: Number(difference[4]) }
        : { text: "", sort: null },
      { ...both(three(model.us[0]), interval(model.us[1], model.us[2], three)), sort: model.us[0] },
      {
        ...both(`${times(model.speedUp[0])}×`, interval(model.speedUp[1], model.speedUp[2], times)),
        sort: model.speedUp[0],
      },
      {
        ...both(whole(model.trees), model.depth === null ? "" : `depth ${model.depth.toFixed(1)}`),
        sort: model.trees,
      },
      { ...both(whole(model.leaves), `${whole(model.nodes)} nodes`), sort: model.leaves },
      { text: bytes(model.bytes), sort: model.bytes },
      ...others().map(quality),
    ];
    cells.className = state.hidden.has(number) ? "off" : null;
    return cells;
  }
  const several = models.length > 1;
  const engines = [...new Set(models.map((model) => model.engine))].join(", ");
  const caption =
    `Means over ${whole(data.data.queries)} queries with 95 % bootstrap intervals. ` +
    (several
      ? `Differences from ${models[baseline].name} are paired by query. Corrected p: randomisation test, ${correctedFor(" under a measure")}. ` +
        `Loses < ${data.margin}: whether a loss of ${data.margin} of the measure or more is ruled out, 95 % sure (one-sided t-test, corrected for ${whole(models.length - 1)} ${models.length > 2 ? "models" : "model"}). `
      : "") +
    `Times: one thread, ${whole(models[0].batch)} documents per call, sums in ${models[0].precision} precision, lower quartile of ${whole(Math.min(...models.map((m) => m.calls)))} calls or more, engine ${engines}. ` +
    (models.some((m) => m.busy) ? "The machine was busy while they were taken: they are less certain than their intervals say. " : "") +
    `Convention ${data.convention}.`;
  const kept = (list) =>
    list.filter((_, k) => several || !columns()[k].compares);
  const table = tableOf(
    "models",
    "All models",
    () => ({
      columns: kept(columns()),
      rows: models.map((model, number) => {
        const full = row(model, number);
        const cells = kept(full);
        cells.className = full.className;
        return cells;
      }),
      caption,
    }),
    { sortable: true, untitled: true },
  );
  place.append(table.element);
  return table.refill;
}
