// Drives `agentd acp` with the reference SDK of the Agent Client Protocol. Prints each step that went well.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const { ACP_SDK, AGENTD, WORK } = process.env;
const { main } = JSON.parse(readFileSync(join(ACP_SDK, "package.json"), "utf8"));
const { client, methods, ndJsonStream } = await import(pathToFileURL(join(ACP_SDK, main)).href);
const session = methods.agent.session;

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function outside(what) {
  console.log(what);
  assert.equal((await answers.next()).value, "done");
}

class Editor {
  updates = [];
  waiting = [];
  permission = () => ({ outcome: { outcome: "cancelled" } });

  constructor(name, args) {
    this.child = spawn(AGENTD, ["acp", ...args], { stdio: ["pipe", "pipe", "inherit"] });
    const app = client({ name })
      .onNotification(methods.client.session.update, ({ params }) => {
        this.updates.push(params.update);
        this.waiting = this.waiting.filter((look) => !look());
      })
      .onRequest(methods.client.session.requestPermission, (request) => this.permission(request));
    const stream = ndJsonStream(Writable.toWeb(this.child.stdin), Readable.toWeb(this.child.stdout));
    this.connection = app.connect(stream);
    this.agent = this.connection.agent;
  }

  async initialize() {
    const initialized = await this.agent.request(methods.agent.initialize, {
      protocolVersion: 1,
      clientCapabilities: {},
    });
    assert.equal(initialized.protocolVersion, 1);
    assert.equal(initialized.agentCapabilities.loadSession, true);
    return this;
  }

  prompt(sessionId, text) {
    this.updates = [];
    return this.agent.request(session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  }

  text(kind = "agent_message_chunk") {
    const chunks = this.updates.filter((update) => update.sessionUpdate === kind);
    return chunks.map((update) => update.content.text).join("");
  }

  // Resolves once the closure accepts what was received.
  until(look) {
    return new Promise((resolve) => {
      const check = () => {
        const is = look();
        if (is) resolve();
        return is;
      };
      if (!check()) this.waiting.push(check);
    });
  }

  async quit() {
    const ended = new Promise((resolve) => this.child.on("exit", resolve));
    this.connection.close();
    this.child.stdin.end();
    await ended;
  }
}

const params = { cwd: WORK, mcpServers: [] };
const one = await new Editor("one", ["--agent", "coder"]).initialize();
const { sessionId } = await one.agent.request(session.new, params);
console.log("new");

let stop = await one.prompt(sessionId, "do: think Let me see | slowly 100 Hello there, dear editor.");
assert.equal(stop.stopReason, "end_turn");
assert.equal(one.text(), "Hello there, dear editor.");
assert.equal(one.text("agent_thought_chunk"), "Let me see");
assert.ok(one.updates.filter((it) => it.sessionUpdate === "agent_message_chunk").length > 1);
console.log("streamed prompt");

// A second client shows the same session. Both are asked; the first answer counts, the other question is withdrawn.
const two = await new Editor("two", []).initialize();
await two.agent.request(session.load, { ...params, sessionId });
assert.equal(two.text(), "Hello there, dear editor.");
const withdrawn = new Promise((resolve) => {
  two.permission = ({ signal }) =>
    new Promise((answer) => {
      signal.addEventListener("abort", () => {
        answer({ outcome: { outcome: "cancelled" } });
        resolve();
      });
    });
});
one.permission = async ({ params }) => {
  assert.equal(params.toolCall.title, "$ echo hi >> effects");
  const allow = params.options.find((option) => option.kind === "allow_once");
  return { outcome: { outcome: "selected", optionId: allow.optionId } };
};
stop = await one.prompt(sessionId, 'do: call shell {"command":"echo hi >> effects"} ;; say Done.');
assert.equal(stop.stopReason, "end_turn");
assert.ok(one.updates.some((it) => it.status === "completed"));
console.log("permission");
await withdrawn;
await two.until(() => two.text().endsWith("Done."));
assert.match(two.text("user_message_chunk"), /echo hi/);
console.log("two clients");

const hanging = one.prompt(sessionId, "do: hang");
await two.until(() => two.text("user_message_chunk").endsWith("do: hang"));
await one.agent.notify(session.cancel, { sessionId });
assert.equal((await hanging).stopReason, "cancelled");
console.log("cancel");

await outside("restart the daemon");
const three = await new Editor("three", []).initialize();
await three.agent.request(session.load, { ...params, sessionId });
assert.match(three.text(), /^Hello there, dear editor\.Done\./);
// The clients that were there before go on as well.
stop = await one.prompt(sessionId, "do: say Still here.");
assert.equal(stop.stopReason, "end_turn");
assert.equal(one.text(), "Still here.");
await three.until(() => three.text().endsWith("Still here."));
console.log("load after a restart");

const listed = await one.agent.request(session.list, { cwd: WORK });
assert.deepEqual(listed.sessions.map((it) => it.sessionId), [sessionId]);
console.log("list");

await one.agent.request(session.close, { sessionId });
await assert.rejects(one.prompt(sessionId, "do: say no"), (error) => error.code === -32002);
console.log("close");

for (const editor of [one, two, three]) await editor.quit();
process.exit(0);
