// The table of models.

function modelsSection(place) {
  const others = () => data.measures.map((_, k) => k).filter((k) => k !== state.measure);
  const columns = () => [
    { title: "model" },
    { title: measureName(), hint: "mean over queries, 95 % interval below" },
    { title: "difference", hint: `of ${measureName()} from the baseline, 95 % interval below` },
    { title: "p", hint: "randomisation test, corrected (Holm)" },
    { title: "µs per doc", hint: "lower quartile of the calls, 95 % interval below" },
    { title: "speed-up" },
    { title: "trees" },
    { title: "leaves" },
    { title: "nodes", hint: "inner nodes" },
    { title: "mean depth", hint: "mean over trees of the longest path" },
    { title: "size", hint: "as rankwood's model file" },
    ...others().map((k) => ({ title: data.measures[k], hint: "mean over queries, 95 % interval below" })),
  ];
  const both = (text, under) => ({
    text: under ? `${text} (${under})` : text,
    node: [text, under ? make("small", null, under) : null],
  });
  function row(model, number) {
    const difference = model.difference[state.measure],
      isBase = number === baseline;
    const isSure = difference && difference[4] !== null && difference[4] < data.alpha;
    const quality = (k) => ({
      ...both(four(model.quality[k][0]), interval(model.quality[k][1], model.quality[k][2], four)),
      sort: model.quality[k][0],
    });
    const verdict = isSure ? (difference[0] > 0 ? "better" : "worse") : null;
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
            text: pText(difference[4]),
            sort: difference[4],
            class: verdict,
            node: verdict ? [pText(difference[4]), make("small", null, verdict)] : null,
          }
        : { text: "", sort: null },
      { ...both(three(model.us[0]), interval(model.us[1], model.us[2], three)), sort: model.us[0] },
      {
        text: model.speedUp === null ? "–" : `${model.speedUp.toFixed(model.speedUp < 10 ? 2 : 1)}×`,
        sort: model.speedUp,
      },
      { text: whole(model.trees), sort: model.trees },
      { text: whole(model.leaves), sort: model.leaves },
      { text: whole(model.nodes), sort: model.nodes },
      { text: model.depth === null ? "–" : model.depth.toFixed(1), sort: model.depth },
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
      ? `Differences from ${models[baseline].name} are paired by query; p is of the randomisation test, corrected for all models and measures (Holm). `
      : "") +
    `Times: one thread, ${whole(models[0].batch)} documents per call, sums in ${models[0].precision} precision, lower quartile of ${whole(Math.min(...models.map((m) => m.calls)))} calls or more, engine ${engines}. ` +
    (models.some((m) => m.busy) ? "The machine was busy while they were taken: they are less certain than their intervals say. " : "") +
    `Convention ${data.convention}.`;
  const kept = (list) =>
    list.filter((_, k) => several || !["p", "speed-up", "difference"].includes(columns()[k].title));
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
