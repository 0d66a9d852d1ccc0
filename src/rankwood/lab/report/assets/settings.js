// Settings, machine and versions.

function settingsSection(place) {
  const local = { differing: models.length > 1 };
  const noted = (model) => data.settings.some(([, values]) => values[model.number] !== null);
  // Whether models that have a setting have it differently, or one model alone has it.
  function differs(values) {
    const known = values.filter((value) => value !== null);
    return new Set(known).size > 1 || (known.length === 1 && values.length > 1);
  }
  // What the table leaves out, and which models it cannot tell of.
  function told(shown, n) {
    const silent = shown.filter((model) => !noted(model)).map((model) => model.name);
    const dash = "A dash: the model has no such setting.";
    const kept = local.differing
      ? `${whole(n)} of ${whole(data.settings.length)} settings: those whose values differ among the models that have them, and those of one model alone. ${dash}`
      : dash;
    return kept + (silent.length ? ` No settings are known of ${silent.join(", ")}.` : "");
  }
  const table = tableOf("settings", "Settings of the models", () => {
    const shown = visible();
    const rows = data.settings.filter(
      ([, values]) => !local.differing || differs(shown.filter(noted).map((model) => values[model.number])),
    );
    return {
      columns: [{ title: "setting" }, ...shown.map((model) => ({ title: model.name, class: "text" }))],
      rows: rows.map(([name, values]) => [
        name.replace(/_/g, " "),
        ...shown.map((model) => ({ text: values[model.number] === null ? "–" : values[model.number], class: "wraps" })),
      ]),
      caption: told(shown, rows.length),
    };
  });
  if (data.settings.length) {
    if (models.length > 1)
      place.append(
        make(
          "div",
          { class: "controls" },
          tick(
            "only settings that differ",
            local.differing,
            (value) => {
              local.differing = value;
              table.refill();
            },
            { id: "choose-differing" },
          ),
        ),
      );
    place.append(table.element);
  } else place.append(make("p", { class: "empty" }, "The models carry no notes of their training."));
  const facts = [
    ["report made", data.made],
    ["queries", whole(data.data.queries)],
    ["documents", whole(data.data.documents)],
    ["features", whole(data.data.features)],
    [
      "labels",
      data.data.labels.map(([label, n]) => `${label}: ${whole(n)}`).join(", ") +
        (data.data.n_labels > data.data.labels.length ? ", …" : ""),
    ],
    ["convention", data.convention],
    ...Object.entries(data.environment).map(([name, value]) => [name.replace(/_/g, " "), value]),
  ];
  const machine = tableOf("environment", "Data, machine and versions", () => ({
    columns: [{ title: "what" }, { title: "value", class: "text" }],
    rows: facts.map(([name, value]) => [name, { text: value, class: "wraps" }]),
  }));
  place.append(machine.element);
  return table.refill;
}
