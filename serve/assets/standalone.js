// Recorded episodes as one document: filters of the list, and the shop's pages in frames.
"use strict";
const { episodes, pictures } = JSON.parse(document.getElementById("data").textContent);
const style = document.querySelector("style").textContent;

/** The page of a template in a frame, which shields its style from that of the document. */
function frame({ title, innerHTML }) {
  const found = document.createElement("iframe");
  found.className = "frame";
  found.title = title;
  // No script runs there; of the same origin it needs no process of its own.
  found.setAttribute("sandbox", "allow-same-origin");
  const drawn = (_, number) => `src="data:image/svg+xml,${encodeURIComponent(pictures[number])}"`;
  const body = innerHTML.replace(/src="(\d+)"/g, drawn);
  found.srcdoc = `<!doctype html><html lang="en"><title>${title}</title><style>${style}</style>${body}`;
  return found;
}

/** Draws the page of the step that is visible. */
function draw() {
  const step = document.querySelector(".replay:target, .recording:target > .replay");
  const template = step?.querySelector("template");
  template?.replaceWith(frame(template));
}
addEventListener("hashchange", draw);
// Before that event no element is the target of the address.
addEventListener("load", draw);

const form = document.querySelector("form.filters");
const rows = [...document.querySelectorAll(".replays tbody tr")];

/** Whether the filters admit an episode, as those of the server do. */
function admits({ policy, success, failure, goal, instruction, reward }, wanted) {
  const words = wanted.goal.trim();
  const isForGoal = /^\+?\d+$/.test(words) ? goal === Number(words) : instruction.toLowerCase().includes(words.toLowerCase());
  return (
    (!wanted.policy || policy === wanted.policy) &&
    (!wanted.success || success === (wanted.success === "yes")) &&
    (!wanted.failure || failure === wanted.failure) &&
    isForGoal &&
    reward >= Number(wanted.least)
  );
}

/** Shows the rows that the filters admit. */
function filter() {
  const wanted = Object.fromEntries(new FormData(form));
  const shown = [];
  for (const row of rows) {
    const episode = episodes[row.querySelector("a").hash.slice("#/".length)];
    row.hidden = !admits(episode, wanted);
    if (!row.hidden) shown.push(episode);
  }
  const successes = shown.filter(({ success }) => success).length;
  const mean = shown.reduce((sum, { reward }) => sum + reward, 0) / Math.max(shown.length, 1);
  const count = `${shown.length} of ${rows.length} episodes, ${successes} successful, mean reward ${mean.toFixed(3)}`;
  document.querySelector(".replays .count").textContent = count;
}
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", filter);
filter();
