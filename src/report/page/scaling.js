// What `scale --json` and `project --json` printed: efficiency by devices, where it is lost, and what a whole training takes.
"use strict";

const loss_names = { compute: "compute", tensor_comm: "tensor axis", pipeline_comm: "stage messages", data_comm: "data axis", bubble: "bubble", optimizer: "optimizer" };

function speedup_figure(scale, points) {
  const ideal = points.map((point) => [point.devices, point.ideal_speedup]);
  const last = points.at(-1);
  return figure({
    title: "Speedup", height: 290,
    finding: `${number(last.speedup)} times at ${last.devices.toLocaleString("en")} devices, where ${number(last.ideal_speedup)} would be ideal`,
    option: () => ({
      legend: {},
      xAxis: { ...value_axis("devices", count), type: "log", logBase: 2 }, yAxis: { ...value_axis("", number), type: "log", logBase: 2 },
      tooltip: { trigger: "axis", formatter: (marked) => tip(`${count(marked[0].value[0])} devices`, ...marked.map((mark) => `${mark.seriesName}: ${number(mark.value[1])}`)) },
      series: [
        { type: "line", name: scale.objective === "measured" ? "measured" : "simulated", symbolSize: 8, data: points.map((point) => [point.devices, point.speedup]), lineStyle: { width: 2, color: series_colour(0) }, itemStyle: { color: series_colour(0) } },
        { type: "line", name: "ideal", symbol: "none", data: ideal, lineStyle: { type: "dashed", color: theme().muted }, itemStyle: { color: theme().muted } }],
    }),
    rows: () => [["devices", "speedup", "ideal speedup"], ...points.map((point) => [point.devices, point.speedup, point.ideal_speedup])],
  });
}

function efficiency_figure(scale, points) {
  const falls = points.find((point) => point.efficiency.middle < 0.8);
  return figure({
    title: "Parallel efficiency", height: 290,
    finding: `${percent(points.at(-1).efficiency.middle)} at ${points.at(-1).devices.toLocaleString("en")} devices; ` + (falls ? `below 80 % from ${falls.devices.toLocaleString("en")} on` : "nowhere below 80 %"),
    option: () => ({
      xAxis: { ...value_axis("devices", count), type: "log", logBase: 2 }, yAxis: value_axis("", (value) => percent(value, 0), { min: 0 }),
      tooltip: { trigger: "axis", formatter: (marked) => tip(`${count(marked[0].value[0])} devices`, percent(marked[0].value[1])) },
      series: [{ type: "line", symbolSize: 8, data: points.map((point) => [point.devices, point.efficiency.middle]), lineStyle: { width: 2, color: series_colour(0) }, itemStyle: { color: series_colour(0) },
        markLine: { symbol: "none", silent: true, lineStyle: { color: theme().muted, type: "dashed" }, label: { formatter: "ideal", color: theme().muted }, data: [{ yAxis: 1 }] } }],
    }),
    rows: () => [["devices", "lowest", "middle", "highest"], ...points.map((point) => [point.devices, point.efficiency.low, point.efficiency.middle, point.efficiency.high])],
  });
}

function efficiency_loss_figure(points) {
  const parts = Object.keys(loss_names).filter((part) => points.some((point) => Math.abs((point.loss || {})[part] || 0) >= 0.001));
  const last = points.at(-1);
  const most = parts[best_index(parts.map((part) => last.loss[part]))];
  return figure({
    title: "Where efficiency is lost, by the simulator", wide: true,
    finding: most ? `At ${last.devices.toLocaleString("en")} devices most by the ${loss_names[most]}: ${percent(last.loss[most])} of the time` : "Nowhere: all points are as efficient as the smallest",
    option: () => ({
      legend: {}, xAxis: name_axis("devices", points.map((point) => count(point.devices))), yAxis: value_axis("", (value) => `${number(100 * value)} %`),
      tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, formatter: (bars) => tip(`${bars[0].axisValue} devices`, ...bars.map((bar) => `${bar.seriesName}: ${percent(bar.value)}`)) },
      series: parts.map((part, index) => ({ type: "bar", stack: "lost", name: loss_names[part], barMaxWidth: 60, data: points.map((point) => point.loss[part]), itemStyle: { color: series_colour(index), borderColor: theme().card, borderWidth: 0.5 } })),
    }),
    rows: () => [["devices", ...parts], ...points.map((point) => [point.devices, ...parts.map((part) => point.loss[part])])],
  });
}

function show_scale({ name, document: scale }) {
  const points = scale.points.filter((point) => point.efficiency && has(point.speedup)).sort((a, b) => a.devices - b.devices);
  const drawn = points.length < 2 ? [] : [speedup_figure(scale, points), efficiency_figure(scale, points)];
  if (points.length > 1 && points.every((point) => point.loss)) drawn.push(efficiency_loss_figure(points));
  const range = (point, key) => (point[key] ? point[key].middle : null);
  add_section(`${scale.kind === "strong" ? "Strong" : "Weak"} scaling (${name})`, [
    element("p", {}, `On ${scale.machine}, ${scale.objective === "measured" ? "measured" : "simulated"}` +
      (scale.fit && scale.fit.law === "amdahl" ? `; by Amdahl's law ${percent(scale.fit.share, 2)} of the smallest point's step does not scale` : "")),
    element("div", { class: "grid" }, drawn.map((one) => one.element), table({
      title: `Points of ${name}`,
      columns: [{ name: "devices", of: (point) => point.devices }, { name: "outcome", text: true, of: (point) => outcome_names[point.outcome] || point.outcome },
        { name: "time of a step", of: (point) => range(point, "step_seconds"), show: seconds }, { name: "tokens/s", of: (point) => point.tokens_per_second, show: count },
        { name: "TFLOP/s a device", of: (point) => point.tflops_per_device }, { name: "efficiency", of: (point) => range(point, "efficiency"), show: (value) => percent(value) },
        { name: "batch, tokens", of: (point) => point.batch_tokens, show: count }, { name: "of the critical batch", of: (point) => point.critical_share, show: (value) => percent(value, 0) }],
      rows: scale.points,
    }))]);
}

const hour_parts = [["steps", "steps"], ["evaluation", "evaluation"], ["checkpoints", "checkpoints"], ["starts", "start-up"], ["restarts", "restarts"], ["lost_work", "work lost to failures"],
  ["pauses", "pauses"], ["ends_of_jobs", "ends of jobs"], ["queue_waits", "waits in the queue"]];

function show_projection({ name, document: projection }) {
  const band = (range, text) => `${text(range.low)} to ${text(range.high)}`;
  const parts = hour_parts.filter(([key]) => projection.hours[key] > 0);
  const total = parts.reduce((sum, [key]) => sum + projection.hours[key], 0);
  const others = parts.filter(([key]) => key !== "steps");
  const largest = others[best_index(others.map(([key]) => projection.hours[key]))];
  const hours = figure({
    title: "Where the hours of the training go", height: 70 + 30 * parts.length,
    finding: `${percent(projection.hours.steps / total)} are steps` + (largest ? `; of the rest most are ${largest[1]}: ${percent(projection.hours[largest[0]] / total, 2)}` : ""),
    option: () => horizontal_bars(parts.map(([, part]) => part), [{ name: "hours", values: parts.map(([key]) => projection.hours[key]) }], number),
    rows: () => [["part", "hours"], ...parts.map(([key, part]) => [part, projection.hours[key]])],
  });
  const options = (projection.what_if || []).filter((option) => option.days && has(option.days.middle)).sort((a, b) => a.nodes - b.nodes);
  const nodes = options.length < 2 ? null : figure({
    title: "With other numbers of nodes", height: 70 + 30 * Math.max(parts.length, 6),
    finding: `${number(options[0].days.middle)} days on ${plural(options[0].nodes, "node")}, ${number(options.at(-1).days.middle)} on ${options.at(-1).nodes.toLocaleString("en")}`,
    option: () => ({
      xAxis: { ...value_axis("nodes", count), type: "log", logBase: 2 }, yAxis: value_axis("days", number, { min: 0, gap: 40 }),
      tooltip: { trigger: "axis", formatter: ([mark]) => tip(plural(options[mark.dataIndex].nodes, "node"), `${band(options[mark.dataIndex].days, number)} days`, `${count(options[mark.dataIndex].node_hours.middle)} node-hours`) },
      series: [band_of_days(options), { type: "line", symbolSize: 8, data: options.map((option) => [option.nodes, option.days.middle]), lineStyle: { width: 2, color: series_colour(0) }, itemStyle: { color: series_colour(0) } }],
    }),
    rows: () => [["nodes", "days, low", "days, middle", "days, high", "node-hours"], ...options.map((option) => [option.nodes, option.days.low, option.days.middle, option.days.high, option.node_hours.middle])],
  });
  add_section(`Projection (${name})`, [
    element("div", { class: "tiles" }, tile(`days (${band(projection.days, number)})`, number(projection.days.middle)), tile("tokens", count(projection.tokens)),
      tile(`node-hours (${band(projection.node_hours, count)})`, count(projection.node_hours.middle)), tile("devices", projection.devices.toLocaleString("en")),
      tile("energy", `${number(projection.energy_mwh.middle)} MWh`), projection.cost ? tile("cost", count(projection.cost.middle)) : null),
    element("div", { class: "grid" }, hours.element, nodes ? nodes.element : null),
    (projection.assumptions || []).length > 0 ? facts("What was assumed", projection.assumptions.map((text, index) => [index + 1, text])) : null]);
}
function band_of_days(options) {
  return band(options.map((option) => option.nodes), options.map((option) => option.days.low), options.map((option) => option.days.high), series_colour(0));
}
