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
