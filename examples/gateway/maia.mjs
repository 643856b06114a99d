// A client of a Maia gateway in plain JavaScript: runs in browsers and in Node. Ed25519 by WebCrypto, nothing else.
//   const maia = await Maia.connect("ws://127.0.0.1:8473", { seed, broker });
// `seed` and `broker` are 32 octets each: the client's private key and the broker's public key, known beforehand.
// A browser does not show its TLS certificate to scripts, so over wss:// it relies on its own check of it, and `channel`
// is what the broker is bound to: "tls-server-end-point:" and the digest of its certificate.
const text = new TextEncoder();
const bytes = (x) => (typeof x === "string" ? text.encode(x) : new Uint8Array(x));
const join = (...parts) => Uint8Array.from(parts.flatMap((part) => [...bytes(part)]));
const encode = (x) => (Array.isArray(x) ? join("(", ...x.map(encode), ")") : join(`${bytes(x).length}:`, x)); // RFC 9804
const sha256 = async (x) => new Uint8Array(await crypto.subtle.digest("SHA-256", x));
const random = () => crypto.getRandomValues(new Uint8Array(32));
const write = (x) => btoa(String.fromCharCode(...x)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const read = (s) => Uint8Array.from(atob(s.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const keyId = (key) => sha256(encode(["public-key", ["ed25519", key]]));
const answers = (role, nonce, challenge, channel, audience) =>
  sha256(encode(["maia/1 handshake", role, challenge, channel])).then((bound) =>
    join("maia/1 authentication\0", encode(["nonces", nonce, bound, audience])));

export class Refused extends Error {
  constructor(frame) { super(`${frame.code} (${frame.status}) ${frame.detail ?? ""}`); Object.assign(this, frame); }
}

export class Maia {
  static async connect(url, { seed, broker, channel = "loopback", credentials = [] }) {
    const pkcs8 = join(Uint8Array.from([48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32]), seed);
    const secret = await crypto.subtle.importKey("pkcs8", pkcs8, "Ed25519", true, ["sign"]);
    const own = read((await crypto.subtle.exportKey("jwk", secret)).x);
    const peer = await crypto.subtle.importKey("raw", broker, "Ed25519", false, ["verify"]);
    const socket = new WebSocket(`${url}/v1/connect`, "maia.json.v1");
    const maia = new Maia(socket);
    await new Promise((go, stop) => { socket.onopen = go; socket.onerror = () => stop(new Error("no gateway there")); });
    const first = random(), mine = random();
    maia.say("hello", { key: write(own), nonce: write(first) });
    const offer = await maia.hear("challenge");
    const signed = await answers("server", read(offer.nonce), first, channel, await keyId(own));
    // Nothing is proven to a broker that has not proven its own key over this channel.
    if (!(await crypto.subtle.verify("Ed25519", peer, read(offer.proof), signed))) { socket.close(); throw new Error("not that broker"); }
    const body = await answers("client", mine, read(offer.challenge), channel, await keyId(broker));
    const proof = new Uint8Array(await crypto.subtle.sign("Ed25519", secret, body));
    maia.say("prove", { own_nonce: write(mine), proof: write(proof), credentials: credentials.map(write) });
    maia.client = (await maia.hear("welcome")).client;
    return maia;
  }

  constructor(socket) {
    Object.assign(this, { socket, number: 0, waiting: new Map(), followed: new Map(), heard: [], listener: null });
    socket.onmessage = ({ data }) => this.take(JSON.parse(data));
    socket.onclose = () => this.take({ op: "problem", status: 503, code: "PEER_UNAVAILABLE", detail: "the connection is gone" });
  }
  say(op, fields) { this.socket.send(JSON.stringify({ op, ...fields })); }
  async hear(op) {
    const frame = this.heard.shift() ?? (await new Promise((go) => { this.listener = go; }));
    if (frame.op !== op) throw new Refused(frame);
    return frame;
  }
  take(frame) {
    const followed = this.followed.get(frame.name), waits = this.waiting.get(frame.id);
    if (frame.op === "events" && followed) {
      for (const row of frame.rows) followed.callback(row);
      followed.after = frame.after; // go on from here another time
      this.say("credit", { name: frame.name, events: frame.rows.length });
    } else if (frame.op === "ended" && followed) followed.ended?.(new Refused(frame));
    else if (waits) { this.waiting.delete(frame.id); frame.op === "problem" ? waits.stop(new Refused(frame)) : waits.go(frame); }
    else if (this.client && frame.op === "problem") for (const one of this.waiting.values()) one.stop(new Refused(frame));
    else if (this.listener) { this.listener(frame); this.listener = null; }
    else this.heard.push(frame);
  }
  ask(op, fields) {
    const id = ++this.number;
    return new Promise((go, stop) => { this.waiting.set(id, { go, stop }); this.say(op, { id, ...fields }); });
  }
  advertise(type, more = {}) { return this.ask("advertise", { type, ...more }); }
  unadvertise(type) { return this.ask("unadvertise", { type }); }
  publish(rows, type, more = {}) { return this.ask("publish", { rows, type, ...more }); }
  async subscribe(type, name, callback, { where = "", after = "", credit = 100, ended } = {}) {
    const followed = { callback, ended, after };
    this.followed.set(name, followed);
    const answer = await this.ask("subscribe", { type, name, where, after, credit });
    followed.after ||= answer.after;
    return followed;
  }
  unsubscribe(name) { this.followed.delete(name); return this.ask("unsubscribe", { name }); }
  close() { this.socket.close(); }
}
