// Pages work without this script. With it, a chosen value is kept at once: the address and the picture follow.
"use strict";
for (const form of document.querySelectorAll("form.item")) {
  form.addEventListener("change", async (event) => {
    if (event.target.type !== "radio") return;
    for (const radio of form.querySelectorAll("input[type=radio]")) radio.toggleAttribute("checked", radio.checked);
    const sent = new URLSearchParams(new FormData(form));
    const reply = await fetch(location.href, { method: "POST", body: sent });
    const current = new URLSearchParams(new FormData(form)).toString();
    if (!reply.ok || current !== sent.toString()) return;
    history.replaceState(null, "", reply.url);
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    form.querySelector("img.picture").src = page.querySelector("img.picture").getAttribute("src");
  });
}
// On an episode, the arrow keys follow the links to the step before and after.
const links = { ArrowLeft: ".steps a[rel=prev]", ArrowRight: ".steps a[rel=next]" };
addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || !(event.key in links)) return;
  if (event.target.closest("input, select, textarea")) return;
  // One document may hold many steps, of which one is visible.
  const found = [...document.querySelectorAll(links[event.key])];
  found.find((link) => link.offsetParent)?.click();
});
// A training run in progress: what its page shows is fetched again every few seconds.
const REFRESH_MILLISECONDS = 4000;
async function refresh() {
  const shown = document.querySelector("main[data-live]");
  if (!shown) return;
  if (!document.hidden) {
    const reply = await fetch(location.href).catch(() => null);
    const text = await reply?.text();
    const next = text && new DOMParser().parseFromString(text, "text/html");
    if (next?.querySelector("main.watch")) {
      document.title = next.title;
      shown.replaceWith(next.querySelector("main"));
    }
  }
  setTimeout(refresh, REFRESH_MILLISECONDS);
}
setTimeout(refresh, REFRESH_MILLISECONDS);
