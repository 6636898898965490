//! What happened in a run, on one time axis: events, requests, faults, clients, processes.

use super::record;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// One entry: when, which kind, what.
struct Line {
    at: u64,
    lane: &'static str,
    text: String,
}

/// The timeline of the run in this directory.
pub fn of(run: &Path, began_unix: u64) -> String {
    let mut lines = Vec::new();
    events(run, began_unix, &mut lines);
    requests(run, &mut lines);
    plain(run, "faults.jsonl", "fault", &mut lines, |line| {
        let failpoint = line["failpoint"].as_str().unwrap_or("at a random time");
        format!(
            "{} of {} {} {failpoint}",
            text(&line["what"]),
            text(&line["role"]),
            line["pid"]
        )
    });
    plain(run, "effects.jsonl", "tool", &mut lines, |line| {
        format!(
            "{} of call {} (pid {})",
            text(&line["what"]),
            text(&line["call"]),
            line["pid"]
        )
    });
    plain(run, "heard.jsonl", "hook", &mut lines, |line| {
        let no = if line["denies"] == true {
            ", denies"
        } else {
            ""
        };
        format!("{} (pid {}){no}", text(&line["event"]), line["pid"])
    });
    plain(run, "prompts.jsonl", "prompt", &mut lines, |line| {
        format!(
            "{} to {}: {}",
            text(&line["key"]),
            text(&line["agent"]),
            cut(&text(&line["text"]))
        )
    });
    plain(run, "orders.jsonl", "order", &mut lines, |line| {
        let outcome = if line["acknowledged"] == true {
            "done"
        } else {
            "not acknowledged"
        };
        format!(
            "{} {}: {outcome}",
            text(&line["verb"]),
            text(&line["agent"])
        )
    });
    clients(run, &mut lines);
    plain(run, "processes.jsonl", "process", &mut lines, |line| {
        let (when, role) = (text(&line["when"]), text(&line["role"]));
        let (state, cmdline) = (text(&line["state"]), cut(&text(&line["cmdline"])));
        format!(
            "{when}: {role} {} ({state}, below {}) {cmdline}",
            line["pid"], line["ppid"]
        )
    });
    lines.sort_by_key(|line| line.at);
    let mut out = String::new();
    for line in lines {
        let (seconds, rest) = (line.at / 1_000_000, line.at % 1_000_000 / 1000);
        let _fits = writeln!(
            out,
            "{seconds:>4}.{rest:03}  {:<8} {}",
            line.lane, line.text
        );
    }
    out
}

fn plain(
    run: &Path,
    file: &str,
    lane: &'static str,
    lines: &mut Vec<Line>,
    say: impl Fn(&Value) -> String,
) {
    for line in record::lines(&run.join(file)) {
        let at = line["at"].as_u64().unwrap_or_default();
        lines.push(Line {
            at,
            lane,
            text: say(&line),
        });
    }
}

fn events(run: &Path, began_unix: u64, lines: &mut Vec<Line>) {
    for entry in std::fs::read_dir(run.join("export"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let agent = entry.path();
        let agent = agent
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        let agent = agent.unwrap_or_default();
        // The export of a branch contains the shared prefix, which has its own lines.
        let (mut own, mut whose) = (Value::Null, Value::Null);
        for event in record::lines(&entry.path()) {
            match event["line"].as_str() {
                Some("export") => own = event["agent"].clone(),
                Some("journal") => whose = event["agent"].clone(),
                _ => {}
            }
            if own != whose {
                continue;
            }
            let Some(seq) = event["seq"].as_u64() else {
                continue;
            };
            // Events have their time in milliseconds since 1970.
            let at = event["at"].as_u64().unwrap_or_default() * 1000;
            let body = cut(&event["body"].to_string());
            lines.push(Line {
                at: at.saturating_sub(began_unix),
                lane: "event",
                text: format!("{agent} {seq} {} {body}", text(&event["kind"])),
            });
        }
    }
}

fn requests(run: &Path, lines: &mut Vec<Line>) {
    plain(run, "model.jsonl", "request", lines, |line| {
        let messages = line["body"]["messages"].as_array().map_or(0, Vec::len);
        let accepted = if line["accepted"] == true {
            "accepted"
        } else {
            "REFUSED"
        };
        let finished = if line["finished"] == true {
            "answered"
        } else {
            "interrupted"
        };
        format!(
            "{} of {messages} messages, {accepted}, {finished} {}",
            line["n"], line["violations"]
        )
    });
}

fn clients(run: &Path, lines: &mut Vec<Line>) {
    for entry in std::fs::read_dir(run.join("clients"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let all = record::lines(&entry.path());
        let head = all.first().cloned().unwrap_or_default();
        if head["client"] != "cli" {
            continue;
        }
        let args: Vec<String> = head["args"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect();
        let args = cut(&args.join(" "));
        for line in all.iter().filter(|line| line["saw"] == "exit") {
            let how = match line["code"].as_i64() {
                Some(code) => format!("exit {code}"),
                None => format!("signal {}", line["signal"]),
            };
            let began = head["at"].as_u64().unwrap_or_default() / 1000;
            let why = cut(&text(&line["stderr"]).replace('\n', " "));
            lines.push(Line {
                at: line["at"].as_u64().unwrap_or_default(),
                lane: "client",
                text: format!("{how}: {args} (since {began} ms) {why}"),
            });
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn cut(text: &str) -> String {
    const MOST: usize = 160;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::of;
    use std::fs;

    #[test]
    fn everything_is_on_one_axis() {
        let run = tempfile::tempdir().unwrap();
        for dir in ["export", "clients"] {
            fs::create_dir(run.path().join(dir)).unwrap();
        }
        let write = |file: &str, text: &str| fs::write(run.path().join(file), text).unwrap();
        write(
            "export/ada.jsonl",
            r#"{"line":"export","agent":"a"}
{"line":"journal","agent":"b"}
{"line":"event","seq":1,"at":1001,"kind":"shared","body":{}}
{"line":"journal","agent":"a"}
{"line":"event","seq":7,"at":1003,"kind":"message","body":{"a":1}}"#,
        );
        write("heard.jsonl", r#"{"at":2600,"event":"Stop","pid":6}"#);
        write(
            "faults.jsonl",
            r#"{"at":2000,"role":"runtime","pid":5,"what":"KILL","failpoint":"before-x"}"#,
        );
        write(
            "model.jsonl",
            r#"{"at":1500,"n":1,"accepted":true,"finished":false,"body":{"messages":[1,2]},"violations":[]}"#,
        );
        write(
            "clients/0.jsonl",
            "{\"client\":\"cli\",\"args\":[\"send\",\"ada\"],\"at\":1}\n{\"at\":2500,\"saw\":\"exit\",\"code\":null,\"signal\":9}\n",
        );
        let timeline = of(run.path(), 1_000_000);
        let lines: Vec<&str> = timeline.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "0.001  request  1 of 2 messages, accepted, interrupted []",
                "0.002  fault    KILL of runtime 5 before-x",
                "0.002  client   signal 9: send ada (since 0 ms)",
                "0.002  hook     Stop (pid 6)",
                r#"0.003  event    ada 7 message {"a":1}"#,
            ]
        );
    }
}
