// p-values of all pairs.

function significanceSection(place) {
  if (models.length < 2) {
    place.append(make("p", { class: "empty" }, "There is one model: nothing to test."));
    return () => {};
  }
  const local = { p: "holm" };
  const table = tableOf(
    "significance",
    "Every pair",
    () => {
      const shown = visible();
      return {
        columns: [{ title: "row against column" }, ...shown.map((model) => ({ title: model.name }))],
        rows: shown.map((row) => [
          { text: row.name, hint: row.name, node: named(row.number) },
          ...shown.map((column) => cell(row, column)),
        ]),
        caption:
          `p of the paired randomisation test by ${measureName()}${local.p === "holm" ? ", corrected for all pairs of models (Holm); the table of models corrects for models and measures" : ", not corrected"}. ` +
          `▲ the row is better, ▼ worse, with p below ${data.alpha}. That a difference is not significant does not show that there is none: look at its interval.`,
      };
    },
    { untitled: true },
  );
  function cell(row, column) {
    if (row.number === column.number) return { text: "", node: "·" };
    const found = pairOf(column.number, row.number, state.measure),
      p = found[local.p];
    const isSure = p !== null && p < data.alpha,
      better = found.difference > 0;
    return {
      text: pText(p) + (isSure ? (better ? " ▲" : " ▼") : ""),
      class: isSure ? (better ? "wash-better" : "wash-worse") : null,
      node: [pText(p) + (isSure ? (better ? " ▲" : " ▼") : ""), make("small", null, signed(found.difference))],
    };
  }
  place.append(
    make(
      "div",
      { class: "controls" },
      choice(
        "p-values",
        [
          ["holm", "corrected (Holm)"],
          ["p", "as they are"],
        ],
        local.p,
        (value) => {
          local.p = value;
          table.refill();
        },
        { id: "choose-p" },
      ),
    ),
    table.element,
  );
  return table.refill;
}
