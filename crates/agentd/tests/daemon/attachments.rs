//! Files that are attached to prompts: on every wire, and through everything that can happen to a prompt.

use crate::hooks_fixture::{file, keep_and, until_heard, user};
use crate::test_daemon::{KEY, TestDaemon};
use agentd_client::api::{
    Archive, Compact, EditPrompt, Fork, NewAttachment, Purge, Reset, Send, Sent, Start,
};
use agentd_client::{Error, Kind as ProblemKind};
use agentd_core::event::{Body, Kind};
use agentd_core::message::{AttachedFile, Attachment, Block};
use agentd_core::spec::AgentSpec;
use agentd_testkit::model::Format;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

const TEXT: &str = "do: say seen";

fn png(filler: usize) -> Vec<u8> {
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0\0\0\x01\0\x08\x02\0\0\0".to_vec();
    // Bytes that do not compress, as in a real image.
    let mut seed: u32 = 7;
    png.extend((0..filler).map(|_| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as u8
    }));
    png
}

fn pdf() -> Vec<u8> {
    b"%PDF-1.4\n\xe2\xe3 1 0 obj <</Type/Page>> endobj trailer".to_vec()
}

fn attached(name: &str, bytes: &[u8]) -> NewAttachment {
    NewAttachment::of_bytes(name, bytes)
}

/// The three kinds of files.
fn three() -> Vec<NewAttachment> {
    vec![
        attached("chart.png", &png(40_000)),
        attached("paper.pdf", &pdf()),
        attached("notes.md", b"# some notes of the user\n"),
    ]
}

fn try_send(
    daemon: &TestDaemon,
    name: &str,
    (text, key): (&str, Option<&str>),
    attachments: Vec<NewAttachment>,
) -> Result<Sent, Error> {
    let send = Send {
        text: text.to_owned(),
        key: key.map(str::to_owned),
        attachments,
        env: daemon.caller(),
        ..Send::default()
    };
    daemon.block(daemon.client().send(name, &send))
}

fn send(daemon: &TestDaemon, name: &str, text: &str, files: Vec<NewAttachment>) -> Sent {
    try_send(daemon, name, (text, None), files).unwrap()
}

fn refused(result: Result<Sent, Error>) -> (ProblemKind, String) {
    match result {
        Err(Error::Problem(problem)) => (problem.kind, problem.title),
        other => panic!("{other:?}"),
    }
}

/// The attachments in an agent's journal, in order.
fn recorded(daemon: &TestDaemon, name: &str) -> Vec<Attachment> {
    let events = daemon.events(name).into_iter();
    let blocks = events.flat_map(|event| match event.body {
        Body::Prompt(prompt) => prompt.blocks,
        _ => Vec::new(),
    });
    let files = blocks.filter_map(|block| block.as_attachment().cloned());
    files.collect()
}

fn names(files: &[Attachment]) -> Vec<&str> {
    files.iter().map(|file| file.name.as_str()).collect()
}

/// The last request, as text.
fn last_request(daemon: &TestDaemon) -> String {
    daemon.requests().last().unwrap().body.to_string()
}

#[test]
fn an_image_a_pdf_and_a_text_reach_the_model_of_every_provider() {
    for (provider, model, format) in [
        ("anthropic", "claude-sonnet-5-5", Format::Anthropic),
        ("openai", "gpt-5", Format::OpenaiResponses),
        ("openai-chat", "gpt-5", Format::OpenaiChat),
        ("gemini", "gemini-2.5-pro", Format::Gemini),
    ] {
        let daemon = TestDaemon::new();
        let openai = daemon.model.base_url(Format::OpenaiChat);
        let gemini = daemon.model.base_url(Format::Gemini);
        for (name, value) in [
            ("OPENAI_API_KEY", KEY),
            ("OPENAI_BASE_URL", openai.as_str()),
            ("GEMINI_API_KEY", KEY),
            ("GOOGLE_GEMINI_BASE_URL", gemini.as_str()),
        ] {
            daemon.caller_env(name, value);
        }
        let spec = AgentSpec {
            provider: Some(provider.to_owned()),
            model: Some(model.to_owned()),
            ..daemon.spec()
        };
        daemon.create_with("coder", spec);
        let sent = send(&daemon, "coder", TEXT, three());
        assert_eq!(daemon.answer("coder", sent.prompt).text, "seen");
        let requests = daemon.requests();
        assert_eq!(requests[0].format, format);
        let body = requests[0].body.to_string();
        for bytes in [png(40_000), pdf()] {
            assert!(body.contains(&STANDARD.encode(bytes)), "{provider}");
        }
        assert!(body.contains("some notes of the user"), "{provider}");
        assert!(
            body.contains("[attached: chart.png, 41 KB image]"),
            "{provider}"
        );
        let part = match format {
            Format::Anthropic => "\"type\":\"document\"",
            Format::OpenaiChat => "data:application/pdf;base64,",
            Format::OpenaiResponses => "\"type\":\"input_file\"",
            Format::Gemini => "\"mimeType\":\"application/pdf\"",
        };
        assert!(body.contains(part), "{provider}");
        // The next request begins with the same messages.
        daemon.completed("coder", "do: say more");
        assert!(last_request(&daemon).contains(&STANDARD.encode(pdf())));
        daemon.verify();
    }
}

#[test]
fn one_key_with_other_files_is_a_conflict() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let keyed = |files| try_send(&daemon, "coder", (TEXT, Some("k")), files);
    let first = keyed(three()).unwrap();
    assert!(!first.repeated);
    daemon.answer("coder", first.prompt);
    let again = keyed(three()).unwrap();
    assert!(again.repeated && again.prompt == first.prompt);
    let mut other = three();
    other[0] = attached("chart.png", &png(40_001));
    for files in [other, vec![], three()[..2].to_vec()] {
        assert_eq!(refused(keyed(files)).0, ProblemKind::Conflict);
    }
    let mut renamed = three();
    renamed[2].name = "other.md".to_owned();
    assert_eq!(refused(keyed(renamed)).0, ProblemKind::Conflict);
    assert_eq!(daemon.count("coder", Kind::Prompt), 1);
}

#[test]
fn a_model_without_an_input_is_told_that_a_file_was_left_out() {
    let daemon = TestDaemon::empty();
    let config = "[models.\"some-model\"]\nimages = false\npdf = false\n";
    std::fs::write(daemon.home().join("config.toml"), config).unwrap();
    daemon.start_daemon();
    daemon.create("coder");
    let sent = send(&daemon, "coder", TEXT, three());
    assert_eq!(daemon.answer("coder", sent.prompt).text, "seen");
    let body = last_request(&daemon);
    for expected in [
        "[attached: chart.png, 41 KB image] It is not included: this model accepts no images.",
        "It is not included: this model accepts no PDFs.",
        "some notes of the user",
    ] {
        assert!(body.contains(expected), "{body}");
    }
    assert!(!body.contains(&STANDARD.encode(pdf())));
    // The journal has everything: another model can be chosen.
    assert_eq!(recorded(&daemon, "coder").len(), 3);
    std::fs::remove_file(daemon.home().join("config.toml")).unwrap();
    daemon
        .block(daemon.client().restart("coder", &Default::default()))
        .unwrap();
    daemon.completed("coder", "do: say more");
    assert!(last_request(&daemon).contains(&STANDARD.encode(pdf())));
}

#[test]
fn what_the_provider_would_refuse_is_refused_at_once() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let spec = AgentSpec {
        provider: Some("gemini".to_owned()),
        model: Some("gemini-2.5-pro".to_owned()),
        ..daemon.spec()
    };
    daemon.create_with("other", spec);
    let one = |name: &str, file: NewAttachment| {
        refused(try_send(&daemon, name, (TEXT, None), vec![file]))
    };
    let (kind, title) = one("coder", attached("huge.png", &png(4_000_000)));
    assert_eq!(kind, ProblemKind::TooLarge, "{title}");
    assert!(
        title.contains("huge.png") && title.contains("5242880"),
        "{title}"
    );
    let gif = || attached("a.gif", b"GIF89a\x01\0\x01\0\0\0\0;");
    let (kind, title) = one("other", gif());
    assert_eq!(kind, ProblemKind::Invalid, "{title}");
    let (kind, _) = one("coder", attached("a.zip", b"PK\x03\x04\xff"));
    assert_eq!(kind, ProblemKind::Invalid);
    let mut not_base64 = gif();
    not_base64.data.push('!');
    assert_eq!(one("coder", not_base64).0, ProblemKind::Invalid);
    // More than a body may have.
    let huge = attached("huge.pdf", &vec![b'a'; 31 * 1024 * 1024]);
    assert_eq!(one("coder", huge).0, ProblemKind::TooLarge);
    assert_eq!(daemon.count("coder", Kind::Prompt), 0);
    assert_eq!(daemon.count("other", Kind::Prompt), 0);
    // A conversation holds only so much: five images of 5 MB, and no sixth.
    for _ in 0..5 {
        let sent = send(
            &daemon,
            "coder",
            TEXT,
            vec![attached("a.png", &png(3_900_000))],
        );
        daemon.answer("coder", sent.prompt);
    }
    let (kind, title) = one("coder", attached("a.png", &png(3_900_000)));
    assert_eq!(kind, ProblemKind::TooLarge, "{title}");
    let _all_accepted = daemon.requests();
}

#[test]
fn fork_export_import_and_undo_keep_files_and_a_purge_removes_them() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let sent = send(&daemon, "coder", TEXT, three());
    daemon.answer("coder", sent.prompt);
    let first = daemon.show("coder").conversation.unwrap().id;
    let files = recorded(&daemon, "coder");
    assert_eq!(names(&files), ["chart.png", "paper.pdf", "notes.md"]);
    let image = STANDARD.encode(png(40_000));
    let AttachedFile::Image { data, .. } = &files[0].file else {
        panic!("{:?}", files[0]);
    };
    assert_eq!(data, &image);
    // A fork shares the events of its parent, and its first prompt can have files too.
    let fork = Fork {
        name: Some("twin".to_owned()),
        prompt: Some("do: say twin".to_owned()),
        attachments: vec![attached("more.txt", b"a file of the fork\n")],
        env: daemon.caller(),
        ..Fork::default()
    };
    let forked = daemon.block(daemon.client().fork("coder", &fork)).unwrap();
    assert_eq!(daemon.answer("twin", forked.prompt.unwrap()).text, "twin");
    let body = last_request(&daemon);
    assert!(body.contains(&image) && body.contains("a file of the fork"));
    // An export is complete.
    let exported = daemon.cli(&["export", "coder", "-"]);
    let path = daemon.root().join("coder.jsonl.zst");
    std::fs::write(&path, &exported.stdout).unwrap();
    let imported = daemon.cli(&["import", path.to_str().unwrap(), "--as", "copy"]);
    assert!(imported.status.success(), "{imported:?}");
    assert_eq!(recorded(&daemon, "copy"), files);
    // An undo returns to a conversation with its files.
    let client = daemon.client();
    daemon
        .block(client.reset("coder", &Reset::default()))
        .unwrap();
    let undo = Reset {
        step: Some(agentd_core::event::Direction::Undo),
        ..Reset::default()
    };
    daemon.block(client.reset("coder", &undo)).unwrap();
    daemon.completed("coder", "do: say again");
    assert!(last_request(&daemon).contains(&image));
    // A compaction takes them out of the context.
    let compact = Compact::default();
    daemon.block(client.compact("coder", &compact)).unwrap();
    daemon.completed("coder", "do: say after");
    assert!(!last_request(&daemon).contains(&image));
    daemon
        .block(client.reset("coder", &Reset::default()))
        .unwrap();
    // The fork needs the conversation for as long as it has its own.
    daemon
        .block(client.archive("twin", &Archive::default()))
        .unwrap();
    daemon
        .block(client.purge("twin", &Purge::default()))
        .unwrap();
    let purge = Purge {
        conversation: Some(first),
        ..Purge::default()
    };
    daemon.block(client.purge("coder", &purge)).unwrap();
    assert_eq!(recorded(&daemon, "coder"), []);
    daemon.verify();
}

#[test]
fn an_edit_keeps_the_files_and_hooks_see_their_names() {
    let daemon = TestDaemon::new();
    user(&daemon, &file(&[("UserPromptSubmit", keep_and("true"))]));
    daemon.create("coder");
    let hanging = daemon.send("coder", "do: hang");
    daemon.until_kind("coder", Kind::RequestSent);
    let sent = send(&daemon, "coder", "do: say old", three());
    let client = daemon.client();
    let queue = daemon.block(client.queue("coder")).unwrap();
    assert_eq!(queue.prompts[0].text, "do: say old");
    let shown: Vec<String> = queue.prompts[0]
        .attachments
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        shown,
        [
            "[attached: chart.png, 41 KB image]",
            "[attached: paper.pdf, 49 bytes PDF]",
            "[attached: notes.md, 25 bytes text]"
        ]
    );
    let edit = EditPrompt {
        prompt: sent.prompt.to_string(),
        text: "do: say new".to_owned(),
        edits: Some(0),
    };
    let queue = daemon.block(client.edit_prompt("coder", &edit)).unwrap();
    assert_eq!(queue.prompts[0].attachments.len(), 3);
    daemon.block(client.interrupt("coder")).unwrap();
    daemon.answer("coder", hanging.prompt);
    assert_eq!(daemon.answer("coder", sent.prompt).text, "new");
    let body = last_request(&daemon);
    assert!(body.contains(&STANDARD.encode(png(40_000))) && !body.contains("say old"));
    let heard = until_heard(&daemon, "UserPromptSubmit");
    assert_eq!(
        heard["attachments"][1],
        json!({"name": "paper.pdf", "media_type": "application/pdf", "bytes": 49})
    );
    assert!(!heard.to_string().contains(&STANDARD.encode(pdf())));
}

#[test]
fn a_turn_with_files_survives_its_processes() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let script = r#"do: call shell {"command": "echo once >> effects"} ;; hang"#;
    let sent = send(&daemon, "coder", script, three());
    daemon.until_kind("coder", Kind::ResultAdded);
    daemon.kill_runtime("coder");
    daemon.kill_daemon();
    daemon.start_daemon();
    let start = Start::with(daemon.caller());
    daemon
        .block(daemon.client().merge_env("coder", &start))
        .unwrap();
    let requests = crate::test_daemon::until("the request again", || {
        let requests = daemon.requests();
        (requests.len() >= 3).then_some(requests)
    });
    // The new process sends the same file at the same place.
    let first = &requests[0].body["messages"][0]["content"];
    let last = &requests[requests.len() - 1].body["messages"][0]["content"];
    assert_eq!(
        first[2]["source"]["data"],
        json!(STANDARD.encode(png(40_000)))
    );
    assert_eq!(first[2]["source"], last[2]["source"]);
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    daemon.answer("coder", sent.prompt);
    assert_eq!(recorded(&daemon, "coder").len(), 3);
    assert_eq!(daemon.effects(), ["once"]);
    let text = Block::text(script);
    let prompts = daemon.events("coder").into_iter().filter(
        |event| matches!(&event.body, Body::Prompt(prompt) if prompt.blocks.first() == Some(&text)),
    );
    assert_eq!(prompts.count(), 1);
    daemon.verify();
}
