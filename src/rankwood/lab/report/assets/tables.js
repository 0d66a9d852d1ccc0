// Tables that can be copied, downloaded and sorted.

// A cell is a text, or { text, node, sort, class }: `text` is what is copied, `node` what is shown instead of it.
const cellText = (cell) => (cell !== null && typeof cell === "object" ? cell.text : String(cell));
const cellSort = (cell) =>
  cell !== null && typeof cell === "object" && cell.sort !== undefined ? cell.sort : cellText(cell);

function asTsv(table) {
  return table.lines.map((line) => line.map((text) => text.replace(/[\t\r\n]+/g, " ")).join("\t")).join("\n") + "\n";
}
function asMarkdown(table) {
  const line = (texts) =>
    `| ${texts
      .map((text) =>
        text
          .replace(/\\/g, "\\\\")
          .replace(/\|/g, "\\|")
          .replace(/[\r\n]+/g, " "),
      )
      .join(" | ")} |`;
  const [head, ...rest] = table.lines;
  return [line(head), line(head.map((_, k) => (k ? "---:" : ":---"))), ...rest.map(line)].join("\n") + "\n";
}
function asCsv(table) {
  const quote = (text) => (/[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  return table.lines.map((line) => line.map(quote).join(",")).join("\r\n") + "\r\n";
}

let saidTimer = 0;
function say(text) {
  const place = document.getElementById("said");
  place.textContent = text;
  clearTimeout(saidTimer);
  saidTimer = setTimeout(() => {
    place.textContent = "";
  }, 2500);
}
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", { readonly: true, style: "position:fixed;opacity:0" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) return say("The browser does not allow copying");
  }
  say("Copied");
}
function saveText(name, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Buttons for a table that `lines()` gives as rows of texts, the head first.
function tableTools(name, lines) {
  const button = (title, label, act) =>
    make("button", { type: "button", title, click: act, "data-table": name, "data-as": label.toLowerCase() }, label);
  return make(
    "div",
    { class: "table-tools" },
    button("Copy, for a spreadsheet", "Copy", () => copyText(asTsv({ lines: lines() }))),
    button("Copy as Markdown", "Markdown", () => copyText(asMarkdown({ lines: lines() }))),
    button("Download as CSV", "CSV", () => saveText(`${name}.csv`, asCsv({ lines: lines() }))),
  );
}

// A table under its title. `content()` gives { columns, rows, caption }, a column { title, hint, class }, and rows are
// arrays of cells with an optional `className`. Returns the element and a function that fills it again.
function tableOf(name, title, content, { sortable = false, untitled = false } = {}) {
  const scroll = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title });
  const note = make("p", { class: "note" });
  const more = make("p", { class: "more", "aria-hidden": "true", hidden: true });
  // How many columns are out of sight to the right.
  function hint() {
    const edge = scroll.getBoundingClientRect().right + 1;
    const beyond = [...scroll.querySelectorAll("thead th")].filter((head) => head.getBoundingClientRect().right > edge).length;
    more.hidden = scroll.scrollWidth <= scroll.clientWidth + 1;
    more.classList.toggle("done", beyond === 0);
    more.textContent = `scroll sideways: ${beyond} more ${beyond === 1 ? "column" : "columns"} →`;
  }
  scroll.addEventListener("scroll", hint, { passive: true });
  new ResizeObserver(hint).observe(scroll);
  let sorted = null; // [column, descending]
  function current() {
    const found = content();
    const rows = [...found.rows];
    if (sorted) {
      const [column, descending] = sorted,
        sign = descending ? -1 : 1;
      rows.sort((a, b) => {
        const x = cellSort(a[column]),
          y = cellSort(b[column]);
        if (x === null || y === null) return (x === null) - (y === null);
        return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
      });
    }
    return { ...found, rows };
  }
  const lines = () => {
    const { columns, rows } = current();
    return [columns.map((column) => column.title), ...rows.map((row) => [...row].map(cellText))];
  };
  function head(column, k) {
    const direction = sorted && sorted[0] === k ? (sorted[1] ? "descending" : "ascending") : null;
    const press = () => {
      sorted = sorted && sorted[0] === k ? [k, !sorted[1]] : [k, k > 0];
      refill();
    };
    const arrow = direction ? (direction === "descending" ? " ↓" : " ↑") : "";
    const inner = sortable
      ? make("button", { type: "button", click: press, title: column.hint || "Sort" }, column.title + arrow)
      : column.title;
    return make("th", { scope: "col", class: column.class, title: column.hint, "aria-sort": direction }, inner);
  }
  function cell(value, k, columns) {
    const rich = value !== null && typeof value === "object";
    const attributes = {
      class: [columns[k].class, rich && value.class].filter(Boolean).join(" ") || null,
      title: rich ? value.hint : null,
    };
    if (k === 0) attributes.scope = "row";
    return make(k === 0 ? "th" : "td", attributes, rich && value.node ? value.node : cellText(value));
  }
  function refill() {
    const { columns, rows, caption } = current();
    note.textContent = caption || (rows.length ? "" : "There is none.");
    scroll.replaceChildren(
      make(
        "table",
        { id: `table-${name}`, "aria-label": title },
        make("thead", null, make("tr", null, columns.map(head))),
        make(
          "tbody",
          null,
          rows.map((row) =>
            make(
              "tr",
              { class: row.className },
              [...row].map((value, k) => cell(value, k, columns)),
            ),
          ),
        ),
      ),
    );
    hint();
  }
  refill();
  const element = make(
    "div",
    null,
    make(
      "div",
      { class: untitled ? "figure-head raised" : "figure-head" },
      make("h3", { class: untitled ? "unseen" : null }, title),
      tableTools(name, lines),
    ),
    more,
    scroll,
    note,
  );
  return { element, refill };
}
