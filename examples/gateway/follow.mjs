// Publishes the rows that it is given and prints what it is delivered: node --experimental-websocket follow.mjs …
// MAIA_SEED (64 hexadecimal digits) is the client's private key.
import { Maia } from "./maia.mjs";

const [url, broker, type, name, rows = "[]", limit = "1"] = process.argv.slice(2);
const hex = (digits) => Uint8Array.from(digits.match(/../g), (pair) => parseInt(pair, 16));
try {
  const maia = await Maia.connect(url, { seed: hex(process.env.MAIA_SEED), broker: hex(broker) });
  let left = Number(limit);
  const done = new Promise((go) => {
    const seen = (event) => { console.log(JSON.stringify(event)); if (--left === 0) go(); };
    maia.subscribe(type, name, seen).then((found) => (left ? found : go()), (error) => { console.error(error.message); process.exit(3); });
  });
  if (rows !== "[]") console.error(JSON.stringify(await maia.publish(JSON.parse(rows), type)));
  await done;
  maia.close();
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
