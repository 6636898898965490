//! What the journal, the model and the tools show.

use super::good::call;
use super::{breaks, is_fine};
use serde_json::{Value, json};

// P1

#[test]
fn an_accepted_prompt_that_is_nowhere() {
    breaks("P1", "is not in the journal", |run_dir| {
        run_dir
            .prompts
            .push(json!({"agent": "coder", "text": "lost", "acknowledged": true, "prompt": "p-9"}));
    });
    is_fine(|run_dir| {
        run_dir
            .prompts
            .push(json!({"agent": "coder", "text": "lost", "acknowledged": false, "key": "k"}));
    });
}

#[test]
fn other_words_than_were_sent() {
    breaks("P1", "is in the journal as", |run_dir| {
        run_dir.prompts[0]["text"] = json!("furst")
    });
}

#[test]
fn other_files_than_were_sent() {
    let sent = |files: serde_json::Value| {
        move |run_dir: &mut super::run_dir::RunDir| {
            run_dir.prompts[0]["files"] = files;
            let prompt = run_dir.prompts[0]["prompt"].as_str().unwrap().to_owned();
            let at = run_dir.find("prompt", &prompt);
            let blocks = run_dir.events[at]["body"]["blocks"].as_array_mut().unwrap();
            let file = json!({"type": "attachment", "name": "a.png", "file": "image",
                              "media_type": "image/png", "data": "aGk="});
            blocks.push(file);
            // What clients saw of the event is not what this test is about.
            run_dir.clients.clear();
            let image = json!({"type": "image", "source":
                {"type": "base64", "media_type": "image/png", "data": "aGk="}});
            for request in &mut run_dir.model {
                let messages = request["body"]["messages"].as_array_mut().unwrap();
                let first = messages[0]["content"].as_array_mut().unwrap();
                if first[0]["text"].as_str() == run_dir.prompts[0]["text"].as_str() {
                    first.push(image.clone());
                }
            }
        }
    };
    is_fine(sent(json!([["a.png", "aGk="]])));
    for wrong in [
        json!([]),
        json!([["a.png", "aGkh"]]),
        json!([["b.png", "aGk="]]),
    ] {
        breaks(
            "P1",
            "is in the journal with [a.png (4 bytes)]",
            sent(wrong),
        );
    }
    // The model did not get it.
    breaks("P3", "the model never answered it", |run_dir| {
        sent(json!([["a.png", "aGk="]]))(run_dir);
        for request in &mut run_dir.model {
            let messages = request["body"]["messages"].as_array_mut().unwrap();
            messages[0]["content"].as_array_mut().unwrap().truncate(1);
        }
    });
}

#[test]
fn a_request_without_the_project_s_instructions() {
    breaks("P3", "lacks the project's instructions", |run_dir| {
        run_dir.run["expects"] = json!({"instructions": "be kind"});
    });
}

#[test]
fn a_prompt_that_ran_twice() {
    breaks("P1", "was taken 2 times", |run_dir| {
        let at = run_dir.find("prompts_taken", "p-4");
        run_dir.again(at);
    });
}

#[test]
fn a_key_that_was_delivered_twice() {
    breaks("P1", "was delivered 2 times", |run_dir| {
        run_dir.event("prompt_queued", "p-2")["body"]["key"] = json!("k-p-1");
    });
}

#[test]
fn a_prompt_that_is_forgotten() {
    breaks("P1", "was never taken", |run_dir| {
        let at = run_dir.find("prompts_taken", "p-4");
        run_dir.cut(at - 1);
    });
}

#[test]
fn a_turn_that_never_ends_answers_nobody() {
    breaks("P1", "its turn never ended", |run_dir| {
        let end = run_dir.events.len() - 2;
        run_dir.cut(end);
    });
}

#[test]
fn a_completed_turn_without_an_answer() {
    breaks("P1", "has no answer", |run_dir| {
        run_dir.event("message", "fourth is done")["body"]["status"] = json!("interrupted");
    });
}

#[test]
fn set_aside_by_nothing() {
    breaks("P1", "nothing set it aside", |run_dir| {
        run_dir.prompts[0]["status"] = json!("set_aside");
    });
}

#[test]
fn what_waits_for_a_stopped_agent_waits_rightly() {
    is_fine(|run_dir| {
        let at = run_dir.events.len() - 1;
        run_dir.insert(at, "agent_stopped", json!({}));
        run_dir.insert(
            at + 1,
            "prompt_queued",
            json!({"prompt": "p-6", "key": "k-p-6"}),
        );
        let blocks = json!([{"type": "text", "text": "sixth"}]);
        run_dir.insert(at + 2, "prompt", json!({"prompt": "p-6", "blocks": blocks}));
        run_dir.prompts.push(
            json!({"agent": "coder", "text": "sixth", "acknowledged": true,
                                   "prompt": "p-6", "status": "queued"}),
        );
    });
}

#[test]
fn a_prompt_that_a_hook_refused_is_told_as_failed() {
    is_fine(|run_dir| {
        let taken = run_dir.find("prompts_taken", "p-5");
        run_dir.events.truncate(taken);
        run_dir.insert(taken - 1, "prompt_blocked", json!({"prompt": "p-5"}));
        let ended = json!({"status": "failed", "failure": "blocked"});
        run_dir.insert(taken, "turn_ended", ended);
        run_dir.model.pop();
        let sent = run_dir.prompts.last_mut().unwrap();
        (sent["status"], sent["exit"]) = (json!("failed"), json!(1));
    });
}

// P3

#[test]
fn a_request_that_was_refused() {
    breaks("P3", "refused request 2", |run_dir| {
        run_dir.model[1]["accepted"] = json!(false);
        run_dir.model[1]["violations"] = json!(["orphan"]);
    });
}

#[test]
fn a_request_that_is_not_on_record() {
    breaks(
        "P3",
        "sent twice, or sent without being on record",
        |run_dir| {
            let again = run_dir.model[0].clone();
            run_dir.model.insert(0, again);
        },
    );
}

#[test]
fn a_request_that_is_not_on_record_while_the_power_is_off_does_not_count() {
    let late = |run_dir: &mut super::RunDir, at: u64| {
        let mut late = run_dir.model[0].clone();
        late["at"] = json!(at);
        run_dir.model.push(late);
        run_dir.run["expects"] = json!({"power_off": [[1_000_000, 1_000_100]]});
    };
    is_fine(|run_dir| late(run_dir, 1_000_050));
    breaks("P3", "without being on record", |run_dir| {
        late(run_dir, 1_000_101);
    });
}

#[test]
fn a_finished_step_that_is_asked_again() {
    breaks("P3", "repeats request", |run_dir| {
        // The answer has no words of its own; and the calls are forgotten.
        let again = run_dir.model[0].clone();
        run_dir.model.insert(1, again);
        for request in &mut run_dir.model {
            let messages = request["body"]["messages"].as_array_mut().unwrap();
            messages.retain(|message| !message.to_string().contains("on it"));
        }
        let at = run_dir.find("message", "on it");
        let blocks = run_dir.events[at]["body"]["blocks"].as_array_mut();
        blocks.unwrap().remove(0);
        let sent = json!({"request": {"incarnation": 1, "n": 9}, "purpose": "answer"});
        run_dir.insert(at, "request_sent", sent);
        let ended = json!({"request": {"incarnation": 1, "n": 9}, "outcome": {"type": "failed"}});
        run_dir.insert(at + 1, "request_ended", ended);
    });
}

#[test]
fn a_word_of_a_conversation_that_was_left() {
    breaks("P3", "is not on record", |run_dir| {
        let last = run_dir.model.len() - 1;
        let messages = run_dir.model[last]["body"]["messages"]
            .as_array_mut()
            .unwrap();
        messages.insert(
            0,
            json!({"role": "user", "content": [{"type": "text", "text": "first"}]}),
        );
    });
}

#[test]
fn a_word_that_is_missing() {
    breaks("P3", "does not contain `two is done`", |run_dir| {
        let messages = run_dir.model[1]["body"]["messages"].as_array_mut().unwrap();
        messages.retain(|message| !message.to_string().contains("two is done"));
    });
    // The prompt of the running turn, after a summary of what it is about.
    breaks(
        "P3",
        "request 2.4 is completed, but the model never answered it",
        |run_dir| {
            let is_next = |request: &&mut Value| request.to_string().contains("so far");
            let next = run_dir.model.iter_mut().find(is_next).unwrap();
            let messages = next["body"]["messages"].as_array_mut().unwrap();
            messages.retain(|message| !message.to_string().contains("second"));
        },
    );
}

#[test]
fn a_prefix_that_changed() {
    breaks(
        "P3",
        "does not begin with the messages of request",
        |run_dir| {
            run_dir.model[2]["body"]["messages"][1]["extra"] = json!(1);
        },
    );
    is_fine(|run_dir| {
        run_dir.model[2]["body"]["messages"][1]["cache_control"] = json!({"type": "ephemeral"});
    });
}

#[test]
fn an_answer_that_the_model_never_gave() {
    breaks("P3", "the model never answered it", |run_dir| {
        let last = run_dir.model.len() - 1;
        run_dir.model[last]["finished"] = json!(false);
    });
}

#[test]
fn a_request_of_a_process_that_had_lost_the_agent() {
    breaks("P3", "ran the agent", |run_dir| {
        let event = run_dir.event("request_sent", r#""incarnation":3"#);
        event["body"]["request"]["incarnation"] = json!(2);
    });
    breaks("P3", "began after", |run_dir| {
        run_dir.event("incarnation_began", "restart")["body"]["incarnation"] = json!(2);
    });
}

// P4

#[test]
fn a_tool_that_ran_twice() {
    breaks("P4", "ran 2 times", |run_dir| {
        let mut again = run_dir.effects[0].clone();
        again["pid"] = json!(999);
        run_dir.effects.push(again);
    });
}

#[test]
fn a_tool_whose_start_is_not_on_record() {
    breaks("P4", "its start is not on record", |run_dir| {
        run_dir
            .effects
            .push(json!({"call": "call_9_9_9", "pid": 5, "start": 5, "what": "begin", "at": 1}));
    });
}

#[test]
fn a_call_without_a_result() {
    breaks("P4", "has no result, but its turn is over", |run_dir| {
        run_dir.remove("tool_ended", "call_1_1_0");
        run_dir.remove("result", "call_1_1_0");
    });
    breaks("P4", "an end without a result", |run_dir| {
        run_dir.remove("result", "call_1_1_0");
    });
}

#[test]
fn two_results() {
    breaks("P4", "has 2 results", |run_dir| {
        let at = run_dir.find("result", "call_1_1_0");
        run_dir.again(at);
    });
    breaks("P4", "was started 2 times", |run_dir| {
        let at = run_dir.find("tool_started", "call_1_1_0");
        run_dir.again(at);
    });
    breaks("P4", "its result says", |run_dir| {
        run_dir.event("result", "call_1_1_0")["body"]["outcome"] = json!("error");
    });
}

#[test]
fn unknown_needs_an_excuse() {
    let unknown = |run_dir: &mut super::RunDir| {
        for kind in ["tool_ended", "result"] {
            run_dir.event(kind, "call_1_1_0")["body"]["outcome"] = json!("unknown");
        }
        run_dir.clients.clear();
    };
    breaks("P4", "unknown without a valid reason", unknown);
    let killed = |task: &str, what: &str| {
        let task = task.to_owned();
        json!({"at": 1, "role": "shim", "pid": 5, "what": what, "task": task})
    };
    is_fine(|run_dir| {
        unknown(run_dir);
        run_dir.faults.push(killed("k-1", "KILL"));
    });
    // That of another call, or one that only stood still, is none.
    for fault in [killed("k-2", "KILL"), killed("k-1", "STOP")] {
        breaks("P4", "unknown without a valid reason", |run_dir| {
            unknown(run_dir);
            run_dir.faults.push(fault);
        });
    }
    is_fine(|run_dir| {
        unknown(run_dir);
        run_dir.run["expects"] = json!({"other_boot": ["call_1_1_0"]});
    });
}

#[test]
fn the_end_of_a_task_that_nobody_saw_needs_an_excuse() {
    let ended = |run_dir: &mut super::RunDir| {
        let last = run_dir.events.len() - 1;
        let exit = json!({"type": "unknown"});
        run_dir.insert(last, "task_ended", json!({"task": "k-3", "exit": exit}));
        let told = json!({"cause": "task_ended", "text": "Background task k-3 is gone."});
        run_dir.insert(last + 1, "notice", told);
        run_dir
            .processes
            .retain(|it| it["role"] != "shim" && it["role"] != "tool");
    };
    breaks("P4", "the end of task k-3 is unknown", ended);
    is_fine(|run_dir| {
        ended(run_dir);
        run_dir
            .faults
            .push(json!({"role": "shim", "what": "KILL", "task": "k-3"}));
    });
}

#[test]
fn not_started_and_yet_it_ran() {
    breaks("P4", "says that it did not", |run_dir| {
        for kind in ["tool_ended", "result"] {
            run_dir.event(kind, "call_1_1_0")["body"]["outcome"] = json!("not_started");
        }
    });
}

#[test]
fn it_ended_well_and_never_ran() {
    breaks("P4", "never ran", |run_dir| {
        run_dir.run["expects"] = json!({"tools_with_effects": ["shell"]});
        run_dir
            .effects
            .retain(|effect| effect["call"] != "call_1_1_0");
    });
}

#[test]
fn a_request_while_a_call_has_no_result() {
    breaks("P4", "was sent while call", |run_dir| {
        let ended = run_dir.remove("tool_ended", "call_1_1_0");
        let result = run_dir.remove("result", "call_1_1_0");
        let at = run_dir.find("request_sent", r#""incarnation":1,"n":2"#);
        run_dir.insert(at, "result", result["body"].clone());
        run_dir.insert(at, "tool_ended", ended["body"].clone());
    });
}

// P8

#[test]
fn a_fourth_try() {
    breaks("P8", "after 3 attempts were lost", |run_dir| {
        let at = run_dir.find("request_sent", r#""incarnation":2,"n":1"#);
        let lost = json!({"request": {"incarnation": 2, "n": 0}, "outcome": {"type": "lost"}});
        run_dir.insert(at - 1, "request_ended", lost.clone());
        run_dir.insert(at - 1, "request_ended", lost);
    });
}

#[test]
fn given_up_too_early() {
    breaks("P8", "given up after 0 crashes", |run_dir| {
        let at = run_dir.events.len() - 2;
        run_dir.events[at]["body"]["status"] = json!("lost");
    });
}

#[test]
fn a_crash_loop_that_is_not_given_up() {
    breaks("P8", "was not given up", |run_dir| {
        run_dir.run["expects"] = json!({"crash_loop": true})
    });
}

// P10

#[test]
fn a_question_that_is_answered_twice() {
    breaks("P10", "was answered 2 times", |run_dir| {
        let at = run_dir.find("approval_answered", "q-1");
        run_dir.again(at);
    });
    breaks("P10", "2 answers to question", |run_dir| {
        run_dir.orders[2]["acknowledged"] = json!(true);
    });
}

#[test]
fn a_call_that_ran_without_leave() {
    breaks("P10", "without the approval", |run_dir| {
        run_dir.remove("approval_answered", "q-1");
    });
    breaks("P10", "was denied, but is ok", |run_dir| {
        run_dir.event("approval_answered", "q-1")["body"]["decision"] = json!("deny");
    });
}

#[test]
fn a_tool_that_answers() {
    breaks(
        "P10",
        "a process of a tool was allowed to `approve`",
        |run_dir| {
            run_dir.orders[0]["acknowledged"] = json!(true);
            run_dir.orders[1]["acknowledged"] = json!(false);
        },
    );
}

#[test]
fn an_answer_that_no_client_gave() {
    breaks("P10", "but 0 were given", |run_dir| {
        run_dir.orders.remove(1);
    });
}

#[test]
fn an_answer_that_is_not_on_record() {
    breaks("P10", "allow is on record", |run_dir| {
        run_dir.orders[1]["acknowledged"] = json!(false);
        run_dir.orders[2]["acknowledged"] = json!(true);
    });
}

#[test]
fn a_question_that_is_forgotten() {
    breaks("P10", "was lost", |run_dir| {
        let message = run_dir.event("message", "all of it");
        message["body"]["blocks"]
            .as_array_mut()
            .unwrap()
            .push(call("call_9_9_9"));
        let at = run_dir.find("message", "all of it");
        let asked = json!({"approval": "q-9", "call": "call_9_9_9"});
        run_dir.insert(at, "approval_requested", asked);
    });
}

#[test]
fn a_question_that_waits_is_shown() {
    breaks("P10", "wait, but", |run_dir| {
        run_dir.status[0]["show"]["approvals"] = json!([{"id": "q-1"}])
    });
}

// P11

#[test]
fn a_notice_that_is_written_twice() {
    for cause in ["crashed", "interrupted", "tasks_carried"] {
        breaks("P11", "2 times of one event", |run_dir| {
            let at = run_dir.find("notice", cause);
            run_dir.again(at);
        });
    }
}

/// Each conversation may be told once; one that comes back is told what the one in its place was told.
#[test]
fn how_often_a_conversation_is_told_that_a_task_ended() {
    let told = json!({"cause": "task_ended", "text": "Background task k-3 ended."});
    let ended = |run_dir: &mut super::RunDir| {
        let last = run_dir.events.len() - 1;
        let exit = json!({"type": "code", "code": 0});
        run_dir.insert(last, "task_ended", json!({"task": "k-3", "exit": exit}));
        run_dir.insert(last + 1, "notice", told.clone());
        run_dir
            .processes
            .retain(|it| it["role"] != "shim" && it["role"] != "tool");
        last + 2
    };
    is_fine(|run_dir| {
        ended(run_dir);
    });
    is_fine(|run_dir| {
        let last = ended(run_dir);
        run_dir.insert(last, "notice", told.clone());
        run_dir.events[last + 1]["conversation"] = json!("c-9");
    });
    breaks("P11", "2 times that task k-3 ended", |run_dir| {
        let last = ended(run_dir);
        run_dir.again(last);
    });
    breaks("P11", "the conversation is not told", |run_dir| {
        let last = ended(run_dir);
        run_dir.events.truncate(last);
    });
    breaks("P11", "but it has not", |run_dir| {
        let last = run_dir.events.len() - 1;
        run_dir.insert(last, "notice", told.clone());
    });
}

#[test]
fn a_notice_in_the_users_role() {
    breaks("P11", "is a notice of ours", |run_dir| {
        let event = run_dir.event("prompt", "\"fourth\"");
        event["body"]["blocks"][0]["text"] = json!("The user interrupted this turn.");
    });
    breaks("P11", "was sent by no client", |run_dir| {
        run_dir.event("prompt", "\"fourth\"")["body"]["blocks"][0]["text"] = json!("go on");
    });
    breaks("P11", "a notice inside another block", |run_dir| {
        let text = "<notice>\nx\n</notice>\nand go on";
        run_dir.model[0]["body"]["messages"][0]["content"][0]["text"] = json!(text);
    });
}

#[test]
fn what_the_model_is_not_told() {
    breaks(
        "P11",
        "was interrupted, but the model is not told",
        |run_dir| {
            run_dir.remove("notice", "The user interrupted");
        },
    );
    // Of a prompt that it never saw it is not told either.
    is_fine(|run_dir| {
        let at = run_dir.events.len() - 1;
        let turn = |run_dir: &mut super::RunDir, at: usize, kind: &str, body| {
            run_dir.insert(at, kind, body);
            run_dir.events[at + 1]["turn"] = json!("t-9");
        };
        run_dir.insert(at, "prompt_queued", json!({"prompt": "p-9"}));
        turn(run_dir, at + 1, "turn_started", json!({}));
        turn(run_dir, at + 2, "prompt_blocked", json!({"prompt": "p-9"}));
        turn(
            run_dir,
            at + 3,
            "turn_ended",
            json!({"status": "interrupted"}),
        );
        run_dir
            .faults
            .push(json!({"at": 0, "role": "runtime", "what": "INT"}));
    });
    breaks("P11", "is not told why", |run_dir| {
        for kind in ["tool_ended", "result"] {
            run_dir.event(kind, "call_1_1_0")["body"]["outcome"] = json!("denied");
        }
        run_dir.event("result", "call_1_1_0")["body"]["blocks"] = json!([]);
    });
}
