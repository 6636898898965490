//! A run in which everything happened and nothing went wrong: two calls side by side, a crash in the
//! middle of a reply, a question, a background task, a compaction, an interrupt with a prompt in the
//! queue, a reset and its undo.

use super::run_dir::{AGENT, RunDir};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub const FIRST: &str = "c-1";
pub const SECOND: &str = "c-2";

struct Maker {
    run_dir: RunDir,
    conversation: &'static str,
    turn: Option<&'static str>,
    /// The turn that has run a command.
    ran: Option<&'static str>,
    /// What the model sees of the first conversation.
    window: Vec<Value>,
}

pub fn good() -> RunDir {
    let mut maker = Maker {
        run_dir: RunDir {
            run: json!({"scenario": "standard", "seed": 1, "fault": null, "expects": {},
                        "agents": [{"id": AGENT, "name": "coder"}]}),
            events: Vec::new(),
            model: Vec::new(),
            effects: Vec::new(),
            clients: BTreeMap::new(),
            prompts: Vec::new(),
            orders: Vec::new(),
            faults: Vec::new(),
            heard: Vec::new(),
            others: BTreeMap::new(),
            processes: Vec::new(),
            status: Vec::new(),
            files: Vec::new(),
            webhooks: Vec::new(),
            backups: Vec::new(),
            backup_checks: Vec::new(),
            restored: Vec::new(),
            copies: BTreeMap::new(),
            said: None,
        },
        conversation: FIRST,
        turn: None,
        ran: None,
        window: Vec::new(),
    };
    maker.event(
        "agent_created",
        json!({"name": "coder", "mode": "persistent"}),
    );
    maker.event("conversation_began", json!({"source": "create"}));
    maker.event(
        "incarnation_began",
        json!({"incarnation": 1, "after": "start"}),
    );
    maker.tools_and_a_crash();
    maker.question_and_compaction();
    maker.interrupt();
    maker.reset_and_undo();
    maker.end_incarnation();
    maker.run_dir
}

impl Maker {
    fn event(&mut self, kind: &str, body: Value) {
        let seq = self.run_dir.events.len() + 1;
        let mut event = json!({"seq": seq, "at": 0, "v": 1, "kind": kind, "body": body,
                               "conversation": self.conversation});
        if let Some(turn) = self.turn {
            event["turn"] = json!(turn);
        }
        self.run_dir.events.push(event);
    }

    fn sees(&mut self, role: &str, text: &str) {
        let content = json!([{"type": "text", "text": text}]);
        self.window.push(json!({"role": role, "content": content}));
    }

    fn queue(&mut self, id: &str, text: &str, status: &str, exit: i64) {
        let turn = self.turn.take();
        self.event(
            "prompt_queued",
            json!({"prompt": id, "key": format!("k-{id}"), "mode": "queue"}),
        );
        self.event(
            "prompt",
            json!({"prompt": id, "blocks": [{"type": "text", "text": text}]}),
        );
        self.turn = turn;
        self.run_dir
            .prompts
            .push(json!({"at": 1, "agent": "coder", "key": format!("k-{id}"),
            "text": text, "acknowledged": true, "prompt": id, "status": status, "exit": exit}));
    }

    fn begin(&mut self, turn: &'static str, prompt: &str, text: &str) {
        self.turn = Some(turn);
        self.event("turn_started", json!({}));
        self.event("prompts_taken", json!({"prompts": [prompt]}));
        self.sees("user", text);
    }

    fn end(&mut self, status: &str) {
        self.event("turn_ended", json!({"status": status}));
        self.event("checkpoint_set", json!({"label": "session-latest"}));
        let turn = self.turn.take();
        if let Some(turn) = turn.filter(|turn| self.ran == Some(*turn)) {
            let found = json!({"type": "unknown", "why": "no_git"});
            self.event("files_scanned", json!({"turn": turn, "found": found}));
        }
    }

    /// A request leaves; `finished` says whether its reply went out whole.
    fn ask(&mut self, incarnation: u64, n: u64, purpose: &str, finished: bool) -> Value {
        let request = json!({"incarnation": incarnation, "n": n});
        self.event(
            "request_sent",
            json!({"request": request, "purpose": purpose}),
        );
        let number = self.run_dir.model.len() + 1;
        let mut messages = self.window.clone();
        if purpose == "compact" {
            messages.push(json!({"role": "user", "content": "Summarise."}));
        }
        self.run_dir.model.push(
            json!({"at": number, "n": number, "format": "anthropic_messages",
            "agent": AGENT, "body": {"messages": messages}, "accepted": true, "violations": [],
            "finished": finished}),
        );
        request
    }

    fn reply(&mut self, request: &Value, outcome: &str, status: &str, text: &str, calls: &[Value]) {
        self.event(
            "request_ended",
            json!({"request": request, "outcome": {"type": outcome}}),
        );
        let mut blocks = vec![json!({"type": "text", "text": text})];
        blocks.extend(calls.iter().cloned());
        self.event(
            "message",
            json!({"request": request, "status": status, "blocks": blocks}),
        );
        self.sees("assistant", text);
    }

    fn answer(&mut self, incarnation: u64, n: u64, text: &str) {
        let request = self.ask(incarnation, n, "answer", true);
        self.reply(&request, "completed", "complete", text, &[]);
    }

    fn start_call(&mut self, call: &str, task: &str) {
        self.ran = self.turn;
        self.event(
            "tool_started",
            json!({"call": call, "tool": "shell", "task": task}),
        );
        let pid = 100 + self.run_dir.effects.len();
        let begin = json!({"call": call, "pid": pid, "start": 7, "what": "begin", "at": 5});
        self.run_dir.effects.push(begin);
        let end = json!({"call": call, "pid": pid, "start": 7, "what": "end", "at": 6});
        self.run_dir.effects.push(end);
    }

    fn end_call(&mut self, call: &str, outcome: &str, text: &str) {
        self.event("tool_ended", json!({"call": call, "outcome": outcome}));
        let blocks = json!([{"type": "text", "text": text}]);
        self.event(
            "result",
            json!({"call": call, "outcome": outcome, "blocks": blocks}),
        );
        self.sees("user", text);
    }

    fn notice(&mut self, cause: &str, text: &str) {
        self.event("notice", json!({"cause": cause, "text": text}));
        if self.conversation == FIRST {
            self.sees("user", &format!("<notice>\n{text}\n</notice>"));
        }
    }

    fn tools_and_a_crash(&mut self) {
        self.queue("p-1", "first", "completed", 0);
        self.begin("t-1", "p-1", "first");
        self.event(
            "context",
            json!({"provider": "p", "wire": "anthropic_messages", "model": "m"}),
        );
        let request = self.ask(1, 1, "answer", true);
        let calls = [call("call_1_1_0"), call("call_1_1_1")];
        self.reply(&request, "completed", "complete", "on it", &calls);
        self.start_call("call_1_1_0", "k-1");
        self.start_call("call_1_1_1", "k-2");
        self.end_call("call_1_1_1", "ok", "two is done");
        self.end_call("call_1_1_0", "ok", "one is done");
        let request = self.ask(1, 2, "answer", false);
        self.event(
            "incarnation_began",
            json!({"incarnation": 2, "after": "crash"}),
        );
        self.reply(&request, "lost", "interrupted", "half a", &[]);
        self.notice("crashed", "You were restarted.");
        self.answer(2, 1, "all of it");
        self.end("completed");
    }

    fn question_and_compaction(&mut self) {
        self.queue("p-2", "second", "completed", 0);
        self.begin("t-2", "p-2", "second");
        let request = self.ask(2, 2, "answer", true);
        self.reply(
            &request,
            "completed",
            "complete",
            "may I",
            &[call("call_2_2_0")],
        );
        self.event(
            "approval_requested",
            json!({"approval": "q-1", "call": "call_2_2_0"}),
        );
        self.event(
            "approval_answered",
            json!({"approval": "q-1", "decision": "allow"}),
        );
        let order = |verb: &str, acknowledged: bool, from_tool: bool| {
            json!({"at": 3, "agent": "coder", "verb": verb, "approval": "q-1",
                   "acknowledged": acknowledged, "answer": null, "from_tool": from_tool})
        };
        self.run_dir.orders.push(order("approve", false, true));
        self.run_dir.orders.push(order("approve", true, false));
        self.run_dir.orders.push(order("deny", false, false));
        self.start_call("call_2_2_0", "k-3");
        self.event(
            "task_started",
            json!({"task": "k-3", "call": "call_2_2_0", "tool": "shell"}),
        );
        self.end_call("call_2_2_0", "ok", "it runs");
        let request = self.ask(2, 3, "compact", true);
        self.event(
            "request_ended",
            json!({"request": request, "outcome": {"type": "completed"}}),
        );
        let through = self.run_dir.events.len() - 1;
        self.event(
            "compacted",
            json!({"through": {"agent": AGENT, "seq": through}}),
        );
        self.event(
            "summary",
            json!({"through": {"agent": AGENT, "seq": through}, "text": "so far"}),
        );
        self.window.clear();
        self.sees(
            "user",
            "<notice>\nSummary of the conversation up to here:\nso far\n</notice>",
        );
        // The turn still answers this prompt.
        self.sees("user", "second");
        self.answer(2, 4, "second is done");
        self.end("completed");
    }

    fn interrupt(&mut self) {
        self.queue("p-3", "third", "interrupted", 130);
        self.begin("t-3", "p-3", "third");
        let request = self.ask(2, 5, "answer", false);
        self.queue("p-4", "fourth", "completed", 0);
        self.reply(&request, "interrupted", "interrupted", "thi", &[]);
        self.notice("interrupted", "The user interrupted this turn.");
        self.end("interrupted");
        self.run_dir
            .orders
            .push(json!({"at": 8, "answered_at": 9, "agent": "coder",
            "verb": "interrupt", "acknowledged": true, "answer": {}, "from_tool": false}));
        self.begin("t-4", "p-4", "fourth");
        self.answer(2, 6, "fourth is done");
        self.end("completed");
    }

    fn steps(&mut self, op: &str, steps: &[&str]) {
        for step in steps {
            self.event("reset_stepped", json!({"op": op, "step": step}));
        }
    }

    fn reset_and_undo(&mut self) {
        self.queue("p-5", "fifth", "completed", 0);
        self.event("reset_began", json!({"op": "o-1", "to": {"type": "fresh"}}));
        self.steps("o-1", &["pre_reset", "stop", "session_end"]);
        self.event("prompts_set_aside", json!({"prompts": ["p-5"]}));
        self.event(
            "conversation_sealed",
            json!({"reason": "reset", "op": "o-1"}),
        );
        self.conversation = SECOND;
        self.event(
            "conversation_began",
            json!({"source": "reset", "parent": FIRST, "op": "o-1"}),
        );
        self.event("checkpoint_set", json!({"label": "init"}));
        self.notice("tasks_carried", "These tasks go on: k-3.");
        self.steps("o-1", &["switch", "session_start"]);
        self.event(
            "reset_ended",
            json!({"op": "o-1", "old": FIRST, "new": SECOND}),
        );
        self.receipt("reset", "o-1", FIRST, SECOND, &["p-5"]);
        self.receipt("reset", "o-1", FIRST, SECOND, &["p-5"]);
        self.event("reset_began", json!({"op": "o-2", "to": {"type": "undo"}}));
        self.steps("o-2", &["pre_reset", "stop", "session_end"]);
        self.event(
            "conversation_sealed",
            json!({"reason": "undo", "op": "o-2"}),
        );
        self.conversation = FIRST;
        self.event(
            "pointer_moved",
            json!({"to": FIRST, "direction": "undo", "op": "o-2"}),
        );
        self.event("prompts_requeued", json!({"prompts": ["p-5"]}));
        self.steps("o-2", &["switch", "session_start"]);
        self.event(
            "reset_ended",
            json!({"op": "o-2", "old": SECOND, "new": FIRST}),
        );
        self.receipt("undo", "o-2", SECOND, FIRST, &[]);
        self.event(
            "incarnation_began",
            json!({"incarnation": 3, "after": "restart"}),
        );
        self.begin("t-5", "p-5", "fifth");
        self.answer(3, 1, "fifth is done");
        self.end("completed");
    }

    fn receipt(&mut self, verb: &str, op: &str, old: &str, new: &str, set_aside: &[&str]) {
        self.run_dir
            .orders
            .push(json!({"at": 10, "agent": AGENT, "verb": verb, "op": op,
            "acknowledged": true, "from_tool": false,
            "answer": {"op": op, "old": old, "new": new, "set_aside": set_aside}}));
    }

    /// What others say of all that.
    fn end_incarnation(&mut self) {
        let run_dir = &mut self.run_dir;
        let head = run_dir.events.len();
        run_dir
            .status
            .push(json!({"at": 20, "agent": "coder", "show": {
            "head": head, "turn": null, "last_turn": {"id": "t-5", "status": "completed"},
            "phase": "idle", "process": {"state": "up", "pid": 50}, "queued": 0, "approvals": [],
            "conversation": {"id": FIRST}, "generation": 3}}));
        let process = |when: &str, pid: u64, ppid: u64, role: &str, cmdline: &str| {
            json!({"at": 20, "when": when, "pid": pid, "ppid": ppid, "state": "S", "start": 1,
                   "cmdline": cmdline, "environ_mark": true, "role": role})
        };
        for when in ["rest", "end"] {
            run_dir.processes.push(process(
                when,
                60,
                1,
                "shim",
                "agentd --agentd-shim tasks/k-3",
            ));
            run_dir
                .processes
                .push(process(when, 61, 60, "tool", "sleep 1000"));
        }
        run_dir
            .processes
            .push(process("rest", 40, 1, "daemon", "agentd daemon"));
        run_dir.processes.push(process(
            "rest",
            50,
            40,
            "runtime",
            &format!("agentd runtime {AGENT}"),
        ));
        let event = |event: &Value| {
            let mut event = event.clone();
            event["saw"] = json!("event");
            event["agent"] = json!(AGENT);
            event
        };
        let delta = |request: &str, text: &str| json!({"at": 1, "saw": "delta", "request": request, "text": text, "type": "text"});
        let mut saw = vec![json!({"client": "sse", "args": [], "agent": "coder", "from": 0})];
        saw.extend(run_dir.events[..10].iter().map(event));
        saw.extend([delta("1.2", "ha"), delta("1.2", "lf a")]);
        saw.push(json!({"at": 2, "saw": "connected", "from": 10}));
        saw.extend(run_dir.events[10..].iter().map(event));
        saw.push(delta("2.3", "so f"));
        run_dir.clients.insert("1".to_owned(), saw);
        let answer = json!({"agent": AGENT, "turn": "t-3", "status": "interrupted", "text": "thi"});
        run_dir.clients.insert("2".to_owned(), vec![
            json!({"client": "cli", "args": ["send", "coder", "third", "--json"], "agent": "coder"}),
            json!({"at": 4, "saw": "line", "text": answer.to_string()}),
            json!({"at": 5, "saw": "exit", "code": 130, "signal": null}),
        ]);
    }
}

pub fn call(id: &str) -> Value {
    json!({"type": "tool_call", "id": id, "name": "shell", "arguments": {"object": {}}})
}
