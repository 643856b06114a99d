// What an open page does by itself: the strip of numbers is renewed, and a change of a choice asks again.
// Text is only ever put in as text; the page's rules for browsers allow nothing else.
"use strict";

const SECONDS = 5;
const strip = document.querySelector("[data-strip]");

async function renew() {
  if (document.hidden) return;
  let answer;
  try {
    answer = await fetch("/live/strip", { credentials: "same-origin", redirect: "error" });
  } catch {
    strip.dataset.state = "gone";
    set("state", "The console does not answer");
    return;
  }
  if (answer.status === 401) {
    location.assign("/login");
    return;
  }
  if (!answer.ok) return;
  const now = await answer.json();
  strip.dataset.state = now.calm ? "calm" : "attention";
  set("state", now.calm ? "All is well" : "Needs attention");
  for (const name of ["at", "problems", "lanes", "commits", "lag", "parked", "published", "delivered", "refused"]) {
    set(name, typeof now[name] === "number" ? now[name].toLocaleString("en-GB") : now[name]);
  }
}

function set(name, text) {
  for (const place of strip.querySelectorAll(`[data-live="${name}"]`)) {
    if (place.textContent !== String(text)) place.textContent = text; // so that readers are told only what changed
  }
}

if (strip) setInterval(renew, SECONDS * 1000);

for (const choice of document.querySelectorAll("select[data-ask]")) {
  choice.addEventListener("change", () => choice.form.requestSubmit());
}

const panel = document.querySelector("[data-focus]");
if (panel) panel.focus({ preventScroll: matchMedia("(min-width: 70rem)").matches });
