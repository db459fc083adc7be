// The part of WebSocket (RFC 6455) that the client needs, for Node before 22: text frames over node:http.
import { randomBytes } from "node:crypto";
import http from "node:http";
import https from "node:https";

const TEXT = 1, CLOSE = 8, PING = 9, PONG = 10;

export class MinimalWebSocket {
  #socket;
  #received = Buffer.alloc(0);
  #message = []; // payloads of a message that comes in several frames
  #closed = false;

  constructor(url, protocol) {
    const request = (url.startsWith("wss:") ? https : http).request(url.replace(/^ws/, "http"), {
      headers: {
        Connection: "Upgrade",
        Upgrade: "websocket",
        "Sec-WebSocket-Key": randomBytes(16).toString("base64"),
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": protocol,
      },
    });
    request.on("error", () => this.onerror?.({}));
    request.on("response", () => this.onerror?.({})); // an answer without upgrade is a refusal
    request.on("upgrade", (_, socket, head) => {
      this.#socket = socket;
      socket.on("data", (data) => this.#take(data));
      socket.on("error", () => this.#end(1006, ""));
      socket.on("close", () => this.#end(1006, ""));
      this.onopen?.({});
      if (head.length) this.#take(head);
    });
    request.end();
  }

  send(text) {
    this.#frame(TEXT, Buffer.from(text));
  }

  close(code = 1000) {
    this.#frame(CLOSE, Buffer.from([code >> 8, code & 255]));
  }

  #frame(opcode, payload) {
    const size = payload.length;
    let head;
    if (size < 126) {
      head = Buffer.from([0x80 | opcode, 0x80 | size]);
    } else if (size < 65536) {
      head = Buffer.from([0x80 | opcode, 0x80 | 126, size >> 8, size & 255]);
    } else {
      head = Buffer.alloc(10);
      head[0] = 0x80 | opcode;
      head[1] = 0x80 | 127;
      head.writeBigUInt64BE(BigInt(size), 2);
    }
    const mask = randomBytes(4); // clients mask what they send
    const masked = Buffer.from(payload, 0, size);
    for (let i = 0; i < size; i++) masked[i] = payload[i] ^ mask[i & 3];
    this.#socket.write(Buffer.concat([head, mask, masked]));
  }

  #take(data) {
    this.#received = Buffer.concat([this.#received, data]);
    for (;;) {
      const bytes = this.#received;
      if (bytes.length < 2) return;
      const length = bytes[1] & 127;
      const start = length === 126 ? 4 : length === 127 ? 10 : 2;
      if (bytes.length < start) return;
      let size = length;
      if (length === 126) size = bytes.readUInt16BE(2);
      if (length === 127) size = Number(bytes.readBigUInt64BE(2));
      if (bytes.length < start + size) return;
      this.#received = bytes.subarray(start + size);
      this.#handle(bytes[0] & 15, bytes[0] >= 0x80, bytes.subarray(start, start + size));
    }
  }

  #handle(opcode, isLast, payload) {
    if (opcode === PING) return this.#frame(PONG, payload);
    if (opcode === PONG) return;
    if (opcode === CLOSE) {
      const code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
      if (!this.#closed) this.#frame(CLOSE, payload.subarray(0, 2));
      this.#end(code, payload.subarray(2).toString());
      return this.#socket.end();
    }
    this.#message.push(payload);
    if (!isLast) return;
    const text = Buffer.concat(this.#message).toString();
    this.#message = [];
    this.onmessage?.({ data: text });
  }

  #end(code, reason) {
    if (this.#closed) return;
    this.#closed = true;
    this.onclose?.({ code, reason });
  }
}
