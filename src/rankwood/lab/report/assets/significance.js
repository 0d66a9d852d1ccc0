// p-values of all pairs.

function significanceSection(place) {
  if (models.length < 2) {
    place.append(make("p", { class: "empty" }, "There is one model: nothing to test."));
    return () => {};
  }
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
          `Corrected p: paired randomisation test by ${measureName()}, ${correctedFor()}. It is the p of the headline and of the table of models. ` +
          `▲ the row is better, ▼ worse, with p below ${data.alpha}. That a difference is not significant does not show that there is none: look at its interval.`,
      };
    },
    { untitled: true },
  );
  function cell(row, column) {
    if (row.number === column.number) return { text: "", node: "·" };
    const found = pairOf(column.number, row.number, state.measure),
      p = found.p;
    const isSure = p !== null && p < data.alpha,
      better = found.difference > 0;
    return {
      text: pText(p) + (isSure ? (better ? " ▲" : " ▼") : ""),
      class: isSure ? (better ? "wash-better" : "wash-worse") : null,
      node: [pText(p) + (isSure ? (better ? " ▲" : " ▼") : ""), make("small", null, signed(found.difference))],
    };
  }
  place.append(table.element);
  return table.refill;
}
