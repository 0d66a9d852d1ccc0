// What the ensembles are made of.

function anatomySection(place) {
  const local = { weight: "ranges", share: "splits" };
  const bins = (first, step, key) => () => [
    ["model", "from", "trees"],
    ...visible().flatMap((model) => model[key].map((count, k) => [model.name, first + k * step, count])),
  ];
  const depth = figure("depths", "Depth of trees", { lines: bins(...data.depthBins, "depths") });
  const leaves = figure("leaves", "Leaves per tree", { lines: bins(...data.leafBins, "leafCounts") });
  const weights = figure("weights", "Tree by tree", {
    wide: true,
    lines: () => [
      ["model", "tree", "weight", "output range"],
      ...visible().flatMap((model) =>
        model.treeNumbers.map((tree, k) => [model.name, tree, model.weights[k], model.ranges[k]]),
      ),
    ],
    caption:
      "How far the output of each tree can move a score (its weight times the largest minus the smallest leaf value), or its weight alone.",
  });
  const pick = choice(
    "Show",
    [
      ["ranges", "range of output"],
      ["weights", "weight"],
    ],
    local.weight,
    (value) => {
      local.weight = value;
      refill();
    },
    { id: "choose-weight" },
  );
  weights.element.insertBefore(make("div", { class: "controls" }, pick), weights.place);
  place.append(make("div", { class: "grid" }, depth.element, leaves.element, weights.element));
  const features = tableOf(
    "features",
    "Feature use",
    () => {
      const shown = visible(),
        total = (one) => shown.reduce((sum, model) => sum + (one[local.share][model.number] || 0), 0);
      const most = Math.max(
        1e-9,
        ...data.features.flatMap((one) => one[local.share].filter((value) => value !== null)),
      );
      return {
        columns: [{ title: "feature" }, ...shown.map((model) => ({ title: model.name }))],
        rows: [
          [
            "features that have splits",
            ...shown.map((model) => ({
              text: `${whole(model.featuresUsed)} of ${whole(data.data.features)}`,
              sort: model.featuresUsed,
            })),
          ],
          ...[...data.features]
            .sort((a, b) => total(b) - total(a))
            .map((one) => [
              { text: one.name, hint: one.name },
              ...shown.map((model) => heat(one[local.share][model.number], most)),
            ]),
        ],
        caption:
          `Share of all ${local.share === "splits" ? "splits" : "gain in training"}, for the ${data.features.length} features that some model uses most.` +
          (local.share === "gain" ? " A dash: the model does not know its gains." : ""),
      };
    },
    { sortable: true },
  );
  const hasGain = data.features.some((one) => one.gain.some((value) => value !== null));
  if (hasGain)
    features.element.insertBefore(
      make(
        "div",
        { class: "controls" },
        choice(
          "Share of",
          [
            ["splits", "splits"],
            ["gain", "gain"],
          ],
          local.share,
          (value) => {
            local.share = value;
            features.refill();
          },
          { id: "choose-share" },
        ),
      ),
      features.element.children[1],
    );
  if (data.features.length) place.append(features.element);
  function heat(share, most) {
    if (share === null) return { text: "–", sort: null };
    const node = make("span", { class: "heat", style: `--share:${(share / most).toFixed(3)}` }, percent(share));
    return { text: percent(share), sort: share, node };
  }
  function refill() {
    const rows = (key) =>
      visible()
        .map((model) => ({ number: model.number, name: model.name, counts: model[key] }))
        .filter((row) => row.counts.length);
    histogramRows(depth.place, rows("depths"), {
      first: data.depthBins[0],
      width: data.depthBins[1],
      xTitle: "longest path, in splits",
      unit: "depth",
      label: "Trees by depth",
    });
    histogramRows(leaves.place, rows("leafCounts"), {
      first: data.leafBins[0],
      width: data.leafBins[1],
      xTitle: "leaves",
      unit: "leaves",
      label: "Trees by number of leaves",
    });
    lineChart(
      weights.place,
      visible()
        .filter((model) => model.trees)
        .map((model) => ({
          number: model.number,
          name: model.name,
          label: model.name,
          xs: model.treeNumbers,
          ys: model[local.weight],
        })),
      {
        xTitle: "tree",
        yTitle: local.weight === "weights" ? "weight" : "range of output",
        label: "Weights by tree",
        height: 280,
        fromZero: true,
      },
    );
    features.refill();
  }
  return refill;
}
