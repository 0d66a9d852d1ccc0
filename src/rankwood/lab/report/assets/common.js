// What the sections share: the report's numbers, the choices that apply to all of them, and small parts.

const data = JSON.parse(document.getElementById("report-data").textContent);
const models = data.models,
  baseline = data.baseline;
const correctedFor = (where = "") =>
  models.length === 2
    ? "which has nothing to correct for with one pair of models"
    : `corrected for all ${whole((models.length * (models.length - 1)) / 2)} pairs of models${where} (Holm)`;
const state = { measure: 0, hidden: new Set() };
const visible = () =>
  models.map((model, number) => ({ ...model, number })).filter((model) => !state.hidden.has(model.number));
const measureName = () => data.measures[state.measure];

// A labelled choice. Options are [value, text]; `change` gets the value.
function choice(label, options, value, change, attributes) {
  const select = make(
    "select",
    { ...attributes, "aria-label": label, change: (event) => change(event.target.value) },
    options.map(([key, text]) => make("option", { value: key, selected: String(key) === String(value) }, text)),
  );
  return make("label", { class: "choice" }, make("span", null, label), select);
}
function tick(label, value, change, attributes) {
  const box = make("input", {
    type: "checkbox",
    checked: value,
    ...attributes,
    change: (event) => change(event.target.checked),
  });
  return make("label", { class: "choice" }, box, label);
}
// A figure with a title, a caption, and its numbers as CSV.
function figure(name, title, { caption = "", lines = null, wide = false, untitled = false } = {}) {
  const place = make("div", { class: "chart", id: `chart-${name}` });
  const button =
    lines &&
    make(
      "button",
      {
        type: "button",
        title: "Download the numbers as CSV",
        click: () => saveText(`${name}.csv`, asCsv({ lines: lines().map((line) => line.map(String)) })),
      },
      "CSV",
    );
  const element = make(
    "figure",
    { class: wide ? "wide" : null },
    make(
      "div",
      { class: untitled ? "figure-head raised" : "figure-head" },
      make("h3", { class: untitled ? "unseen" : null }, title),
      button,
    ),
    place,
    caption ? make("figcaption", null, caption) : null,
  );
  return { element, place };
}
const numbered = data.numbered ? " Features are numbered from 1, as in data files." : "";
const interval = (low, high, text) => (low === null || low === undefined ? "" : `${text(low)} to ${text(high)}`);
const named = (number) => make("span", { class: "named" }, swatch(number), make("span", null, models[number].name));
