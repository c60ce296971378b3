// Numbers and words for people, and elements made without markup: whatever a config or a log holds is shown as text.
"use strict";

const has = (value) => typeof value === "number" && Number.isFinite(value);
const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

// Three significant digits, without an exponent where one can read it.
function number(value, digits = 3) {
  if (!has(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e15)) return value.toExponential(digits - 1).replace("e+", "e");
  if (Number.isInteger(value) || size >= 10 ** digits) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

function scaled(value, steps, units) {
  if (!has(value)) return "–";
  let place = 0;
  let size = Math.abs(value);
  while (place + 1 < units.length && size >= steps * 0.9995) {
    size /= steps;
    place += 1;
  }
  return `${Number((Math.sign(value) * size).toPrecision(3))} ${units[place]}`.trimEnd();
}
const count = (value) => scaled(value, 1000, ["", "k", "M", "B", "T"]);
const bytes = (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);

function seconds(value) {
  if (!has(value)) return "–";
  const size = Math.abs(value);
  if (size < 1e-3) return `${number(value * 1e6)} µs`;
  if (size < 1) return `${number(value * 1e3)} ms`;
  if (size < 120) return `${number(value)} s`;
  if (size < 7200) return `${number(value / 60)} min`;
  return size < 172800 ? `${number(value / 3600)} h` : `${number(value / 86400)} d`;
}

const percent = (share, digits = 1) => (has(share) ? `${(100 * share).toFixed(digits)} %` : "–");

function signed_percent(share) {
  if (!has(share)) return "–";
  return `${share > 0 ? "+" : ""}${(100 * share).toFixed(1)} %`;
}

// What the objectives of a study are, for people.
const goals = {
  step_seconds: { label: "time of a step", text: seconds },
  device_tflops: { label: "TFLOP/s a device", text: (value) => `${number(value)} TFLOP/s` },
  tokens_per_node_hour: { label: "tokens a node-hour", text: (value) => `${count(value)} tokens/node-hour` },
  joules_per_token: { label: "joules a token", text: (value) => `${number(value)} J/token` },
};
function goal_of(name) {
  const { label, text } = goals[name] || { label: name, text: number };
  return { label, text: (value) => (has(value) ? text(value) : "–") };
}

// element("p", {class: "finding"}, "text", other_element)
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

function median(values) {
  const sorted = values.filter(has).sort((a, b) => a - b);
  if (sorted.length === 0) return NaN;
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// Where the largest (or, by `better`, the best) value stands; -1 where none is a number.
function best_index(values, better = (a, b) => a > b) {
  let best = -1;
  values.forEach((value, index) => {
    if (has(value) && (best < 0 || better(value, values[best]))) best = index;
  });
  return best;
}

const file_name = (title) => title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 80);

function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = element("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// Rows of cells, RFC 4180. A cell that a spreadsheet would take for a formula is made text.
function csv(rows) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    const text = String(value);
    const safe = typeof value === "string" && /^[=+@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}
