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
  const weighed = models.filter((model) => model.effects);
  const moved = () =>
    [...data.features]
      .map((one) => [one, Math.max(...visible().map((model) => one.shap[model.number] || 0))])
      .filter(([, most]) => most > 0)
      .sort((one, two) => two[1] - one[1])
      .slice(0, 12)
      .map(([one]) => one);
  const effects = figure("effects", "What moves scores", {
    wide: true,
    lines: () => [
      ["feature", ...visible().map((model) => model.name)],
      ...moved().map((one) => [one.name, ...visible().map((model) => one.shap[model.number])]),
    ],
    caption: weighed.length
      ? "Mean size of what a feature adds to scores (mean |SHAP|), as a share of that of all features: of " +
        weighed.map((model) => `${whole(model.effects[1])} documents by ${model.name}`).join(", ") +
        "." +
        numbered +
        (weighed.some((model) => !model.effects[2])
          ? ` ${weighed.filter((model) => !model.effects[2]).map((model) => model.name).join(", ")}: leaves are weighed by this data, as the file does not tell that of training.`
          : "")
      : "",
  });
  if (weighed.length) place.append(make("div", { class: "grid" }, effects.element));
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
          `Share of all ${{ splits: "splits", gain: "gain in training", shap: "mean |SHAP|" }[local.share]}, for the ${data.features.length} features that some model uses most.${numbered}` +
          (local.share === "gain" ? " A dash: the model does not know its gains." : ""),
      };
    },
    { sortable: true },
  );
  const has = (key) => data.features.some((one) => one[key].some((value) => value !== null));
  if (has("gain") || has("shap"))
    features.element.insertBefore(
      make(
        "div",
        { class: "controls" },
        choice(
          "Share of",
          [
            ["splits", "splits"],
            ...(has("gain") ? [["gain", "gain"]] : []),
            ...(has("shap") ? [["shap", "mean |SHAP|"]] : []),
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
    if (weighed.length)
      groupedBars(
        effects.place,
        moved().map((one) => one.name),
        visible()
          .filter((model) => model.effects)
          .map((model) => ({ ...model, values: moved().map((one) => one.shap[model.number]) })),
        { label: "Share of mean |SHAP| by feature", format: percent },
      );
    features.refill();
  }
  return refill;
}
