// Opens a page of `ridgeline report` in a real browser, as a reader would.
//
//   node check_page.mjs PACKAGES RIDGELINE
//
// PACKAGES: the node_modules folder with playwright-core; RIDGELINE: the program. Exits with 77 where there is no browser.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [packages, ridgeline] = process.argv.slice(2);
const browsers = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/google-chrome"];
const executablePath = browsers.find(existsSync);
if (!executablePath || !existsSync(join(packages, "playwright-core"))) {
  console.log(`skipped: needs playwright-core in ${packages} and one of ${browsers.join(", ")}; scripts/set-up --tests installs them`);
  process.exit(77);
}
const { chromium } = createRequire(join(packages, "x.js"))("playwright-core");
const folder = mkdtempSync(join(tmpdir(), "ridgeline-page-"));
process.chdir(folder);

// A name that would be a script if a page took it for markup.
const hostile = "</script><img src=x onerror=alert(1)>";

function write_run(name, steps, factor) {
  mkdirSync(name, { recursive: true });
  const lines = [];
  for (let step = 1; step <= steps; step += 1) {
    lines.push(JSON.stringify({ step, tokens: step * 1000, loss: 2 + factor / step + (step === 700 ? 3 : 0), grad_norm: 1 + 1 / step, lr: 1e-3,
      step_seconds: 0.5 * factor, tokens_per_second: 2000 / factor, tflops_per_device: 1.5, mfu: 0.3, peak_memory: 1 << 24,
      ...(step % 100 === 0 ? { validation_loss: 2.1 + factor / step } : {}) }));
  }
  writeFileSync(join(name, "metrics.jsonl"), lines.join("\n") + "\n");
}

function write_study() {
  writeFileSync("study.toml", `model = "gpt-22b"\nmachine = "frontier"\ndevices = 64\nglobal_batch = 128\n[space]\nrecompute = "selective, full"\n` +
    `[objective]\nkind = "simulate"\ngoals = ["device_tflops", "tokens_per_node_hour"]\n[budget]\ntrials = 40\n`);
  execFileSync(ridgeline, ["tune", "study.toml"], { stdio: "ignore" });
}

async function open(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) faults.push(message.text()); });
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("dialog", (dialog) => { faults.push("a dialog"); dialog.dismiss(); });
  page.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url())) faults.push(`asked for ${request.url()}`); });
  await page.goto(`file://${join(folder, file)}`);
  await page.waitForSelector("html[data-ready=true]", { timeout: 60_000 });
  return { page, faults };
}

// Every figure has marks: paths in a vector, or pixels that are not all alike.
async function undrawn(page) {
  return page.$$eval("figure", (all) => all.filter((one) => {
    const canvas = one.querySelector(".plot canvas");
    if (!canvas) return one.querySelectorAll(".plot svg path").length < 4;
    const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    return pixels.every((pixel) => pixel === pixels[0]);
  }).map((one) => one.querySelector("h3").textContent));
}

async function check_runs(browser) {
  write_run("first", 1000, 1);
  write_run(hostile.replaceAll("/", ""), 5000, 2);
  execFileSync(ridgeline, ["report", "first", hostile.replaceAll("/", ""), "--output", "runs.html"], { stdio: "ignore" });
  const { page, faults } = await open(browser, "runs.html");
  assert.deepEqual(await undrawn(page), []);
  const titles = await page.$$eval("figure h3", (all) => all.map((one) => one.textContent));
  for (const title of ["Loss", "Gradient norm", "Learning rate", "MFU"]) assert.ok(titles.includes(title), title);
  assert.equal(await page.locator("img").count(), 0);
  assert.match(await page.textContent("h1"), /img src=x/);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("button[aria-label='Data of Loss as CSV']")]);
  assert.equal(download.suggestedFilename(), "loss.csv");
  await page.selectOption("select >> nth=0", "tokens");
  await page.uncheck(".legend input >> nth=0");
  await page.click("#theme");
  assert.equal(await page.getAttribute("html", "data-theme"), "dark");
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.isVisible(".controls"), false);
  assert.ok((await page.pdf()).length > 20_000);
  assert.deepEqual(faults, []);
}

async function check_study(browser) {
  write_study();
  execFileSync(ridgeline, ["report", "study.toml", "--output", "study.html"], { stdio: "ignore" });
  const { page, faults } = await open(browser, "study.html", { colorScheme: "dark" });
  assert.equal(await page.getAttribute("html", "data-theme"), "dark");
  assert.deepEqual(await undrawn(page), []);
  const findings = await page.$$eval("figure .finding", (all) => all.map((one) => one.textContent));
  assert.match(findings[0], /^Best [\d.]+ TFLOP\/s; within 1 % of it after \d+ trials? of 40/);
  const numbers = () => page.$$eval("tbody tr td:first-child", (cells) => cells.map((cell) => Number(cell.textContent)).filter(Number.isFinite));
  await page.click("thead button >> nth=0");
  const rising = await numbers();
  assert.deepEqual(rising.slice(0, 3), [1, 2, 3]);
  await page.click("thead button >> nth=0");
  assert.equal((await numbers())[0], 40);
  assert.equal(await page.getAttribute("thead th >> nth=0", "aria-sort"), "descending");
  assert.deepEqual(faults, []);
}

async function check_long_run(browser) {
  write_run("long", 100_000, 1);
  execFileSync(ridgeline, ["report", "long", "--output", "long.html"], { stdio: "ignore" });
  assert.ok(statSync("long.html").size < 5e6);
  const { page, faults } = await open(browser, "long.html");
  assert.deepEqual(await undrawn(page), []);
  assert.deepEqual(faults, []);
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  await check_runs(browser);
  await check_study(browser);
  await check_long_run(browser);
  console.log("pages of runs, of a study and of a long run: drawn, quiet, sortable, printable");
} finally {
  await browser.close();
  process.chdir(tmpdir());
  rmSync(folder, { recursive: true });
}
