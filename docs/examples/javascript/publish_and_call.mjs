// Publish a session, call a tool for it, and read an event back. Node 18 or newer, no packages.
//
//   SESSION_QUERY_TOKEN=sq_… node publish_and_call.mjs ws://127.0.0.1:7464/
//
// The token: session-query token create my-runtime --role runtime --workspace /home/ada/webshop
import { SessionQuery } from "./session_query.mjs";

const url = process.argv[2] ?? "ws://127.0.0.1:7464/";
const workspace = process.env.SESSION_QUERY_WORKSPACE ?? "/home/ada/webshop";
const now = Date.now();

const message = (text, time) => ({
  type: "user/message",
  time,
  surfaceOp: "append",
  data: { id: `m${time}`, role: "user", source: { kind: "user" }, content: [{ type: "text", text }] },
});

const client = await SessionQuery.connect(url, process.env.SESSION_QUERY_TOKEN, "javascript-example");
console.log(`connected to ${client.welcome.server.name}, protocol ${client.welcome.protocol}`);

// A session is a header and its events. Attaching again later goes on where the log ends (next_seq).
const session = { version: 0, id: `javascript-${now}`, createdAt: now, cwd: workspace };
const attached = await client.request("attach", { session });
const events = [message("Why does the checkout of large carts time out?", now)];
const appended = await client.request("append", {
  session_id: session.id,
  from_seq: attached.next_seq,
  events,
});
console.log(`stored through event ${appended.through_seq}`); // it now survives a crash of the service

// The caller of a tool is named by the runtime, never by the model: here, the workspace.
const found = await client.request("call", {
  workspace,
  tool: "session_search",
  arguments: { query: "checkout of large carts" },
});
console.log(found.text);

const read = await client.request("call", {
  workspace,
  tool: "session_event_read",
  arguments: { session_id: session.id, seq: 0 },
});
console.log(read.text);

try {
  await client.request("call", { workspace, tool: "session_trace", arguments: { session_id: "nobody" } });
} catch (error) {
  console.log(`refused: ${error.code}`); // the same for a session that is missing and for one that is hidden
}

await client.request("detach", { session_id: session.id });
client.close();
