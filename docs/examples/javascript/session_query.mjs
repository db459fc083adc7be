// A client for the wire protocol: requests by id, answers in any order, large answers in parts.
import { MinimalWebSocket } from "./minimal_websocket.mjs";

const WebSocketClass = globalThis.WebSocket ?? MinimalWebSocket; // Node 22 and browsers have one

/** An `error` answer. `code` is for programs, `message` for people, `abort` and `retryAfterMs` may be there. */
export class ServerError extends Error {
  constructor({ code, message, abort, retry_after_ms }) {
    super(message);
    Object.assign(this, { code, abort, retryAfterMs: retry_after_ms });
  }
}

export class SessionQuery {
  #socket;
  #lastId = 0;
  #waiting = new Map(); // request id → {resolve, reject}
  #parts = new Map(); // request id → pieces of its answer so far
  #hello; // {resolve, reject} of the welcome

  /** Connect and say hello. Rejects with a ServerError when the token is refused. */
  static connect(url, token, name = "javascript") {
    return new Promise((resolve, reject) => {
      const client = new SessionQuery();
      client.#hello = { resolve: () => resolve(client), reject };
      client.#socket = new WebSocketClass(url, "session-query.v1.json");
      client.#socket.onopen = () =>
        client.#send({ type: "hello", token, client: { name, version: "1" } });
      client.#socket.onmessage = ({ data }) => client.#receive(JSON.parse(data));
      client.#socket.onerror = () => client.#end(new Error(`no connection to ${url}`));
      client.#socket.onclose = ({ code, reason }) => client.#end(new Error(`closed: ${code} ${reason}`));
    });
  }

  /** Send one request; resolves with its answer, rejects with a ServerError or when the line is lost. */
  request(type, fields = {}) {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#send({ type, id, ...fields });
    });
  }

  close() {
    this.#socket.close(1000);
  }

  #send(message) {
    this.#socket.send(JSON.stringify(message));
  }

  #receive(message) {
    if (message.type === "part") return this.#receivePart(message);
    if (message.type === "welcome") {
      this.welcome = message;
      return this.#hello.resolve();
    }
    if (message.type === "progress") return this.onprogress?.(message);
    if (message.type === "goaway") return this.ongoaway?.(message);
    const asked = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.type !== "error") asked?.resolve(message);
    else if (asked) asked.reject(new ServerError(message));
    else this.#end(new ServerError(message)); // about the connection: it closes next
  }

  #receivePart({ id, data, last }) {
    const pieces = this.#parts.get(id) ?? [];
    pieces.push(data);
    this.#parts.set(id, pieces);
    if (!last) return;
    this.#parts.delete(id);
    this.#receive(JSON.parse(pieces.join("")));
  }

  #end(error) {
    this.#hello.reject(error); // does nothing after the welcome
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
