// Tables that sort by a click on a column's head, and whose data can be taken as CSV.
"use strict";

const rows_at_first = 50;

// Numbers by size, words by alphabet; what is missing stands last in either direction.
function compare_cells(a, b, direction) {
  const missing = (value) => value === null || value === undefined || value === "" || Number.isNaN(value);
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  if (typeof a === "number" && typeof b === "number") return direction * (a - b);
  return direction * String(a).localeCompare(String(b), "en", { numeric: true });
}

// table({title, columns: [{name, text, of, show, long}], rows, sort: {column, direction}, is_best})
//   of(row)     a cell's value, by which is sorted and which the CSV holds
//   show(value, row)  what stands in the cell: a text or an element; without, the value
function table({ title, columns, rows, sort = null, is_best = () => false }) {
  const body = element("tbody");
  const heads = columns.map((column, index) =>
    element("th", { scope: "col", class: column.text ? "text" : null },
      element("button", { type: "button", onclick: () => sort_by(index) }, column.name)));
  let order = [...rows];
  let shown = rows_at_first;
  let sorted = { column: -1, direction: 1 };
  const more = element("button", { type: "button", class: "more", onclick: () => { shown = rows.length; draw(); } });

  function cell(column, row) {
    const value = column.of(row);
    const content = column.show ? column.show(value, row) : typeof value === "number" ? number(value) : value;
    const kinds = [column.text ? "text" : "", column.long ? "long" : ""].join(" ").trim();
    return element("td", { class: kinds || null }, content === null || content === undefined || content === "" ? "–" : content);
  }
  function draw() {
    body.replaceChildren(...order.slice(0, shown).map((row) =>
      element("tr", { class: is_best(row) ? "best" : null }, columns.map((column) => cell(column, row)))));
    more.hidden = shown >= order.length;
    more.textContent = `Show all ${order.length.toLocaleString("en")} rows`;
  }
  function sort_by(index, direction = null) {
    const turned = sorted.column === index ? -sorted.direction : 1;
    sorted = { column: index, direction: direction || turned };
    order = [...rows].sort((a, b) => compare_cells(columns[index].of(a), columns[index].of(b), sorted.direction));
    heads.forEach((head, place) => {
      if (place === index) head.setAttribute("aria-sort", sorted.direction > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    draw();
  }
  if (sort) sort_by(sort.column, sort.direction);
  else draw();
  const take = () => download(`${file_name(title)}.csv`, "text/csv",
    csv([columns.map((column) => column.name), ...order.map((row) => columns.map((column) => column.of(row)))]));
  return element("div", { class: "card wide" },
    element("h3", {}, title),
    element("div", { class: "scroll", tabindex: rows.length > 5 ? "0" : null, role: "region", "aria-label": title },
      element("table", { class: rows.length > rows_at_first ? "long" : null },
        element("thead", {}, element("tr", {}, heads)), body)),
    element("div", { class: "tools" }, more, element("button", { type: "button", onclick: take }, "CSV")));
}

// Rows [name, value] that are looked up, not compared.
function facts(title, rows) {
  return element("details", {}, element("summary", {}, title),
    element("div", { class: "scroll" }, element("table", {}, element("tbody", {}, rows.map(([name, value]) =>
      element("tr", {}, element("th", { scope: "row", class: "text" }, name),
        element("td", { class: "text long" }, element("code", {}, String(value)))))))));
}

function tile(label, value) {
  return element("div", { class: "tile" }, element("b", {}, value), element("span", {}, label));
}
