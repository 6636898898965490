//! `--attach`.

use super::test_cli::TestCli;
use std::fs;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x02\0\0\0";

fn prompts(cli: &TestCli, name: &str) -> Vec<serde_json::Value> {
    let events = cli.lines(&["logs", name]).into_iter();
    let prompts = events.filter(|event| event["kind"] == "prompt");
    prompts
        .map(|event| event["body"]["blocks"].clone())
        .collect()
}

#[test]
fn files_are_attached_by_every_command_that_takes_a_prompt() {
    let cli = TestCli::new();
    fs::write(cli.work().join("chart.png"), PNG).unwrap();
    fs::write(cli.work().join("notes.md"), "some notes\n").unwrap();
    let attach = ["--attach", "chart.png", "--attach", "notes.md"];
    let demo = ["--provider", "demo"];
    let ran = cli.json(&[&["run"][..], &demo, &attach, &["hello"]].concat());
    let name = ran["agent"]["name"].as_str().unwrap().to_owned();
    let blocks = &prompts(&cli, &name)[0];
    assert_eq!(blocks[0]["text"], "hello");
    assert_eq!(blocks[1]["name"], "chart.png");
    assert_eq!(blocks[1]["media_type"], "image/png");
    assert_eq!(blocks[2]["text"], "some notes\n");
    cli.json(&[&["run", "--continue"][..], &attach, &["again"]].concat());
    let create = ["create", "coder", "--prompt", "hello"];
    cli.ok(&[&create[..], &demo, &attach].concat());
    cli.ok(&[&["send", "coder", "more"][..], &attach].concat());
    let all = prompts(&cli, "coder");
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|blocks| blocks[2]["name"] == "notes.md"));
    let log = cli.ok(&["logs", "coder"]);
    assert!(
        log.contains("[attached: chart.png, 29 bytes image]"),
        "{log}"
    );
    let prompt = log.split("I'll list").next().unwrap();
    assert!(!prompt.contains("some notes"), "{log}");
    // Without a daemon.
    let agent = ["agent", "--json", "--checkpoint-dir", "state", "hello"];
    let lines = cli.ok(&[&agent[..], &demo, &attach].concat());
    assert!(lines.contains("\"type\":\"attachment\""), "{lines}");
}

#[test]
fn what_cannot_be_attached_is_refused_before_anything_happens() {
    let cli = TestCli::with_coder();
    fs::write(cli.work().join("a.zip"), b"PK\x03\x04\xff\xfe").unwrap();
    fs::write(cli.work().join("empty"), b"").unwrap();
    let text = cli.refused(2, &["send", "coder", "x", "--attach", "nothing.png"]);
    assert!(text.contains("nothing.png"), "{text}");
    cli.refused(2, &["send", "coder", "x", "--attach", "."]);
    let text = cli.refused(2, &["send", "coder", "x", "--attach", "a.zip"]);
    assert!(text.contains("neither UTF-8 text"), "{text}");
    cli.refused(2, &["send", "coder", "x", "--attach", "empty"]);
    cli.refused(
        2,
        &["create", "other", "--provider", "demo", "--attach", "a.zip"],
    );
    cli.refused(2, &["agent", "--provider", "demo", "--attach", "a.zip"]);
    let huge = fs::File::create(cli.work().join("huge.png")).unwrap();
    huge.set_len(100 * 1024 * 1024).unwrap();
    let text = cli.refused(3, &["send", "coder", "x", "--attach", "huge.png"]);
    assert!(text.contains("huge.png"), "{text}");
    assert_eq!(prompts(&cli, "coder").len(), 0);
}

#[test]
fn a_queued_prompt_shows_its_files_and_one_key_covers_them() {
    let cli = TestCli::with_coder();
    fs::write(cli.work().join("a.txt"), "one").unwrap();
    fs::write(cli.work().join("b.txt"), "two").unwrap();
    cli.ok(&["stop", "coder"]);
    let send = |file: &str| {
        let args = [
            "send",
            "coder",
            "--no-wait",
            "--key",
            "k",
            "hello",
            "--attach",
        ];
        cli.run(&[&args[..], &[file]].concat())
    };
    assert_eq!(send("a.txt").code, Some(0));
    assert_eq!(send("a.txt").code, Some(0));
    assert_eq!(send("b.txt").code, Some(3));
    let queue = cli.ok(&["queue", "coder"]);
    assert!(
        queue.contains("hello [attached: a.txt, 3 bytes text]"),
        "{queue}"
    );
    let queue = cli.json(&["queue", "coder"]);
    assert_eq!(queue["prompts"][0]["attachments"][0]["name"], "a.txt");
    cli.ok(&["queue", "edit", "coder", "1", "other words"]);
    let queue = cli.json(&["queue", "coder"]);
    assert_eq!(queue["prompts"][0]["text"], "other words");
    assert_eq!(queue["prompts"][0]["attachments"][0]["bytes"], 3);
}

#[test]
fn a_file_that_the_model_does_not_accept_is_mentioned() {
    let cli = TestCli::new();
    fs::write(cli.work().join("chart.png"), PNG).unwrap();
    let config = "[models.blind]\nimages = false\n";
    fs::write(cli.home().join("config.toml"), config).unwrap();
    let attach = ["--provider", "demo", "--attach", "chart.png", "count to 2"];
    let warning = "warning: blind accepts no images: chart.png is not included";
    let ran = cli.run(&[&["run", "--model", "blind"][..], &attach].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.err.contains(warning), "{ran:#?}");
    let ran = cli.run(&[&["run"][..], &attach].concat());
    assert!(!ran.err.contains("warning"), "{ran:#?}");
}
