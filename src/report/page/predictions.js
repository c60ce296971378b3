// The layout of a run or a config: what fills each stage's memory, how the pipeline's step runs, and with a machine what
// was predicted, beside what was measured.
"use strict";

const memory_parts = [["weights", "weights"], ["gradients", "gradients"], ["optimizer", "optimizer state"], ["activations", "activations"], ["buffers", "buffers"]];
const time_parts = [["compute", "compute"], ["tensor_comm", "tensor axis"], ["pipeline_comm", "stage messages"], ["bubble", "bubble"],
  ["data_comm", "data axis"], ["context_comm", "context axis"], ["expert_comm", "experts"], ["optimizer", "optimizer"]];
const span_kinds = ["forward", "backward", "backward, inputs", "backward, weights"];

function memory_figure(layout, measured) {
  const stages = layout.stages.map((stage) => stage.memory);
  const totals = stages.map((memory) => memory.total);
  const fullest = best_index(totals);
  const parts = memory_parts.filter(([key]) => stages.some((memory) => memory[key] > 0));
  const largest = [...parts].sort(([a], [b]) => stages[fullest][b] - stages[fullest][a])[0];
  const lines = [];
  // A line far above the bars would flatten them.
  if (layout.device_bytes > 0 && layout.device_bytes < 5 * totals[fullest]) lines.push({ yAxis: layout.device_bytes, name: `a device: ${bytes(layout.device_bytes)}` });
  if (measured > 0) lines.push({ yAxis: measured, name: `measured peak: ${bytes(measured)}` });
  const colour_line = () => ({ color: theme().text, type: "dashed" });
  return figure({
    title: "Memory of a device, by stage",
    finding: `${stages.length > 1 ? `Stage ${fullest} is fullest` : "It comes to"}: ${bytes(totals[fullest])}, of which ${largest[1]} ${percent(stages[fullest][largest[0]] / totals[fullest], 0)}` +
      (layout.verdict ? `; ${layout.verdict.replaceAll("_", " ")}` : "") + (measured > 0 ? `; measured ${bytes(measured)}` : ""),
    option: () => ({
      legend: {},
      xAxis: name_axis(stages.length > 1 ? "stage" : "", stages.map((_, index) => (stages.length > 1 ? String(index) : "all devices"))),
      yAxis: value_axis("", bytes, { min: 0, max: (extent) => Math.max(extent.max, ...lines.map((line) => line.yAxis)) * 1.04, axisLabel: { showMaxLabel: false } }),
      tooltip: { trigger: "axis", axisPointer: { type: "shadow" },
        formatter: (bars) => tip(stages.length > 1 ? `stage ${bars[0].axisValue}` : "a device", ...bars.map((bar) => `${bar.seriesName}: ${bytes(bar.value)}`),
          `together: ${bytes(totals[bars[0].dataIndex])}`) },
      series: parts.map(([key, name], index) => ({
        type: "bar", stack: "memory", name, barMaxWidth: 60, data: stages.map((memory) => memory[key]),
        itemStyle: { color: series_colour(index), borderColor: theme().card, borderWidth: 0.5 },
        markLine: index > 0 ? undefined : { symbol: "none", silent: true, lineStyle: colour_line(), data: lines,
          label: { formatter: (line) => line.name, position: "insideStartTop", color: theme().text } },
      })),
    }),
    rows: () => [["stage", ...parts.map(([, name]) => `${name} (bytes)`), "together (bytes)"],
      ...stages.map((memory, index) => [index, ...parts.map(([key]) => memory[key]), memory.total])],
  });
}

function time_figure(layout, measured) {
  const parts = time_parts.filter(([key]) => layout.time[key] > 0);
  const lost = layout.step_seconds - layout.time.compute;
  const bars = has(measured) ? ["measured", "predicted"] : ["predicted"];
  return figure({
    title: "Where the predicted step's time goes",
    finding: `${seconds(layout.step_seconds)}, of which ${percent(layout.time.compute / layout.step_seconds, 0)} compute and ${percent(lost / layout.step_seconds, 0)} all else` +
      (has(measured) ? `; measured ${seconds(measured)}, the prediction is off by ${signed_percent(layout.step_seconds / measured - 1)}` : ""),
    option: () => ({
      legend: {},
      xAxis: value_axis("", seconds, { min: 0 }), yAxis: name_axis("", bars),
      tooltip: { trigger: "item", formatter: (bar) => tip(bar.seriesName, `${seconds(bar.value)}, ${percent(bar.value / layout.step_seconds)} of the predicted step`) },
      series: [...parts.map(([key, name], index) => ({ type: "bar", stack: "step", name, barMaxWidth: 46,
        data: bars.map((bar) => (bar === "predicted" ? layout.time[key] : null)),
        itemStyle: { color: series_colour(index), borderColor: theme().card, borderWidth: 0.5 } })),
      ...(has(measured) ? [{ type: "bar", stack: "step", name: "measured step", barMaxWidth: 46, data: [measured, null],
        itemStyle: { color: theme().muted } }] : [])],
    }),
    rows: () => [["part", "seconds"], ...parts.map(([key, name]) => [name, layout.time[key]]), ["step", layout.step_seconds], ["measured step", measured]],
  });
}

// A rectangle an action. Forward, backward and its halves differ in lightness and pattern of hue; chunks in shade.
function timeline_option(timeline) {
  const unit = timeline.unit === "seconds" ? (value) => seconds(value) : (value) => `${number(value)} forwards`;
  const colours = [0, 1, 1, 4].map(series_colour);
  const data = timeline.spans.flatMap((spans, stage) => spans.map(([begin, end, kind, micro_batch, chunk]) =>
    [stage, begin * timeline.tick, end * timeline.tick, kind, micro_batch, chunk]));
  const wide_enough = 14;
  const draw_span = (_, api) => {
    const [x, y] = api.coord([api.value(1), api.value(0)]);
    const [end] = api.coord([api.value(2), api.value(0)]);
    const height = api.size([0, 1])[1] * 0.86;
    const width = Math.max(end - x, 0.5);
    const kind = api.value(3);
    const box = { type: "rect", shape: { x, y: y - height / 2, width, height },
      style: { fill: colours[kind], opacity: 1 - 0.35 * Math.min(api.value(5), 2) / 2, stroke: theme().card, lineWidth: width > 3 ? 0.8 : 0 } };
    if (width < wide_enough || height < 12) return box;
    const label = { type: "text", style: { text: String(api.value(4)), x: x + width / 2, y, align: "center", verticalAlign: "middle",
      fill: scheme === "dark" ? "#10151a" : "#ffffff", font: "11px sans-serif" } };
    return { type: "group", children: [box, label] };
  };
  const kinds = [...new Set(data.map((span) => span[3]))].sort();
  return {
    legend: { data: kinds.map((kind) => ({ name: span_kinds[kind], itemStyle: { color: colours[kind] } })), selectedMode: false },
    xAxis: value_axis("", unit, { min: 0, scale: false }),
    yAxis: name_axis("stage", timeline.spans.map((_, stage) => String(stage)), { inverse: true }),
    dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", filterMode: "weakFilter" }],
    tooltip: { trigger: "item", formatter: ({ value }) => tip(`stage ${value[0]}: ${span_kinds[value[3]]} of micro-batch ${value[4]}` + (value[5] > 0 ? `, chunk ${value[5]}` : ""),
      `${unit(value[1])} to ${unit(value[2])}`) },
    series: kinds.map((kind) => ({ type: "custom", name: span_kinds[kind], itemStyle: { color: colours[kind] }, clip: true, renderItem: draw_span,
      encode: { x: [1, 2], y: 0 }, data: data.filter((span) => span[3] === kind) })),
  };
}

function timeline_figure(layout) {
  const { timeline } = layout;
  const cut = timeline.drawn < timeline.micro_batches ? `; drawn with ${timeline.drawn} of its ${timeline.micro_batches.toLocaleString("en")} micro-batches` : "";
  const basis = timeline.unit === "seconds" ? "predicted" : "if all stages were equal and a backward took two forwards";
  const idle = timeline.drawn < timeline.micro_batches && layout.time ? layout.time.bubble / layout.step_seconds : timeline.idle_share;
  return figure({
    title: "The pipeline's step", wide: true, canvas: timeline.spans.flat().length > 3000,
    height: Math.min(90 + 26 * timeline.stages, 560),
    finding: `${plural(timeline.stages, "stage")}, ${plural(timeline.micro_batches, "micro-batch").replace("batchs", "batches")}: stages are idle ${percent(idle)} of the time (${basis})${cut}`,
    option: () => timeline_option(timeline),
    rows: () => [["stage", `begin (${timeline.unit})`, `end (${timeline.unit})`, "action", "micro-batch", "chunk"],
      ...timeline.spans.flatMap((spans, stage) => spans.map(([begin, end, kind, micro_batch, chunk]) =>
        [stage, begin * timeline.tick, end * timeline.tick, span_kinds[kind], micro_batch, chunk]))],
  });
}

function agreement_table(run, layout) {
  const rows = [
    ["time of a step", layout.step_seconds, run.median.step_seconds, seconds],
    ["tokens a second", layout.tokens_per_second, run.median.tokens_per_second, count],
    ["TFLOP/s a device", layout.tflops_per_device, run.median.tflops_per_device, number],
    ["MFU", layout.mfu, run.median.mfu, (value) => percent(value)],
    ["memory of tensors, fullest device", layout.tensor_bytes, run.peak_memory || null, bytes]];
  const off = (row) => (has(row[1]) && has(row[2]) && row[2] !== 0 ? row[1] / row[2] - 1 : null);
  return table({
    title: "Predicted against measured",
    columns: [{ name: "quantity", text: true, of: (row) => row[0] }, { name: "predicted", of: (row) => row[1], show: (value, row) => row[3](value) },
      { name: "measured (median)", of: (row) => row[2], show: (value, row) => row[3](value) },
      { name: "prediction is off by", of: off, show: signed_percent }],
    rows,
  });
}

function show_layout(one, is_named) {
  const { layout } = one;
  const measured = one.median ? one.median.step_seconds : null;
  const drawn = [];
  if (layout.stages && layout.stages.length > 0) drawn.push(memory_figure(layout, one.peak_memory || 0));
  if (layout.time) drawn.push(time_figure(layout, measured));
  if (layout.timeline && (layout.timeline.stages > 1 || layout.timeline.micro_batches > 1)) drawn.push(timeline_figure(layout));
  const about = [layout.description, layout.devices ? plural(layout.devices, "device") : "", layout.machine ? `predicted for ${layout.machine}` : ""];
  add_section(is_named ? `Layout of ${one.name}` : "Layout", [
    element("p", {}, about.filter(Boolean).join("; ")),
    one.median && layout.time ? agreement_table(one, layout) : null,
    element("div", { class: "grid" }, drawn.map((figure_made) => figure_made.element))]);
}
