//! Prompts as frames on standard input or a named pipe, and replies as messages.

use super::judge::{count, judge, messages, text_of};
use super::process::until;
use super::test_agent::{FORMATS, TestAgent};
use agentd_testkit::model::Format;
use rustix::process::Signal;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileTypeExt as _;

#[test]
fn a_reply_of_any_number_of_deltas_is_one_message() {
    // goose#7850, #7962, #7966: every token was a row
    for format in FORMATS {
        let harness = TestAgent::new(format);
        let text = "some words ".repeat(2000);
        for deltas in [1, 7, 1000] {
            let prompt = format!("do: deltas {deltas} | say {text}");
            let run = match deltas {
                1 => harness.run(),
                _ => harness.run().resume(),
            };
            let ended = run.prompt(&prompt).ended();
            assert_eq!(ended.of_kind("message").len(), 1, "{deltas}");
        }
        let events = judge(&harness, &[]);
        assert_eq!(count(&events, "message"), 3);
        for message in messages(&events) {
            assert_eq!(text_of(&message.blocks), text.trim_end());
        }
    }
}

#[test]
fn frames_are_answered_in_order_with_what_was_sent_along() {
    let harness = TestAgent::new(Format::Anthropic);
    let mut agent = harness.run().open().start();
    agent.send("do: say raw");
    agent.send(r#"{"v":1,"turn_id":"t-1","input":"do: say framed","metadata":{"k":[1,2]}}"#);
    // The end of the input ends the last frame, too.
    agent.send_bytes(b"do: say last");
    agent.close();
    let ended = agent.ended();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    let results = ended.of_kind("turn_result");
    let texts: Vec<_> = results.iter().map(|line| &line["text"]).collect();
    assert_eq!(texts, ["raw", "framed", "last"]);
    assert_eq!(results[1]["turn_id"], "t-1");
    assert_eq!(results[1]["metadata"]["k"][1], 2);
    assert!(results[0]["turn_id"].is_null());
    judge(&harness, &[&ended]);
}

#[test]
fn a_prompt_that_is_sent_twice_is_delivered_once_even_after_a_kill() {
    let harness = TestAgent::new(Format::Anthropic);
    let frame = r#"{"v":1,"turn_id":"t-1","input":"do: say once"}"#;
    let mut agent = harness.run().open().start();
    agent.send(frame);
    agent.turn_result(0);
    agent.send(frame);
    agent.line("remark", |line| line["remark"] == "repeated");
    let killed = agent.kill();
    let mut agent = harness.run().resume().open().start();
    agent.send(frame);
    agent.line("remark", |line| line["remark"] == "repeated");
    agent.close();
    let resumed = agent.ended();
    assert_eq!(resumed.code, Some(0), "{resumed:#?}");
    assert_eq!(harness.model.requests().len(), 1);
    let events = judge(&harness, &[&killed, &resumed]);
    assert_eq!(count(&events, "prompt"), 1);
}

#[test]
fn what_cannot_be_read_is_told_and_the_next_frame_is_answered() {
    let harness = TestAgent::new(Format::Anthropic);
    let mut agent = harness.run().open().start();
    let bad: [(&str, Vec<u8>); 5] = [
        ("frame_too_large", vec![b'a'; 1024 * 1024 + 1]),
        ("frame_not_text", vec![0xff, 0xfe]),
        ("frame_version", br#"{"v":9,"input":"x"}"#.to_vec()),
        ("frame_malformed", br#"{"v":1,"colour":"red"}"#.to_vec()),
        ("frame_empty", b"  \n ".to_vec()),
    ];
    for (n, (kind, mut bytes)) in bad.into_iter().enumerate() {
        bytes.push(0);
        agent.send_bytes(&bytes);
        let told = agent.nth_line(kind, n, |line| line["kind"] == "error");
        assert_eq!(told["error"]["kind"], kind);
        assert!(
            told["error"]["message"]
                .as_str()
                .is_some_and(|it| !it.is_empty())
        );
        agent.send(&format!("do: say answer {n}"));
        assert_eq!(agent.turn_result(n)["text"], format!("answer {n}"));
    }
    agent.close();
    let ended = agent.ended();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    judge(&harness, &[&ended]);
}

#[test]
fn files_come_with_a_frame_on_every_wire() {
    let pdf = "JVBERi0xLjQgPDwvVHlwZS9QYWdlPj4=";
    let png = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAAA=";
    let frame = |data: &str| {
        format!(
            r#"{{"v":1,"input":"do: say seen","attachments":[
                {{"name":"a.pdf","data":"{pdf}"}},
                {{"name":"a.png","media_type":"image/png","data":"{data}"}}]}}"#
        )
    };
    for format in FORMATS {
        let harness = TestAgent::new(format);
        let mut agent = harness.run().open().start();
        agent.send(&frame("UEsDBP8="));
        let told = agent.nth_line("a refusal", 0, |line| line["kind"] == "error");
        assert_eq!(told["error"]["kind"], "attachment_refused");
        agent.send(&frame(png));
        assert_eq!(agent.turn_result(0)["text"], "seen");
        agent.close();
        assert_eq!(agent.ended().code, Some(0));
        let requests = harness.model.requests();
        assert_eq!(requests.len(), 1);
        let body = requests[0].body.to_string();
        assert!(body.contains(png), "{format:?}");
        // It is not known whether a server that is only compatible accepts PDFs.
        let is_left_out = body.contains("this model accepts no PDFs");
        assert_eq!(is_left_out, format == Format::OpenaiChat, "{body}");
        assert_eq!(body.contains(pdf), !is_left_out);
        judge(&harness, &[]);
    }
}

#[test]
fn prompts_come_through_a_named_pipe_from_one_writer_after_another() {
    let harness = TestAgent::new(Format::Anthropic);
    let pipe = harness.path().join("prompts");
    let agent = harness.run().arg("--fifo").arg(&pipe).start();
    until("the pipe", || {
        let metadata = fs::metadata(&pipe).ok()?;
        metadata.file_type().is_fifo().then_some(())
    });
    for n in 0..3 {
        let mut writer = fs::File::options().write(true).open(&pipe).unwrap();
        writer
            .write_all(format!("do: say answer {n}\0").as_bytes())
            .unwrap();
        drop(writer);
        assert_eq!(agent.turn_result(n)["text"], format!("answer {n}"));
    }
    agent.signal(Signal::TERM);
    let ended = agent.ended();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    judge(&harness, &[&ended]);
}

#[test]
fn a_pipe_that_is_a_file_is_refused() {
    let harness = TestAgent::new(Format::Anthropic);
    let file = harness.path().join("file");
    fs::write(&file, "do: say one\0").unwrap();
    let ended = harness.run().arg("--fifo").arg(&file).ended();
    assert_eq!(ended.code, Some(2), "{ended:#?}");
    assert_eq!(harness.model.requests().len(), 0);
}

#[test]
fn a_reader_that_goes_away_does_not_end_the_turn() {
    let harness = TestAgent::new(Format::Anthropic);
    let command = r#"call shell {"command": "echo a >> effects"}"#;
    let prompt = format!("do: slowly 20 a b c d | {command} ;; say done");
    let ended = harness.run().prompt(&prompt).deaf().ended();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert_eq!(harness.effects(), ["a"]);
    let events = judge(&harness, &[&ended]);
    assert_eq!(count(&events, "turn_ended"), 1);
}
