// Runs over one another: losses, gradient norm, learning rate, speed and memory, by step, tokens or time.
"use strict";

const run_quantities = [
  { key: "loss", title: "Loss", text: (value) => number(value, 4), wide: true, finding: loss_finding },
  { key: "grad_norm", title: "Gradient norm", text: number, finding: norm_finding },
  { key: "lr", title: "Learning rate", text: number, finding: rate_finding },
  { key: "tokens_per_second", title: "Throughput, tokens a second", text: count, finding: speed_finding },
  { key: "mfu", title: "MFU", text: (value) => percent(value), finding: mfu_finding },
  { key: "tflops_per_device", title: "TFLOP/s a device", text: number, finding: tflops_finding },
  { key: "step_seconds", title: "Time of a step", text: seconds, finding: time_finding },
  { key: "peak_memory", title: "Peak memory of the fullest device", text: bytes, from_zero: true, finding: memory_finding },
  { key: "loss_scale", title: "Loss scale (fp16)", text: count, finding: () => "" },
];

const x_axes = {
  step: { name: "step", of: (run) => run.curves.step, text: count },
  tokens: { name: "tokens", of: (run) => run.curves.tokens, text: count },
  hours: { name: "hours of steps", of: (run) => run.curves.seconds.map((value) => value / 3600), text: number },
};

const end_of = (values) => values.findLast(has);
const quantity_of = (run, key) => (run.curves[key] ? run.curves[key].mean : []);
const highs_of = (run, key) => run.curves[key].high || run.curves[key].mean;
const lows_of = (run, key) => run.curves[key].low || run.curves[key].mean;

// "a: ..., b: ..." for several runs; what belongs to one alone without its name.
function each_run(runs, say) {
  const said = runs.slice(0, 4).map((run) => (runs.length > 1 ? `${run.run}: ${say(run)}` : say(run)));
  return said.join("; ") + (runs.length > 4 ? "; …" : "");
}

function loss_finding(runs) {
  const held_out = (run) => {
    const values = run.curves.validation_loss ? lows_of(run, "validation_loss") : [];
    const best = best_index(values, (a, b) => a < b);
    return best < 0 ? "" : `, lowest held-out ${number(values[best], 4)} by step ${run.curves.step[best].toLocaleString("en")}`;
  };
  const lost = (run) => (run.curves.not_finite > 0 ? `, not finite at ${plural(run.curves.not_finite, "step")}` : "");
  return each_run(runs, (run) => `${number(end_of(quantity_of(run, "loss")), 4)} at the end${held_out(run)}${lost(run)}`);
}

function norm_finding(runs) {
  return each_run(runs, (run) => {
    const values = quantity_of(run, "grad_norm");
    const usual = median(values.slice(values.length >> 1));
    const highs = highs_of(run, "grad_norm");
    const settled = highs.map((value, index) => (index < highs.length / 10 ? NaN : value));
    const top = best_index(settled);
    if (top < 0) return `median ${number(usual)}`;
    const times = settled[top] / usual;
    return times < 3 ? `median ${number(usual)}, never above ${number(times, 2)} times that after the first tenth`
      : `median ${number(usual)}, highest after the first tenth ${number(settled[top])} near step ${run.curves.step[top].toLocaleString("en")}`;
  });
}

function rate_finding(runs) {
  return each_run(runs, (run) => {
    const highs = highs_of(run, "lr");
    const top = best_index(highs);
    return `highest ${number(highs[top])} by step ${run.curves.step[top].toLocaleString("en")}, ${number(end_of(quantity_of(run, "lr")))} at the end`;
  });
}

function speed_finding(runs) {
  if (runs.length > 1) {
    const speeds = runs.map((run) => run.median.tokens_per_second);
    const best = best_index(speeds);
    const next = best_index(speeds.map((value, index) => (index === best ? NaN : value)));
    if (best >= 0 && next >= 0) {
      return `${runs[best].run} is fastest: ${count(speeds[best])} tokens/s, ${percent(speeds[best] / speeds[next] - 1)} over ${runs[next].run}`;
    }
  }
  return each_run(runs, (run) => `median ${count(run.median.tokens_per_second)} tokens/s over the second half`);
}
function mfu_finding(runs) {
  return each_run(runs, (run) => `median ${percent(run.median.mfu)} over the second half`);
}
function tflops_finding(runs) {
  return each_run(runs, (run) => `median ${number(run.median.tflops_per_device)} over the second half`);
}
function time_finding(runs) {
  return each_run(runs, (run) => {
    const highs = highs_of(run, "step_seconds");
    const slowest = best_index(highs);
    return `median ${seconds(run.median.step_seconds)}, slowest ${seconds(highs[slowest])} (${number(highs[slowest] / run.median.step_seconds, 2)} times) near step ${run.curves.step[slowest].toLocaleString("en")}`;
  });
}
function memory_finding(runs) {
  return each_run(runs, (run) => {
    const highs = highs_of(run, "peak_memory");
    const reached = highs.findIndex((value) => value >= run.peak_memory);
    return `${bytes(run.peak_memory)}${reached >= 0 ? `, reached by step ${run.curves.step[reached].toLocaleString("en")}` : ""}`;
  });
}

// Mean over a share of the run around each row.
function smoothed(values, share) {
  const reach = Math.floor((values.length * share) / 2);
  if (reach < 1) return values;
  return values.map((value, index) => {
    if (!has(value)) return value;
    const near = values.slice(Math.max(0, index - reach), index + reach + 1).filter(has);
    return near.reduce((sum, one) => sum + one, 0) / near.length;
  });
}

// The range between each row's lowest and highest step, behind its mean.
function band(x, low, high, colour) {
  const at = x.map((_, index) => index).filter((index) => has(low[index]) && has(high[index]));
  const outline = [...at.map((index) => [x[index], high[index]]), ...at.reverse().map((index) => [x[index], low[index]])];
  return {
    type: "custom", silent: true, data: [outline[0] || [0, 0]], z: 1, tooltip: { show: false }, clip: true,
    renderItem: (_, api) => ({ type: "polygon", shape: { points: outline.map((point) => api.coord(point)) },
      style: { fill: colour, opacity: 0.18 } }),
  };
}

function run_series(run, index, quantity, state) {
  const axis = x_axes[state.axis];
  const x = axis.of(run);
  const { mean, low, high } = run.curves[quantity.key];
  const colour = series_colour(index);
  const positive = (value) => (quantity.key === "loss" && state.logarithmic && value <= 0 ? null : value);
  const line = smoothed(mean, state.smoothing);
  const series = [{
    type: "line", name: run.run, showSymbol: mean.length < 3, data: x.map((at, place) => [at, positive(line[place])]),
    lineStyle: { width: 1.8, type: series_dash(index), color: colour }, itemStyle: { color: colour }, z: 3, emphasis: { disabled: true },
  }];
  if (low) series.unshift(band(x, low.map(positive), high.map(positive), colour));
  else if (state.smoothing > 0) {
    series.unshift({ type: "line", silent: true, showSymbol: false, data: x.map((at, place) => [at, positive(mean[place])]),
      lineStyle: { width: 1, color: colour, opacity: 0.3 }, tooltip: { show: false }, z: 1 });
  }
  const held_out = quantity.key === "loss" && run.curves.validation_loss;
  if (held_out) {
    series.push({ type: "line", name: `${run.run}, held-out`, symbol: marks[index % marks.length], symbolSize: 6,
      data: x.map((at, place) => [at, held_out.mean[place]]).filter((point) => has(point[1])),
      lineStyle: { width: 1, type: "dotted", color: colour }, itemStyle: { color: colour }, z: 4 });
  }
  return series;
}

function curves_option(runs, quantity, state) {
  const axis = x_axes[state.axis];
  const series = runs.flatMap((run, index) =>
    run.curves[quantity.key] && !state.hidden.has(index) ? run_series(run, index, quantity, state) : []);
  const [low, high] = state.range;
  return {
    xAxis: value_axis(axis.name, axis.text, { min: low === null ? "dataMin" : low, max: high === null ? "dataMax" : high, scale: true }),
    yAxis: { ...value_axis("", quantity.text, { min: quantity.from_zero ? 0 : null }),
      type: quantity.key === "loss" && state.logarithmic ? "log" : "value" },
    tooltip: { trigger: "axis", axisPointer: { type: "line" },
      formatter: (points) => tip(`${axis.name} ${axis.text(points[0].value[0])}`,
        ...points.filter((point) => point.seriesName && !point.seriesName.startsWith("series")).map((point) => `${point.seriesName}: ${quantity.text(point.value[1])}`)) },
    series,
  };
}

function curve_rows(runs, quantity) {
  const rows = [["run", "step", "tokens", "seconds", "mean", "lowest", "highest"]];
  for (const run of runs) {
    const values = run.curves[quantity.key];
    if (!values) continue;
    values.mean.forEach((mean, index) => rows.push([run.run, run.curves.step[index], run.curves.tokens[index], run.curves.seconds[index],
      mean, (values.low || values.mean)[index], (values.high || values.mean)[index]]));
  }
  return rows;
}

function run_legend(runs, state, redraw) {
  return element("div", { class: "legend", role: "group", "aria-label": "Runs" }, runs.map((run, index) => {
    const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    swatch.setAttribute("width", "26");
    swatch.setAttribute("height", "8");
    swatch.setAttribute("aria-hidden", "true");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const dash = series_dash(index);
    for (const [name, value] of Object.entries({ x1: 0, x2: 26, y1: 4, y2: 4, "stroke-width": 3, class: "swatch", "data-series": index,
      "stroke-dasharray": Array.isArray(dash) ? dash.join(" ") : "none" })) line.setAttribute(name, value);
    swatch.append(line);
    const box = element("input", { type: "checkbox", checked: true, onchange: (event) => {
      if (event.target.checked) state.hidden.delete(index);
      else state.hidden.add(index);
      redraw();
    } });
    return element("label", {}, box, swatch, run.run);
  }));
}

function run_controls(state, redraw) {
  const select = (label, options, change) => element("label", {}, label,
    element("select", { onchange: (event) => { change(event.target.value); redraw(); } },
      options.map(([value, text]) => element("option", { value }, text))));
  const from = element("input", { type: "number", "aria-label": "From", placeholder: "start" });
  const to = element("input", { type: "number", "aria-label": "To", placeholder: "end" });
  const read = (input) => (input.value === "" ? null : Number(input.value));
  const typed = () => { state.range = [read(from), read(to)]; redraw(); };
  from.addEventListener("change", typed);
  to.addEventListener("change", typed);
  state.set_range = (low, high) => {
    const shown = (value) => (value === null ? "" : String(Number(value.toPrecision(5))));
    from.value = shown(low);
    to.value = shown(high);
    state.range = [low, high];
    redraw();
  };
  return element("div", { class: "controls" },
    select("Over", [["step", "steps"], ["tokens", "tokens"], ["hours", "hours"]], (value) => { state.axis = value; state.set_range(null, null); }),
    select("Smoothing", [["0", "none"], ["0.01", "1 % of the run"], ["0.05", "5 % of the run"]], (value) => { state.smoothing = Number(value); }),
    element("label", {}, element("input", { type: "checkbox", onchange: (event) => { state.logarithmic = event.target.checked; redraw(); } }), "Loss on a log scale"),
    element("span", {}, "Range"), from, to,
    element("button", { type: "button", onclick: () => state.set_range(null, null) }, "All"),
    element("span", { class: "muted" }, "or drag over a chart"));
}

function run_tiles(run) {
  return element("div", { class: "tiles" },
    tile("steps", run.steps.toLocaleString("en")), tile("tokens", count(run.tokens)), tile("time of its steps", seconds(run.seconds)),
    tile("loss of the last step", number(run.loss, 4)), tile("median tokens/s", count(run.median.tokens_per_second)),
    run.median.mfu !== null ? tile("median MFU", percent(run.median.mfu)) : tile("median TFLOP/s a device", number(run.median.tflops_per_device)),
    tile("peak memory of a device", bytes(run.peak_memory)),
    run.devices ? tile("devices", run.devices.toLocaleString("en")) : null,
    run.skipped > 0 ? tile("steps without an update (fp16 overflow)", run.skipped.toLocaleString("en")) : null);
}

function run_table(runs) {
  const lowest = (run) => (run.curves.validation_loss ? Math.min(...lows_of(run, "validation_loss").filter(has)) : null);
  return table({
    title: "The runs side by side",
    columns: [
      { name: "run", text: true, of: (run) => run.run },
      { name: "steps", of: (run) => run.steps }, { name: "tokens", of: (run) => run.tokens, show: count },
      { name: "loss, last step", of: (run) => run.loss, show: (value) => number(value, 4) },
      { name: "lowest held-out", of: lowest, show: (value) => number(value, 4) },
      { name: "step, median", of: (run) => run.median.step_seconds, show: seconds },
      { name: "tokens/s", of: (run) => run.median.tokens_per_second, show: count },
      { name: "TFLOP/s a device", of: (run) => run.median.tflops_per_device },
      { name: "MFU", of: (run) => run.median.mfu, show: (value) => percent(value) },
      { name: "peak memory", of: (run) => run.peak_memory, show: bytes },
      { name: "devices", of: (run) => run.devices },
      { name: "layout", text: true, long: true, of: (run) => (run.layout ? run.layout.description : "") },
    ],
    rows: runs,
  });
}

function show_runs(runs) {
  const state = { axis: "step", smoothing: 0, logarithmic: false, range: [null, null], hidden: new Set(), set_range: null };
  const drawn = [];
  const redraw = () => drawn.forEach((one) => one.draw());
  const controls = run_controls(state, redraw);
  const shown = run_quantities.filter((quantity) => runs.some((run) => quantity_of(run, quantity.key).some((value) => has(value) && value !== 0)));
  for (const quantity of shown) {
    drawn.push(figure({
      title: quantity.title, wide: quantity.wide, height: quantity.wide ? 320 : 230,
      finding: quantity.finding(runs.filter((run) => run.curves[quantity.key])),
      option: () => curves_option(runs, quantity, state), rows: () => curve_rows(runs, quantity),
      zoomed: (low, high) => state.set_range(low, high),
    }));
  }
  const rows = runs.map((run) => run.curves.steps_per_row).filter((steps) => steps > 1);
  add_section(runs.length > 1 ? "Runs" : "Run", [
    runs.length > 1 ? run_table(runs) : run_tiles(runs[0]),
    ...runs.filter((run) => run.note).map((run) => element("p", { class: "note" }, `${run.run}: ${run.note}`)),
    controls, runs.length > 1 ? run_legend(runs, state, redraw) : null,
    rows.length > 0 ? element("p", { class: "muted" }, `Lines are means of up to ${plural(Math.max(...rows), "step")}, bands their lowest and highest.`) : null,
    element("div", { class: "grid" }, drawn.map((one) => one.element))]);
}
