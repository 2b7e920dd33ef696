// A person's browser on the site: shops, goes back, reloads, replays, at three widths, in light and in dark.
//
// Every page must have no console error, ask no other host for anything, have no violation that axe-core finds, and fit
// its window. `clients.sh` sets WEBSHOP_BIN, WEBSHOP_EPISODES and CHROMIUM; an argument names a folder for screenshots.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const axeSource = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const versionOf = (name) => require(`${name}/package.json`).version;
const { WEBSHOP_BIN, WEBSHOP_EPISODES, CHROMIUM } = process.env;
const pictures = process.argv[2];
if (pictures) mkdirSync(pictures, { recursive: true });

const episodes = readFileSync(WEBSHOP_EPISODES, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
// An episode of the oracle that chooses an option, if there is one.
const bought = episodes.filter((episode) => episode.reward === 1);
const episode = bought.find(({ turns }) => turns.length > 3) ?? bought[0];

/** A server on a free port, and its addresses. */
async function serve() {
  const flags = ["serve", "--port", "0", "--replay", WEBSHOP_EPISODES];
  const server = spawn(WEBSHOP_BIN, flags, { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: server.stdout })) return { server, site: JSON.parse(line).site };
  throw new Error("the server printed no address");
}

/** The checks of the page that is shown. */
async function look(page, name, problems) {
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join("; ")}`);
  assert.deepEqual(found, [], `${name}: axe-core`);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(overflow, 0, `${name}: wider than its window`);
  assert.deepEqual(problems, [], name);
  if (pictures) await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
}

/** Takes one recorded action on the page. */
async function act(page, action) {
  const [, verb, argument] = action.match(/^(search|click)\[(.*)\]$/s);
  if (verb === "search") {
    await page.fill("#search_input", argument);
    await Promise.all([page.waitForNavigation(), page.press("#search_input", "Enter")]);
    return;
  }
  const value = argument.replaceAll("\\", "\\\\").replaceAll('"', '\\"');
  const radio = page.locator(`input[type=radio][value="${value}" i]`);
  if (await radio.count()) {
    // The page keeps a chosen value by itself: its address follows.
    const kept = page.waitForResponse((response) => response.request().method() === "POST");
    await radio.first().check({ force: true });
    await kept;
    return;
  }
  const button = page.locator(`.btn[value="${value}" i], .product-link:text-is("${value.toUpperCase()}"), .product-link[value="${value}" i]`);
  await Promise.all([page.waitForNavigation(), button.first().click()]);
}

async function shopAndReplay(browser, site, width, colorScheme) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  const page = await context.newPage();
  const [problems, origin] = [[], new URL(site).origin];
  page.on("console", (message) => message.type() === "error" && problems.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => problems.push(`script: ${error}`));
  page.on("request", (request) => new URL(request.url()).origin !== origin && problems.push(`asks ${request.url()}`));
  const check = (name) => look(page, `${name}-${width}-${colorScheme}`, problems);

  await page.goto(site);
  await check("entrance");
  await page.goto(`${site}fixed_${episode.goal}`);
  await check("search");
  const shown = [];
  for (const [number, { action }] of episode.turns.entries()) {
    await act(page, action);
    shown.push(page.url());
    await check(`turn-${number + 1}`);
  }
  assert.match(await page.locator("#reward").innerText(), /1\.0/, "the purchase earns 1");
  // Back and reload show the pages that were shown: their addresses say everything.
  const text = () => page.locator("main, body").first().innerText();
  await page.goBack();
  const before = await text();
  await page.reload();
  assert.equal(await text(), before, "a reloaded page is the same");
  await page.goForward();
  assert.match(await page.locator("#reward").innerText(), /1\.0/, "forward to the purchase again");

  await page.goto(`${site}replay`);
  await check("replays");
  await Promise.all([page.waitForNavigation(), page.locator("main a[href^='/replay/']").first().click()]);
  await check("replay");
  const [step] = [page.url()];
  await Promise.all([page.waitForURL((url) => url.href !== step), page.keyboard.press("ArrowRight")]);
  await check("replay-step");
  await context.close();
}

/** The file of `webshop replay --html`, from the disk: it asks for nothing but itself. */
async function readFromDisk(browser, file, width, colorScheme) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  const page = await context.newPage();
  const [problems, address] = [[], pathToFileURL(file).href];
  page.on("console", (message) => message.type() === "error" && problems.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => problems.push(`script: ${error}`));
  const isOfTheFile = (url) => url.split("#")[0] === address || url.startsWith("data:") || url === "about:srcdoc";
  page.on("request", (request) => isOfTheFile(request.url()) || problems.push(`asks ${request.url()}`));
  const check = (name) => look(page, `file-${name}-${width}-${colorScheme}`, problems);

  await page.goto(address);
  await check("list");
  await page.selectOption("select[name=success]", "yes");
  const successes = episodes.filter(({ reward }) => reward === 1).length;
  assert.equal(await page.locator("tbody tr:visible").count(), successes, "the filter by success");
  await page.locator("tbody tr:visible a").first().click();
  const { turns } = episodes[Number(new URL(page.url()).hash.slice(2))];
  for (const [step, { action }] of [...turns.entries(), [turns.length, {}]]) {
    const shown = page.locator(".replay:visible");
    assert.equal(await shown.locator("h2").innerText(), `Step ${step} of ${turns.length}`);
    if (action) assert.equal(await shown.locator(".action").innerText(), action);
    // A picture is drawn from the file.
    const drawn = page.frameLocator(".replay:visible iframe").locator("img");
    if (await drawn.count()) assert.ok(await drawn.first().evaluate(({ complete, naturalWidth }) => complete && naturalWidth > 0));
    await check(`step-${step}`);
    await page.keyboard.press("ArrowRight");
  }
  await page.keyboard.press("ArrowLeft");
  assert.match(page.url(), new RegExp(`step=${turns.length - 1}$`), "back by keyboard");
  await context.close();
}

/** Every step of that file is there without scripts, at its address. */
async function readWithoutScripts(browser, file) {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  for (const [number, { turns }] of episodes.entries()) {
    for (const step of turns.keys()) {
      await page.goto("about:blank");
      await page.goto(`${pathToFileURL(file).href}#/${number}?step=${step}`);
      const shown = page.locator(".replay").filter({ visible: true });
      assert.equal(await shown.locator(".action").innerText(), turns[step].action);
    }
  }
  await context.close();
}

const { server, site } = await serve();
const folder = mkdtempSync(join(tmpdir(), "webshop-"));
const file = join(folder, "page.html");
execFileSync(WEBSHOP_BIN, ["replay", WEBSHOP_EPISODES, "--html", file]);
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  let n = 0;
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [390, 1200, 1600]) {
      await shopAndReplay(browser, site, width, colorScheme);
      await readFromDisk(browser, file, width, colorScheme);
      n += 1;
    }
  }
  await readWithoutScripts(browser, file);
  const versions = `playwright-core ${versionOf("playwright-core")}, axe-core ${versionOf("axe-core")}`;
  console.log(`${versions}, Chromium ${browser.version()}: ${n} visits without a console error, a foreign request or a violation`);
} finally {
  await browser.close();
  server.kill("SIGTERM");
  rmSync(folder, { recursive: true });
}
