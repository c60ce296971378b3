// A study of `tune`: how the search went, what decides the objective, how it failed, and every trial.
"use strict";

const outcome_names = { ok: "ran", stopped_early: "stopped early, too slow", out_of_memory: "out of memory", timeout: "timed out", invalid: "refused",
  crashed: "crashed", infrastructure: "machine at fault", diverged: "diverged", running: "under way" };
const outcome_order = Object.keys(outcome_names);
const ran_well = (trial) => trial.outcome === "ok" && has(trial.objective);

function short_strategy(strategy) {
  const parts = [`TP ${strategy.tensor}`, `PP ${strategy.pipeline}`, `DP ${strategy.data}`, `micro-batch ${strategy.micro_batch}`];
  if (strategy.zero_stage > 0) parts.push(`ZeRO-${strategy.zero_stage}`);
  if (strategy.recompute !== "none") parts.push(`recompute ${strategy.recompute}`);
  if (strategy.virtual_pipeline > 1) parts.push(`${strategy.virtual_pipeline} chunks`);
  return parts.join(", ");
}

function search_figure(study) {
  const goal = goal_of(study.objective);
  const ended = study.trials.filter((trial) => has(trial.ended)).sort((a, b) => a.ended - b.ended);
  const failed = ended.filter((trial) => !has(trial.objective));
  const good = ended.filter((trial) => has(trial.objective));
  const worst = good.map((trial) => trial.objective);
  const rim = study.goal.larger_is_better ? Math.min(...worst) : Math.max(...worst);
  const steps = study.regret.map((regret) => [regret.ended, regret.best]);
  const last = study.regret.at(-1);
  const reached = study.regret.find((regret) => regret.excess <= 0.01);
  return figure({
    title: `The search: ${goal.label}`, wide: true, height: 320,
    finding: last ? `Best ${goal.text(last.best)}; within 1 % of it after ${plural(reached.ended, "trial")} of ${ended.length.toLocaleString("en")}` +
      (failed.length > 0 ? `; ${failed.length.toLocaleString("en")} failed` : "") : "No trial has ended well yet",
    option: () => ({
      legend: {},
      xAxis: value_axis("trials ended", count, { min: 0, minInterval: 1 }), yAxis: value_axis("", goal.text),
      tooltip: { trigger: "item", formatter: ({ data, seriesName }) => (data.trial ? tip(`trial ${data.trial.trial}: ${outcome_names[data.trial.outcome] || data.trial.outcome}`,
        has(data.trial.objective) ? goal.text(data.trial.objective) : "", short_strategy(data.trial.strategy)) : tip(seriesName, goal.text(data[1]))) },
      series: [
        { type: "scatter", name: "a trial", symbolSize: 6, itemStyle: { color: series_colour(5), opacity: 0.85 }, data: good.map((trial) => ({ value: [trial.ended, trial.objective], trial })) },
        { type: "line", name: "best so far", step: "end", showSymbol: true, symbol: "diamond", symbolSize: 7, data: steps, lineStyle: { width: 2.2, color: series_colour(0) }, itemStyle: { color: series_colour(0) }, z: 3 },
        ...(failed.length > 0 && good.length > 0 ? [{ type: "scatter", name: "failed (at the rim)", symbol: "path://M0,0 L2,0 L5,3 L8,0 L10,0 L6,5 L10,10 L8,10 L5,7 L2,10 L0,10 L4,5 Z", symbolSize: 7, itemStyle: { color: series_colour(1) },
          data: failed.map((trial) => ({ value: [trial.ended, rim], trial })) }] : []),
      ],
    }),
    rows: () => [["trial", "ended", "outcome", study.objective], ...ended.map((trial) => [trial.trial, trial.ended, trial.outcome, trial.objective])],
  });
}

function regret_figure(study) {
  const points = study.regret.map((regret) => [regret.ended, 100 * regret.excess]);
  const floor = 0.01;
  return figure({
    title: "Regret: excess of the best so far over the best known",
    finding: [0.1, 0.05, 0.01].map((share) => [share, study.regret.find((regret) => regret.excess <= share)]).filter(([, regret]) => regret)
      .map(([share, regret]) => `within ${100 * share} % after ${regret.ended}`).join(", ") + " trials",
    option: () => ({
      xAxis: value_axis("trials ended", count, { min: 0, minInterval: 1 }),
      yAxis: { ...value_axis("", (value) => `${number(value)} %`), type: "log", min: floor },
      tooltip: { trigger: "axis", formatter: ([point]) => tip(`after ${point.value[0]} trials`, `${number(study.regret[point.dataIndex].excess * 100)} % over the best known`) },
      series: [{ type: "line", step: "end", symbol: "circle", symbolSize: 6, data: points.map(([at, value]) => [at, Math.max(value, floor)]), lineStyle: { width: 2, color: series_colour(0) }, itemStyle: { color: series_colour(0) } }],
    }),
    rows: () => [["trials ended", "excess"], ...study.regret.map((regret) => [regret.ended, regret.excess])],
  });
}

function horizontal_bars(names, series, text) {
  return {
    legend: series.length > 1 ? {} : undefined,
    xAxis: value_axis("", text, { min: 0, scale: false }), yAxis: name_axis("", names, { inverse: true, axisLabel: { width: 190, overflow: "truncate", hideOverlap: false, interval: 0 } }),
    tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, formatter: (bars) => tip(bars[0].axisValue, ...bars.map((bar) => `${bar.seriesName}: ${text(bar.value)}`)) },
    series: series.map(({ name, values }, index) => ({ type: "bar", name, data: values, barMaxWidth: 18, itemStyle: { color: series_colour(index) } })),
  };
}

function importance_figures(importance, what, as_text) {
  const { dimensions } = importance;
  const top = dimensions[0];
  const trust = importance.explained < 0.3 ? `; the model foretells only ${percent(importance.explained, 0)} of the variance: believe little of it` : `; ${percent(importance.explained, 0)} of the variance explained`;
  const made = [figure({
    title: `What decides ${what}`, height: 60 + 44 * dimensions.length,
    finding: `${top.name} most: it moves ${what} by ${as_text(top.shap)} on average${trust}`,
    option: () => horizontal_bars(dimensions.map((one) => one.name),
      [{ name: "mean |SHAP|", values: dimensions.map((one) => one.shap) }, { name: "share of the variance (fANOVA)", values: dimensions.map((one) => Math.max(0, one.share)) }], (value) => percent(value)),
    rows: () => [["dimension", "mean |SHAP|", "share of the variance"], ...dimensions.map((one) => [one.name, one.shap, one.share])],
  })];
  const pairs = importance.pairs.filter((pair) => pair.share > 0).slice(0, 10);
  if (pairs.length > 0) {
    const name = (pair) => pair.names.join(" × ");
    made.push(figure({
      title: `Pairs that decide ${what} together`, height: 60 + 26 * pairs.length,
      finding: `${name(pairs[0])}: ${percent(pairs[0].share)} of the variance beyond what each does alone`,
      option: () => horizontal_bars(pairs.map(name), [{ name: "share of the variance", values: pairs.map((pair) => pair.share) }], (value) => percent(value)),
      rows: () => [["left", "right", "share of the variance"], ...importance.pairs.map((pair) => [...pair.names, pair.share])],
    }));
  }
  return made;
}

// SHAP values of all trials, a strip a dimension; from the lowest value of the dimension (pale) to the highest (strong).
function shap_figure(study) {
  const names = study.importance.dimensions.map((one) => one.name);
  const strips = names.map((name) => study.shap.find((one) => one.name === name)).filter((one) => one && one.rows.length > 0);
  const spread = (index) => ((index * 0.618034) % 1) - 0.5;
  const points = strips.flatMap((strip, row) => strip.rows.map(([level, value], index) =>
    ({ value: [100 * value, row + 0.6 * spread(index)], level: strip.labels.length > 1 ? level / (strip.labels.length - 1) : 0, text: `${strip.name} = ${strip.labels[level]}` })));
  return figure({
    title: "SHAP value of each trial", height: 70 + 40 * strips.length, canvas: points.length > 3000,
    finding: "Left of the middle a value lowers the cost of its trial, right of it it raises it; strong marks are large values",
    option: () => ({
      xAxis: value_axis("change of the cost, %", number),
      yAxis: { ...value_axis("", (value) => (Number.isInteger(value) && strips[value] ? strips[value].name : "")), min: -0.6, max: strips.length - 0.4, interval: 1, inverse: true,
        axisLabel: { color: theme().muted, formatter: () => "" }, splitLine: { show: false } },
      tooltip: { trigger: "item", formatter: ({ data }) => tip(data.text, `cost ${signed_percent(data.value[0] / 100)}`) },
      series: [{ type: "scatter", symbolSize: 6, data: points.map((point) => ({ ...point, itemStyle: { color: series_colour(0), opacity: 0.25 + 0.7 * point.level } })),
        markLine: { symbol: "none", silent: true, lineStyle: { color: theme().muted }, label: { show: false }, data: [{ xAxis: 0 }] } },
      { type: "scatter", silent: true, symbolSize: 0.1, data: strips.map((_, row) => [Math.min(...points.map((point) => point.value[0])), row]),
        label: { show: true, position: "right", formatter: ({ dataIndex }) => strips[dataIndex].name, color: theme().text, distance: 0, offset: [0, -14], fontSize: 11 } }],
    }),
    rows: () => [["dimension", "value", "SHAP value of log(cost)"], ...strips.flatMap((strip) => strip.rows.map(([level, value]) => [strip.name, strip.labels[level], value]))],
  });
}

function effect_figure(dimension, study) {
  const levels = dimension.values;
  const mean = levels.reduce((sum, level) => sum + level.partial_dependence, 0) / levels.length;
  const mean_effect = levels.reduce((sum, level) => sum + level.main_effect, 0) / levels.length;
  const relative = (value, middle) => 100 * (Math.exp(value - middle) - 1);
  const best = best_index(levels.map((level) => level.partial_dependence), (a, b) => a < b);
  const worst = best_index(levels.map((level) => level.partial_dependence));
  const gain = Math.exp(levels[worst].partial_dependence - levels[best].partial_dependence) - 1;
  return figure({
    title: `Effect of ${dimension.name}`, height: 210,
    finding: gain < 0.005 ? "Makes no difference" : `Best at ${levels[best].value}; ${levels[worst].value} costs ${percent(gain)} more`,
    option: () => ({
      legend: {},
      xAxis: name_axis(dimension.name, levels.map((level) => level.value)), yAxis: value_axis("", (value) => `${number(value)} %`),
      tooltip: { trigger: "axis", formatter: (points) => tip(`${dimension.name} = ${points[0].axisValue} (${plural(levels[points[0].dataIndex].trials, "trial")})`,
        ...points.map((point) => `${point.seriesName}: ${number(point.value)} % of cost`)) },
      series: [
        { type: "line", name: "partial dependence", symbolSize: 8, data: levels.map((level) => relative(level.partial_dependence, mean)), lineStyle: { width: 2, color: series_colour(0) }, itemStyle: { color: series_colour(0) } },
        { type: "line", name: "main effect", symbol: "triangle", symbolSize: 8, data: levels.map((level) => relative(level.main_effect, mean_effect)), lineStyle: { width: 1.5, type: "dashed", color: series_colour(1) }, itemStyle: { color: series_colour(1) } }],
    }),
    rows: () => [["value", "partial dependence of log(cost)", "main effect on log(cost)", "trials"], ...levels.map((level) => [level.value, level.partial_dependence, level.main_effect, level.trials])],
  });
}

function failures_figure(study) {
  const causes = Object.entries(study.failures).sort((a, b) => b[1] - a[1]);
  const total = causes.reduce((sum, [, number_of]) => sum + number_of, 0);
  return figure({
    title: "Failures by cause", height: 90 + 30 * causes.length,
    finding: `${total.toLocaleString("en")} of ${plural(study.trials.length, "trial")} failed, ${causes[0][1].toLocaleString("en")} of them ${outcome_names[causes[0][0]] || causes[0][0]}`,
    option: () => horizontal_bars(causes.map(([cause]) => outcome_names[cause] || cause), [{ name: "trials", values: causes.map(([, number_of]) => number_of) }], (value) => (Number.isInteger(value) ? String(value) : "")),
    rows: () => [["cause", "trials"], ...causes],
  });
}

function prediction_figure(study) {
  const goal = goal_of(study.objective);
  const trials = study.trials.filter((trial) => ran_well(trial) && has(trial.predicted));
  const values = trials.flatMap((trial) => [trial.predicted, trial.objective]);
  const ends = [Math.min(...values), Math.max(...values)];
  const { agreement } = study;
  return figure({
    title: `Predicted against ${study.kind}`, height: 300,
    finding: `Off by ${percent(agreement.mean_absolute_error)} on average over ${plural(agreement.trials, "trial")}; Kendall's tau of their order ${number(agreement.kendall_tau, 2)}`,
    option: () => ({
      xAxis: value_axis(study.kind, goal.text), yAxis: value_axis("predicted", goal.text, { gap: 62 }),
      tooltip: { trigger: "item", formatter: ({ data }) => (data.trial ? tip(`trial ${data.trial.trial}`, `${study.kind} ${goal.text(data.trial.objective)}`, `predicted ${goal.text(data.trial.predicted)}`, short_strategy(data.trial.strategy)) : "equal") },
      series: [{ type: "line", silent: true, showSymbol: false, data: ends.map((end) => [end, end]), lineStyle: { type: "dashed", color: theme().muted } },
        { type: "scatter", symbolSize: 7, itemStyle: { color: series_colour(0), opacity: 0.75 }, data: trials.map((trial) => ({ value: [trial.objective, trial.predicted], trial })) }],
    }),
    rows: () => [["trial", study.kind, "predicted"], ...trials.map((trial) => [trial.trial, trial.objective, trial.predicted])],
  });
}

function front_figure(study) {
  const [first, second] = study.goals.map((one) => one.name);
  const value = (trial) => [trial.objectives[first], trial.objectives[second]];
  const good = study.trials.filter((trial) => trial.outcome === "ok" && trial.objectives && value(trial).every(has));
  const front = [...study.front].sort((a, b) => value(a)[0] - value(b)[0]);
  return figure({
    title: `Pareto front: ${goal_of(first).label} and ${goal_of(second).label}`, height: 300,
    finding: `${plural(front.length, "trial")} of ${good.length.toLocaleString("en")} that no other beats in all objectives`,
    option: () => ({
      legend: {},
      xAxis: value_axis(goal_of(first).label, number), yAxis: value_axis(goal_of(second).label, number, { gap: 62 }),
      tooltip: { trigger: "item", formatter: ({ data }) => tip(`trial ${data.trial.trial}`, goal_of(first).text(data.value[0]), goal_of(second).text(data.value[1]), short_strategy(data.trial.strategy)) },
      series: [{ type: "scatter", name: "a trial", symbolSize: 6, itemStyle: { color: series_colour(5), opacity: 0.6 }, data: good.map((trial) => ({ value: value(trial), trial })) },
        { type: "line", name: "front", symbol: "diamond", symbolSize: 9, data: front.map((trial) => ({ value: value(trial), trial })), lineStyle: { color: series_colour(1) }, itemStyle: { color: series_colour(1) } }],
    }),
    rows: () => [["trial", first, second, "on the front"], ...good.map((trial) => [trial.trial, ...value(trial), front.some((one) => one.trial === trial.trial) ? "yes" : "no"])],
  });
}

function trial_table(study) {
  const goal = goal_of(study.objective);
  const varied = Object.keys(study.trials[0].strategy).filter((key) => new Set(study.trials.map((trial) => JSON.stringify(trial.strategy[key]))).size > 1);
  const others = study.goals.slice(1).map((one) => ({ name: goal_of(one.name).label, of: (trial) => (trial.objectives || {})[one.name] }));
  const has_key = (key) => study.trials.some((trial) => has(trial[key]));
  const columns = [
    { name: "trial", of: (trial) => trial.trial }, { name: "ended", of: (trial) => trial.ended },
    { name: "outcome", text: true, of: (trial) => outcome_names[trial.outcome] || trial.outcome,
      show: (value, trial) => element("span", { class: has(trial.objective) ? "good" : trial.outcome === "running" ? null : "bad" }, value) },
    { name: goal.label, of: (trial) => trial.objective, show: goal.text }, ...others,
    ...(has_key("predicted") ? [{ name: "predicted", of: (trial) => trial.predicted, show: goal.text }] : []),
    ...(has_key("peak_bytes") ? [{ name: "peak memory", of: (trial) => trial.peak_bytes, show: bytes }] : []),
    ...(has_key("missing_bytes") ? [{ name: "memory missing", of: (trial) => trial.missing_bytes, show: bytes }] : []),
    ...(new Set(study.trials.map((trial) => trial.devices)).size > 1 ? [{ name: "devices", of: (trial) => trial.devices }] : []),
    ...varied.map((key) => ({ name: key.replaceAll("_", " "), text: typeof study.trials[0].strategy[key] !== "number",
      of: (trial) => { const value = trial.strategy[key]; return typeof value === "boolean" ? (value ? "yes" : "no") : Array.isArray(value) ? value.join(" ") : value; } })),
    ...(study.trials.some((trial) => trial.message) ? [{ name: "message", text: true, long: true, of: (trial) => trial.message || "" }] : [])];
  const best = study.best ? study.best.trial : null;
  return table({ title: "All trials", columns, rows: study.trials, is_best: (trial) => trial.trial === best,
    sort: { column: 3, direction: study.goal.larger_is_better ? -1 : 1 } });
}

function study_tiles(study) {
  const goal = goal_of(study.objective);
  const failed = Object.values(study.failures).reduce((sum, one) => sum + one, 0);
  return element("div", { class: "tiles" }, study.best ? tile(`best (${study.kind})`, goal.text(study.best.objective)) : null,
    tile("trials", study.trials.length.toLocaleString("en")), tile("failed", failed.toLocaleString("en")), tile("strategies in the space", study.points.toLocaleString("en")),
    study.agreement.trials > 1 ? tile("predictions off by, mean", percent(study.agreement.mean_absolute_error)) : null);
}

const fewest_explained = 10; // below, a forest tells nothing

function show_study(study, is_named) {
  const explained = study.importance.dimensions.length > 0 && study.importance.trials >= fewest_explained;
  const failures_explained = study.failure_importance.dimensions.length > 0 && study.failure_importance.trials >= fewest_explained;
  const drawn = study.trials.length === 0 ? [] : [search_figure(study),
    study.regret.length > 0 ? regret_figure(study) : null,
    study.agreement.trials > 1 ? prediction_figure(study) : null,
    study.goals.length > 1 && study.front && study.front.length > 0 ? front_figure(study) : null,
    Object.keys(study.failures).length > 0 ? failures_figure(study) : null,
    ...(explained ? importance_figures(study.importance, "the objective", (value) => percent(value)) : []),
    explained ? shap_figure(study) : null,
    ...(explained ? study.importance.dimensions.filter((one) => one.values.length > 1).map((one) => effect_figure(one, study)) : []),
    ...(failures_explained ? importance_figures(study.failure_importance, "failure", (value) => `${number(100 * value)} points of probability`) : []),
  ].filter(Boolean);
  add_section(is_named ? `Study ${study.study}` : "Study", [
    study_tiles(study),
    study.best ? element("p", {}, element("b", {}, "Best: "), `trial ${study.best.trial}, ${short_strategy(study.best.strategy)}`) : element("p", { class: "note" }, "No trial has ended well yet."),
    element("div", { class: "grid" }, drawn.map((one) => one.element), study.trials.length > 0 ? trial_table(study) : null)]);
}
