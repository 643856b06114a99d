// Logging in with a key that stays in this browser: the challenge is signed here by WebCrypto (Ed25519).
// The seed is read from the field or the file, used once, and sent nowhere: what is sent is the signature.
"use strict";

const text = new TextEncoder();
const bytes = (x) => (typeof x === "string" ? text.encode(x) : new Uint8Array(x));
const join = (...parts) => Uint8Array.from(parts.flatMap((part) => [...bytes(part)]));
const encode = (x) => (Array.isArray(x) ? join("(", ...x.map(encode), ")") : join(`${bytes(x).length}:`, x)); // RFC 9804
const sha256 = async (x) => new Uint8Array(await crypto.subtle.digest("SHA-256", x));
const write = (x) => btoa(String.fromCharCode(...x)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const read = (s) => Uint8Array.from(atob(s.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const hex = (s) => Uint8Array.from(s.match(/../g), (pair) => parseInt(pair, 16));

const form = document.querySelector("#key-login");
const answer = document.querySelector("#answer-login");
const said = document.querySelector("#login-said");
const command = document.querySelector("#login-command");

function seedOf(octets) {
  const plain = new TextDecoder("latin1").decode(octets).trim();
  if (/^[0-9a-fA-F]{64}$/.test(plain)) return hex(plain);
  const at = plain.indexOf("(8:unsealed32:"); // a key file of Maia's that is not sealed
  if (plain.startsWith("(11:private-key") && at >= 0) return octets.slice(at + 14, at + 46);
  if (plain.startsWith("(11:private-key")) throw new Error("This key is sealed. Use `maia login`, which asks for its passphrase.");
  throw new Error("This is no private key: 64 hexadecimal digits, or a key file that is not sealed.");
}

async function sign(seed, wish) {
  const pkcs8 = join(Uint8Array.from([48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32]), seed);
  const secret = await crypto.subtle.importKey("pkcs8", pkcs8, "Ed25519", true, ["sign"]);
  const own = read((await crypto.subtle.exportKey("jwk", secret)).x);
  const nonce = crypto.getRandomValues(new Uint8Array(32));
  // The host is what this browser speaks to, not what the page says.
  const bound = await sha256(encode(["maia/1 console", read(form.dataset.challenge), location.host, wish]));
  const body = join("maia/1 authentication\0", encode(["nonces", nonce, bound, hex(form.dataset.console)]));
  return [own, nonce, new Uint8Array(await crypto.subtle.sign("Ed25519", secret, body))].map(write).join(".");
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  said.textContent = "";
  try {
    const file = form.elements.file.files[0];
    if (file && file.size > 4096) throw new Error("This file is too large for a key.");
    const seed = seedOf(file ? new Uint8Array(await file.arrayBuffer()) : text.encode(form.elements.seed.value));
    const wish = form.elements.changes.checked ? "change" : "look";
    answer.elements.answer.value = await sign(seed, wish);
    answer.elements.wish.value = wish;
    form.reset();
    answer.submit();
  } catch (error) {
    said.textContent = error.name === "NotSupportedError" ? "This browser cannot sign with Ed25519. Use `maia login`." : error.message;
  }
});

for (const choice of answer.querySelectorAll("select[name=wish]")) {
  choice.addEventListener("change", () => { command.textContent = command.textContent.replace(/:(look|change):/, `:${choice.value}:`); });
}
