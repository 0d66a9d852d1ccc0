// Put the page together.

function report() {
  const root = document.getElementById("report");
  const drawings = [];
  const refresh = () => {
    hideTip();
    drawings.forEach((again) => again());
  };

  const theme = make(
    "button",
    {
      type: "button",
      class: "theme",
      id: "theme",
      click: () => {
        const isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
        document.documentElement.dataset.theme = isDark ? "light" : "dark";
      },
      title: "Change between light and dark",
      "aria-label": "Change between light and dark",
    },
    "◐",
  );
  const facts = `${whole(data.data.queries)} queries, ${whole(data.data.documents)} documents, ${whole(data.data.features)} features. Made ${data.made} with rankwood ${data.environment.rankwood || ""}.`;
  root.append(
    make("header", null, make("div", null, make("h1", null, data.title), make("p", { class: "soft" }, facts)), theme),
  );

  const parts = [
    ["models", "Models", modelsSection, ""],
    ["tradeoff", "Quality against cost", tradeoffSection, ""],
    ["curves", "Learning curves", curvesSection, ""],
    ["anatomy", "Anatomy", anatomySection, "What the ensembles are made of."],
    ["queries", "Query by query", queriesSection, "A mean hides who wins and who loses. Choose two models."],
    ["significance", "Significance", significanceSection, ""],
    ["settings", "Settings and machine", settingsSection, ""],
  ];
  root.append(
    make(
      "nav",
      { "aria-label": "Sections" },
      parts.map(([id, title]) => make("a", { href: `#${id}` }, title)),
    ),
  );
  root.append(headline());
  root.append(toolbar(refresh));
  for (const [id, title, build, lead] of parts) {
    const place = make(
      "section",
      { id, "aria-labelledby": `${id}-title` },
      make("h2", { id: `${id}-title` }, title),
      lead ? make("p", { class: "soft" }, lead) : null,
    );
    root.append(place);
    drawings.push(build(place));
  }
  refresh();

  let width = root.clientWidth,
    waiting = 0;
  new ResizeObserver(() => {
    if (root.clientWidth === width) return;
    width = root.clientWidth;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(refresh);
  }).observe(root);
  window.addEventListener("beforeprint", refresh);
}

// The summary in words, and its numbers large.
function headline() {
  const tiles = data.tiles.map(([value, text]) =>
    make("div", { class: "tile" }, make("b", null, value), make("span", null, text)),
  );
  return make(
    "div",
    { class: "headline", id: "headline" },
    data.summary.map((sentence) => make("p", null, sentence)),
    make("div", { class: "tiles" }, tiles),
  );
}

// What applies to all sections: the measure, and which models are shown.
function toolbar(refresh) {
  const chips = models.map((model, number) =>
    make(
      "button",
      {
        type: "button",
        class: "chip",
        "aria-pressed": "true",
        "data-model": number,
        title: model.name,
        click: (event) => {
          const chip = event.currentTarget;
          if (state.hidden.has(number)) state.hidden.delete(number);
          else state.hidden.add(number);
          chip.setAttribute("aria-pressed", String(!state.hidden.has(number)));
          refresh();
        },
      },
      swatch(number),
      make("span", null, model.name),
    ),
  );
  return make(
    "div",
    { class: "bar-top", role: "toolbar", "aria-label": "Measure and models shown" },
    choice(
      "Measure",
      data.measures.map((name, k) => [k, name]),
      0,
      (value) => {
        state.measure = Number(value);
        refresh();
      },
      { id: "choose-measure" },
    ),
    models.length > 1 ? make("div", { class: "chips", role: "group", "aria-label": "Models shown" }, chips) : null,
  );
}

report();
