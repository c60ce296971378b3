// Puts the page together. Its data, one JSON document made by src/cli/report_page.cpp, are
//   title, made, program
//   runs      [{run, steps, tokens, seconds, loss, median, curves, settings, devices, layout, note}]
//   studies   [the document of `tune --json`, with goal, goals, shap, settings, machine_facts]
//   layouts   [{name, settings, layout}]: configs, and what `simulate` printed
//   scales, projections  [{name, document}]: what `scale --json` and `project --json` printed
//   machine   [[name, value]], or null
"use strict";

function add_section(title, content) {
  const id = `section-${document.querySelectorAll("main section").length + 1}`;
  const section = element("section", { id }, element("h2", {}, title), content);
  document.getElementById("content").append(section);
  document.getElementById("sections").append(element("a", { href: `#${id}` }, title));
}

function show(data) {
  document.getElementById("title").textContent = data.title;
  document.getElementById("made").textContent = `Made ${data.made} by ${data.program}`;
  follow_scheme();
  if (data.runs.length > 0) show_runs(data.runs);
  for (const one of [...data.runs.map((run) => ({ ...run, name: run.run })), ...data.layouts]) {
    if (one.layout) show_layout(one, data.runs.length + data.layouts.length > 1);
  }
  for (const study of data.studies) show_study(study, data.studies.length > 1);
  for (const scale of data.scales || []) show_scale(scale);
  for (const projection of data.projections || []) show_projection(projection);
  const settings = [...data.runs.map((run) => [run.run, run.settings]), ...data.layouts.map((one) => [one.name, one.settings]),
    ...data.studies.map((study) => [study.study, study.settings])].filter(([, rows]) => rows);
  const machines = [["Machine", data.machine], ...data.studies.map((study) => [`Machine of ${study.study}`, study.machine_facts])]
    .filter(([, rows]) => rows);
  if (settings.length + machines.length > 0) {
    add_section("Config and machine", [
      settings.length > 1 ? differences(settings) : null,
      ...settings.map(([name, rows]) => facts(`Config of ${name}`, rows)),
      ...machines.map(([name, rows]) => facts(name, rows))]);
  }
  draw_all();
  document.documentElement.dataset.ready = "true";
}

// Keys that configs do not agree on: mostly why their curves differ.
function differences(settings) {
  const maps = settings.map(([, rows]) => new Map(rows));
  const keys = [...new Set(settings.flatMap(([, rows]) => rows.map(([key]) => key)))];
  const rows = keys.filter((key) => new Set(maps.map((map) => map.get(key))).size > 1);
  if (rows.length === 0) return element("p", {}, "All configs are the same.");
  return table({
    title: "Where the configs differ",
    columns: [{ name: "key", text: true, of: (key) => key },
      ...settings.map(([name], index) => ({ name, text: true, of: (key) => maps[index].get(key) || "" }))],
    rows,
  });
}

show(JSON.parse(document.getElementById("data").textContent));
