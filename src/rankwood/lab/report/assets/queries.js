// Two models query by query.

const pairOf = (a, b, measure) => {
  const found = data.pairs.find(
    (pair) => pair.m === measure && ((pair.a === a && pair.b === b) || (pair.a === b && pair.b === a)),
  );
  if (!found || found.a === a) return found;
  const exchanged = ([name, label, rank, otherRank, score, otherScore]) => [name, label, otherRank, rank, otherScore, score];
  const turned = ([query, n, labels, first, second, ranked, documents, why]) => {
    const order = [...documents.keys()].sort((one, two) => documents[one][3] - documents[two][3]);
    const others = order.map((place) => exchanged(documents[place]));
    const reasons = why && [why[0].map((place) => order.indexOf(place)), why[1], why[2], why[4], why[3]];
    return [query, n, labels, second, first, ranked, others, reasons];
  };
  return {
    ...found,
    a,
    b,
    wins: found.losses,
    losses: found.wins,
    difference: found.difference === null ? null : -found.difference,
    d: found.d.map((value) => -value || 0).reverse(),
    q: [...found.q].reverse(),
    worst: found.best.map(turned),
    best: found.worst.map(turned),
  };
};
function queriesSection(place) {
  if (models.length < 2) {
    place.append(make("p", { class: "empty" }, "There is one model: nothing to compare with."));
    return () => {};
  }
  // The headline's models, a query whose documents are shown, and two of them, one above the other in the ranking `by`.
  const local = { a: data.pair[0], b: data.pair[1], query: null, by: 1, above: null, below: null };
  const names = models.map((model, number) => [number, model.name]);
  const pick = (key, label) =>
    choice(
      label,
      names,
      local[key],
      (value) => {
        local[key] = Number(value);
        local.query = local.above = local.below = null;
        refill();
      },
      { id: `choose-${key}` },
    );
  const tally = make("div", { class: "tally", id: "tally" }),
    told = make("p", { id: "told" });
  const { element, place: chart } = figure("queries", "Differences, sorted", {
    wide: true,
    caption: "",
    lines: () => [
      ["query", "difference"],
      ...(pair() ? pair().q.map((query, k) => [data.queries[query], pair().d[k]]) : []),
    ],
  });
  const caption = make("figcaption");
  element.append(caption);
  const pair = () => (local.a === local.b ? null : pairOf(local.a, local.b, state.measure));
  const most = Math.max(data.data.largest_label, 1);
  const ranks = (labels) =>
    make(
      "span",
      { class: "rank" },
      labels.map((label) => make("i", { style: `--share:${Math.max(0, label / most).toFixed(2)}` }, String(label))),
    );
  // Labels of the documents that a model ranks first; a document has its rank at `place`.
  const ranking = (documents, place, ranked) => {
    const first = documents.filter((one) => one[place] <= ranked).sort((one, two) => one[place] - two[place]);
    const labels = first.map((one) => one[1]);
    return { text: labels.join(" "), node: ranks(labels) };
  };
  const extremes = (name, title, key) =>
    tableOf(name, title, () => ({
      columns: [
        { title: "query" },
        { title: "difference" },
        { title: "first" },
        { title: "second" },
        { title: "first ranks", class: "text", hint: "labels of the documents it ranks first" },
        { title: "second ranks", class: "text", hint: "labels of the documents it ranks first" },
        { title: "documents" },
        { title: "labels", class: "text" },
      ],
      rows: (pair() ? pair()[key] : []).map(([query, docs, labelText, first, second, ranked, documents]) => [
        { text: data.queries[query], node: opener(query) },
        signed(second - first),
        four(first),
        four(second),
        ranking(documents, 2, ranked),
        ranking(documents, 3, ranked),
        whole(docs),
        labelText,
      ]),
    }));
  // A query's name, which shows its documents when it is pressed.
  const opener = (query) =>
    make(
      "button",
      {
        type: "button",
        title: "Show its documents",
        "aria-pressed": String(query === chosen()[0]),
        click: () => {
          local.query = query;
          local.above = local.below = null;
          refill();
          documents.element.scrollIntoView({ block: "nearest" });
        },
      },
      data.queries[query],
    );
  // The query whose documents are shown: the one that was pressed, or else the one that loses most.
  const chosen = () => {
    const told = pair() ? [...pair().worst, ...pair().best] : [];
    return told.find((one) => one[0] === local.query) || told[0] || [null, 0, "", 0, 0, 0, [], null];
  };
  const documents = tableOf(
    "documents",
    "Documents of a query",
    () => {
      const [query, n, , first, second, ranked, rows] = chosen();
      const [a, b] = [local.a, local.b].map((number) => short(models[number].name, 24));
      return {
        columns: [
          { title: "document" },
          { title: "label" },
          { title: `rank, ${a}` },
          { title: `rank, ${b}` },
          { title: `score, ${a}` },
          { title: `score, ${b}` },
        ],
        rows: rows.map(([name, label, rank, other, score, otherScore]) => [
          { text: name, hint: name },
          { text: String(label), sort: label, node: ranks([label]) },
          { text: whole(rank), sort: rank },
          { text: whole(other), sort: other },
          { text: four(score), sort: score },
          { text: four(otherScore), sort: otherScore },
        ]),
        caption:
          query === null
            ? "The models differ on no query."
            : `Query ${data.queries[query]}: ${measureName()} ${four(first)} by ${a}, ${four(second)} by ${b}. The documents that either ranks among its first ${ranked}, of ${whole(n)}.`,
      };
    },
    { sortable: true },
  );
  // Why one document has a higher score than another, by one of the two models.
  const choices = make("div", { class: "controls", id: "choose-reasons" });
  const name = (one) => `${short(one[0], 28)}, label ${one[1]}, rank ${whole(one[2 + local.by])}`;
  // Places, among those explained, of a document and of a better one that is ranked below it: of the largest mistake.
  function mistake(shown) {
    const order = [...shown.keys()].sort((one, two) => shown[one][2 + local.by] - shown[two][2 + local.by]);
    let found = order.slice(0, 2),
      most = 0;
    order.forEach((above, at) =>
      order.slice(at + 1).forEach((below) => {
        const gap = shown[below][1] - shown[above][1];
        if (gap > most) [found, most] = [[above, below], gap];
      }),
    );
    return found;
  }
  const effect = (value, most) => {
    const side = value < 0 ? "down" : "up";
    return {
      text: plus(value),
      sort: value,
      node: make(
        "span",
        { class: `effect ${side}`, style: `--share:${(Math.abs(value) / most).toFixed(3)}` },
        make("span", null, plus(value)),
        make("i"),
      ),
    };
  };
  const reasons = tableOf("reasons", "Why a document is above another", () => {
    const [query, , , , , , rows, why] = chosen();
    if (!why || why[0].length < 2) {
      choices.hidden = true;
      return {
        columns: [{ title: "feature" }],
        rows: [],
        caption:
          query === null
            ? "The models differ on no query."
            : `Query ${data.queries[query]} is not explained under this choice: the page has explanations of ${whole(data.nExplained)} queries, first of those that the headline's models differ on most. rankwood explain MODEL --data FILE --query ID explains any.`,
      };
    }
    choices.hidden = false;
    const shown = why[0].map((place) => rows[place]);
    if (local.above === null || local.above >= shown.length || local.below >= shown.length)
      [local.above, local.below] = mistake(shown);
    const numbers = [...shown.keys()].map((number) => [number, name(shown[number])]);
    const set = (key) => (value) => {
      local[key] = Number(value);
      if (key === "by") local.above = local.below = null;
      reasons.refill();
    };
    const rankers = [local.a, local.b].map((number, place) => [place, models[number].name]);
    choices.replaceChildren(
      choice("Model", rankers, local.by, set("by"), { id: "choose-by" }),
      choice("A", numbers, local.above, set("above"), { id: "choose-above" }),
      choice("B", numbers, local.below, set("below"), { id: "choose-below" }),
    );
    const [a, b, parts] = [local.above, local.below, why[3 + local.by]];
    const difference = parts.map((values) => values[a] - values[b]);
    const most = Math.max(...difference.map(Math.abs), 1e-12);
    const sum = (at) => parts.reduce((total, values) => total + values[at], 0);
    const order = [...why[1].keys()].sort((one, two) => Math.abs(difference[two]) - Math.abs(difference[one]));
    const line = (title, values, at) => [
      title,
      effect(difference[at], most),
      ...values,
      plus(parts[at][a]),
      plus(parts[at][b]),
    ];
    const feature = (at) => data.explained[why[1][at]];
    const rest = data.data.features - why[1].length;
    const scores = [a, b].map((at) => shown[at][4 + local.by]);
    const model = short(models[[local.a, local.b][local.by]].name, 24);
    const gap = sum(a) - sum(b);
    return {
      columns: [
        { title: "feature" },
        { title: "A − B", class: "text", hint: "what it adds to the score of A, less what it adds to that of B" },
        { title: "A has" },
        { title: "B has" },
        { title: "adds to A" },
        { title: "adds to B" },
      ],
      rows: [
        ...order.map((at) => line({ text: feature(at), hint: feature(at) }, [why[2][at][a], why[2][at][b]], at)),
        ...(rest > 0 ? [line(`${whole(rest)} other features`, ["", ""], parts.length - 1)] : []),
      ],
      caption:
        `Query ${data.queries[query]}, by ${model}: A is ${shown[a][0]} with score ${three(scores[0])}, B is ${shown[b][0]} with ${three(scores[1])}; ` +
        `what features add differs by ${plus(gap)} in all (exact SHAP values). Shown are the ${why[1].length} features that tell the query's first documents apart most, and the ${why[0].length} documents that either model ranks among its first ${data.mostExplained}.${numbered}`,
    };
  });
  reasons.element.insertBefore(choices, reasons.element.children[1]);
  const worst = extremes("worst", "Where the second model loses most", "worst"),
    best = extremes("best", "Where the second model gains most", "best");
  place.append(
    make(
      "div",
      { class: "controls" },
      pick("a", "First"),
      pick("b", "Second"),
      make(
        "button",
        {
          type: "button",
          id: "swap",
          click: () => {
            [local.a, local.b] = [local.b, local.a];
            local.by = 1 - local.by;
            for (const key of ["a", "b"]) document.getElementById(`choose-${key}`).value = local[key];
            refill();
          },
        },
        "⇄ Swap",
      ),
    ),
    told,
    tally,
    make("div", { class: "stack" }, element, worst.element, best.element, documents.element, reasons.element),
  );

  function refill() {
    const found = pair();
    worst.refill();
    best.refill();
    documents.refill();
    reasons.refill();
    if (!found) {
      tally.replaceChildren();
      told.textContent = "";
      caption.textContent = "";
      return empty(chart, "Choose two different models.");
    }
    const n = found.wins + found.ties + found.losses || 1;
    const part = (kind, count, word, sign = "") => {
      const room = (tally.clientWidth * count) / n,
        text = `${sign}${whole(count)} ${word}`;
      return make(
        "div",
        { class: kind, style: `flex:${Math.max(count, n * 0.001)} 1 0`, title: text },
        room > 9 * text.length ? text : room > 30 ? whole(count) : "",
      );
    };
    tally.replaceChildren(
      part("w", found.wins, found.wins === 1 ? "win" : "wins", "▲ "),
      part("t", found.ties, found.ties === 1 ? "tie" : "ties"),
      part("l", found.losses, found.losses === 1 ? "loss" : "losses", "▼ "),
    );
    told.textContent =
      `${models[local.b].name} against ${models[local.a].name} by ${measureName()}: ${whole(found.wins)} wins, ${whole(found.ties)} ties, ${whole(found.losses)} losses; ` +
      `mean difference ${signed(found.difference)}, corrected p ${found.p !== null && found.p < 0.001 ? "" : "= "}${pText(found.p)}.`;
    caption.textContent =
      found.d.length < found.wins + found.ties + found.losses
        ? `${whole(found.d.length)} of ${whole(n)} queries, evenly spread over the sorted differences; counts and lists are of all.`
        : "Every bar is a query: above zero the second model is better.";
    drawDifferences(found);
  }
  function drawDifferences(found) {
    if (!found.d.length) return empty(chart, "No query has a value in both models.");
    const order = [...found.d.keys()].reverse(),
      size = Math.max(...found.d.map(Math.abs), 0.01);
    const sheet = paper(chart, {
      height: 300,
      label: `Differences in ${measureName()} of ${found.d.length} queries, sorted`,
      x: { low: 0, high: found.d.length, title: "queries, sorted by difference", text: () => "" },
      y: {
        low: -size * 1.08,
        high: size * 1.08,
        title: `${measureName()}: ${short(models[local.b].name, 18)} − ${short(models[local.a].name, 18)}`,
      },
    });
    const { svg, sx, sy } = sheet,
      wide = sx.at(1) - sx.at(0),
      gap = wide > 3 ? 1 : 0;
    svg.append(
      draw("line", { class: "zero", x1: sheet.left, x2: sheet.width - sheet.right, y1: sy.at(0), y2: sy.at(0) }),
    );
    order.forEach((k, at) => {
      const value = found.d[k],
        y = sy.at(Math.max(0, value)),
        tall = Math.abs(sy.at(value) - sy.at(0));
      svg.append(
        draw("rect", {
          class: `bar ${value > 0 ? "win" : value < 0 ? "loss" : "tie"}`,
          x: sx.at(at),
          y: value === 0 ? y - 0.5 : y,
          width: Math.max(0.6, wide - gap),
          height: Math.max(1, tall),
        }),
      );
    });
    withCursor(sheet, (x) => {
      const at = Math.min(order.length - 1, Math.max(0, Math.floor((x - sheet.left) / wide))),
        k = order[at];
      return { x: sx.at(at + 0.5), lines: [`query ${data.queries[found.q[k]]}`, `difference ${signed(found.d[k])}`] };
    });
  }
  return refill;
}
