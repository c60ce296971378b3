// Figures: a chart with its title, one line of what it shows, and its data for taking. Apache ECharts draws; what all charts
// share (colours, axes, tips, light and dark, print) is here.
"use strict";

// Hues after Okabe and Ito, which people with any colour vision tell apart; series also differ in their dashes and marks.
const palettes = {
  light: ["#0072b2", "#d55e00", "#009e73", "#c05a94", "#a87200", "#3a9bd0", "#6a5acd", "#4d4d4d"],
  dark: ["#5ab4f0", "#ff9b52", "#35c79b", "#e69cc8", "#ecc14d", "#93d5ff", "#b3a6ff", "#c4c4c4"],
};
const dashes = ["solid", [7, 3], [2, 3], [10, 3, 2, 3]];
const marks = ["circle", "triangle", "rect", "diamond", "roundRect", "arrow"];
const figures = [];
let scheme = "light";

function theme() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  return { text: colour("--text"), muted: colour("--muted"), line: colour("--line"), card: colour("--card"), colours: palettes[scheme] };
}
const series_colour = (index) => palettes[scheme][index % palettes[scheme].length];
// After the colours are used up the dash tells series apart.
const series_dash = (index) => dashes[Math.floor(index / palettes.light.length + (index % palettes.light.length)) % dashes.length];

function value_axis(name, text, options = {}) {
  const look = theme();
  return {
    type: "value", name, nameLocation: "middle", nameGap: options.gap || 26, scale: true, ...options,
    nameTextStyle: { color: look.muted, fontSize: 12 },
    axisLabel: { color: look.muted, hideOverlap: true, formatter: text && ((value) => text(value)), ...options.axisLabel },
    axisLine: { show: true, lineStyle: { color: look.line } }, axisTick: { show: false },
    splitLine: { lineStyle: { color: look.line, opacity: 0.7 } },
  };
}
function name_axis(name, names, options = {}) {
  return { ...value_axis(name, undefined, options), type: "category", data: names, splitLine: { show: false } };
}

// Dresses what a chart says of itself with what all have in common.
function dressed(option) {
  const look = theme();
  const names = option.legend ? { legend: { top: 0, type: "scroll", textStyle: { color: look.text }, pageTextStyle: { color: look.muted },
    itemWidth: 18, itemHeight: 10, ...option.legend } } : {};
  return {
    animation: false, color: look.colours, backgroundColor: "transparent",
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: look.text },
    aria: { enabled: true },
    ...option, ...names,
    grid: { left: 12, right: 20, top: option.legend ? 34 : 14, bottom: 8, outerBoundsMode: "same", outerBoundsContain: "all", ...option.grid },
    tooltip: { confine: true, backgroundColor: look.card, borderColor: look.line, textStyle: { color: look.text, fontSize: 12 },
      renderMode: "html", ...option.tooltip },
  };
}

// Tips are markup to ECharts, so that names which come from files must be made inert.
function inert(text) {
  return String(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
const tip = (...lines) => lines.filter(Boolean).map(inert).join("<br>");

// Left and right go from datum to datum, as a pointer would.
function move_by_keys(plot, chart) {
  let place = -1;
  plot.addEventListener("keydown", (event) => {
    const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") chart.dispatchAction({ type: "hideTip" });
    if (!turn) return;
    const series = (chart.getOption().series || []).find((one) => one.data && one.data.length > 1) || { data: [] };
    place = Math.min(Math.max(place + turn, 0), series.data.length - 1);
    chart.dispatchAction({ type: "showTip", seriesIndex: chart.getOption().series.indexOf(series), dataIndex: place });
    event.preventDefault();
  });
}

// figure({title, finding, option, rows, height, wide, canvas, zoomed})
//   option()   the chart, made anew for each scheme or change
//   rows()     its data, header first, for CSV
//   canvas     for charts of thousands of marks; all others are vectors, which print sharply
//   zoomed(low, high)  called when a range of the x axis was dragged over; without, it cannot be
function figure({ title, finding = "", option, rows, height = 260, wide = false, canvas = false, zoomed = null }) {
  const plot = element("div", { class: "plot", role: "img", tabindex: "0", "aria-label": `${title}. ${finding}`, style: `height:${height}px` });
  const said = element("p", { class: "finding" }, finding);
  const made = { plot, chart: null, draw, resize: () => made.chart && made.chart.resize(), say, wide };
  function draw() {
    if (!made.chart) {
      made.chart = echarts.init(plot, null, { renderer: canvas ? "canvas" : "svg" });
      move_by_keys(plot, made.chart);
      if (zoomed) made.chart.on("datazoom", (event) => range_dragged(event, zoomed));
    }
    made.chart.setOption(zoomed ? with_range_drag(dressed(option())) : dressed(option()), { notMerge: true });
    if (zoomed) {
      made.chart.dispatchAction({ type: "takeGlobalCursor", key: "dataZoomSelect", dataZoomSelectActive: true });
    }
  }
  function say(text) {
    said.textContent = text;
    plot.setAttribute("aria-label", `${title}. ${text}`);
  }
  function take_picture() {
    const url = made.chart.getDataURL({ type: canvas ? "png" : "svg", pixelRatio: 2, backgroundColor: theme().card });
    const link = element("a", { href: url, download: `${file_name(title)}.${canvas ? "png" : "svg"}` });
    link.click();
  }
  made.element = element("figure", { class: wide ? "wide" : null },
    element("figcaption", {}, element("h3", {}, title), said), plot,
    element("div", { class: "tools" },
      element("button", { type: "button", "aria-label": `Data of ${title} as CSV`,
        onclick: () => download(`${file_name(title)}.csv`, "text/csv", csv(rows())) }, "CSV"),
      element("button", { type: "button", "aria-label": `Picture of ${title}`, onclick: take_picture }, canvas ? "PNG" : "SVG")));
  figures.push(made);
  return made;
}

// ECharts drags ranges with its toolbox alone, which is put out of sight.
function with_range_drag(option) {
  return { ...option, toolbox: { show: true, left: -9999, feature: { dataZoom: { yAxisIndex: false, brushStyle: { opacity: 0.15 } } } } };
}
function range_dragged(event, zoomed) {
  const range = (event.batch || [event])[0];
  if (has(range.startValue) && has(range.endValue) && range.startValue < range.endValue) zoomed(range.startValue, range.endValue);
}

function draw_all() {
  for (const line of document.querySelectorAll(".swatch")) line.setAttribute("stroke", series_colour(Number(line.dataset.series)));
  for (const one of figures) one.draw();
}

function set_scheme(name) {
  scheme = name;
  document.documentElement.dataset.theme = name;
  document.getElementById("theme").textContent = name === "dark" ? "Light" : "Dark";
}

// Follows the system until the reader chooses; paper is light.
function follow_scheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  const wanted = () => chosen || (dark.matches ? "dark" : "light");
  const change = (name) => {
    set_scheme(name);
    draw_all();
  };
  set_scheme(wanted());
  dark.addEventListener("change", () => change(wanted()));
  document.getElementById("theme").addEventListener("click", () => {
    chosen = scheme === "dark" ? "light" : "dark";
    change(chosen);
  });
  matchMedia("print").addEventListener("change", (event) => {
    change(event.matches ? "light" : wanted());
    for (const one of figures) one.resize();
  });
  let waiting = 0;
  new ResizeObserver(() => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => figures.forEach((one) => one.resize()));
  }).observe(document.getElementById("content"));
}
