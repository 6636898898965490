//! Every wire format passes the same suite with the strict fake model.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what it did, and panics where it cannot go on"
)]

use agentd_core::catalog::Catalog;
use agentd_core::draft::{Change, Delta, Reply};
use agentd_core::event::{
    Body, Context, Event, FailureClass, MessageAdded, MessageStatus, NewEvent, Prompt,
    PromptsTaken, ResultAdded, StopReason, Tool,
};
use agentd_core::id::{AgentId, ConversationId, Incarnation, PromptId, Seq, TryId};
use agentd_core::message::{Arguments, Block, CallOutcome, Wire};
use agentd_core::request::answer;
use agentd_core::time::Timestamp;
use agentd_core::window::Window;
use agentd_core::wire::stream::End;
use agentd_runtime::provider::{Demo, Failure, Key, Options, Overrides, Provider, connect, read};
use agentd_testkit::model::script::Item;
use agentd_testkit::model::{FakeModel, Format, reply};
use agentd_testkit::oracle;
use serde_json::json;
use std::time::Duration;

const FORMATS: [(Wire, Format); 4] = [
    (Wire::AnthropicMessages, Format::Anthropic),
    (Wire::OpenaiChat, Format::OpenaiChat),
    (Wire::OpenaiResponses, Format::OpenaiResponses),
    (Wire::Gemini, Format::Gemini),
];

/// A conversation that a test builds: prompts, replies and results, as in a journal.
struct Talk {
    model: FakeModel,
    provider: Provider,
    context: Context,
    window: Window,
    events: u64,
    tries: u64,
}

impl Talk {
    fn new(wire: Wire, format: Format) -> Self {
        let model = FakeModel::start().unwrap();
        let key = Some(Key::new("sk-canary"));
        let options = Options::new(wire, model.base_url(format), key);
        Self {
            provider: Provider::new(options).unwrap(),
            model,
            context: context(wire),
            window: Window::new(),
            events: 0,
            tries: 0,
        }
    }

    fn event(&mut self, body: impl Into<Body>) {
        self.events += 1;
        let event: Event = NewEvent {
            at: Timestamp::from_millis(0),
            conversation: ConversationId::from_bytes([1; 16]),
            turn: None,
            body: body.into(),
        }
        .placed(AgentId::from_bytes([2; 16]), Seq(self.events));
        self.window.apply(&event);
    }

    fn prompt(&mut self, text: &str) {
        let prompt = PromptId::from_bytes([self.events as u8; 16]);
        let blocks = vec![Block::text(text)];
        self.event(Prompt { prompt, blocks });
        let prompts = vec![prompt];
        self.event(PromptsTaken { prompts });
    }

    /// Sends the request, and adds the reply as the machine does.
    async fn ask(&mut self) -> (Vec<Delta>, Result<End, Failure>) {
        let request = answer(&self.window, &self.context).expect("something awaits an answer");
        assert_eq!(request.repairs, []);
        let mut deltas = Vec::new();
        let end = self
            .provider
            .stream(&request, |delta| deltas.push(delta))
            .await;
        if end.is_ok() {
            self.tries += 1;
            let mut reply = Reply::default();
            deltas.iter().cloned().for_each(|delta| reply.apply(delta));
            let (incarnation, n) = (Incarnation(1), self.tries);
            let blocks = reply.finish(TryId { incarnation, n }, self.window.call_ids());
            let (request, status, stop) = (None, MessageStatus::Complete, None);
            self.event(MessageAdded {
                request,
                status,
                stop,
                blocks,
            });
        }
        (deltas, end)
    }

    fn answer_calls(&mut self) -> usize {
        let calls: Vec<_> = self.window.open_calls().cloned().collect();
        for call in &calls {
            let (call, outcome) = (call.id.clone(), CallOutcome::Ok);
            let blocks = vec![Block::text("done")];
            self.event(ResultAdded {
                call,
                outcome,
                blocks,
            });
        }
        calls.len()
    }

    fn assert_all_accepted(&self) {
        let refused = self.model.refused();
        assert!(refused.is_empty(), "{refused:#?}");
    }
}

fn context(wire: Wire) -> Context {
    Context {
        provider: "fake".into(),
        wire,
        model: "fake-1".into(),
        system: "You are under test.".into(),
        kept: None,
        tools: vec![Tool {
            name: "shell".into(),
            description: "Runs a command.".into(),
            parameters: json!({"type": "object", "properties": {"command": {"type": "string"}}}),
        }],
        server_tools: Vec::new(),
        max_output_tokens: 1000,
        temperature: None,
        thinking_tokens: None,
        effort: None,
        verbosity: None,
        fast: false,
        omits: Vec::new(),
    }
}

/// Runs one scenario in every format.
fn in_every_format(scenario: impl AsyncFn(Talk)) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    for (wire, format) in FORMATS {
        println!("{wire:?}");
        runtime.block_on(scenario(Talk::new(wire, format)));
    }
}

fn failure(outcome: Result<End, Failure>) -> Failure {
    outcome.expect_err("it was told to fail")
}

/// goose#7850, goose#7962: one streamed reply is one message, whatever the deltas.
#[test]
fn text_in_any_number_of_deltas_is_one_message() {
    in_every_format(async |mut talk| {
        let words = "word ".repeat(50);
        for (count, before) in [1, 2, 7, 60, 240].into_iter().zip((0..).step_by(2)) {
            talk.prompt(&format!("do: deltas {count} | say {words}"));
            let (deltas, end) = talk.ask().await;
            let end = end.unwrap();
            assert_eq!(end.stop, StopReason::EndTurn);
            assert!(end.usage.unwrap().output_tokens > 0);
            assert!(deltas.len() >= count / 2, "{count}");
            assert_eq!(talk.window.last_text(), words.trim());
            let items = talk.window.items().len();
            assert_eq!(items, before + 2, "a prompt and one message");
        }
        talk.prompt("and again");
        talk.ask().await.1.unwrap();
        talk.assert_all_accepted();
    });
}

#[test]
fn thinking_and_unknown_blocks_make_the_round_trip() {
    in_every_format(async |mut talk| {
        let call = r#"call shell {"command": "ls"}"#;
        talk.prompt(&format!(
            "do: think hm | native | say so | {call} ;; say done"
        ));
        talk.ask().await.1.unwrap();
        assert_eq!(talk.answer_calls(), 1);
        talk.ask().await.1.unwrap();
        assert_eq!(talk.window.last_text(), "done");
        talk.assert_all_accepted();
        let requests = talk.model.requests();
        let second = requests[1].body.to_string();
        let expected: &[&str] = match talk.context.wire {
            Wire::AnthropicMessages => &["c2lnbmF0dXJl", "redacted_thinking"],
            Wire::OpenaiChat => &["refusal"],
            Wire::OpenaiResponses => &["ZW5jcnlwdGVk", "refusal"],
            Wire::Gemini => &["thoughtSignature", "executableCode"],
        };
        for word in expected {
            assert!(second.contains(word), "{word} did not come back: {second}");
        }
    });
}

#[test]
fn calls_side_by_side_keep_their_arguments() {
    in_every_format(async |mut talk| {
        let call = |n: u32| format!("call shell {{\"command\": \"echo 'ä€{n}'\"}}");
        talk.prompt(&format!(
            "do: {} | {} | {} ;; say all three",
            call(1),
            call(2),
            call(3)
        ));
        let (_, end) = talk.ask().await;
        assert_eq!(end.unwrap().stop, StopReason::ToolUse);
        let calls: Vec<_> = talk.window.open_calls().cloned().collect();
        assert_eq!(calls.len(), 3);
        for (call, n) in calls.iter().zip(1..) {
            let expected = json!({"command": format!("echo 'ä€{n}'")});
            assert_eq!(call.arguments, Arguments::parse(&expected.to_string()));
        }
        talk.answer_calls();
        talk.ask().await.1.unwrap();
        assert_eq!(talk.window.last_text(), "all three");
        talk.assert_all_accepted();
    });
}

/// The body of a streamed reply with everything that a chunk boundary could split.
fn body(format: Format) -> Vec<u8> {
    let call = |command: &str| Item::Call {
        name: "shell".into(),
        arguments: json!({"command": command}),
    };
    let items = [
        Item::Thinking("hm ä€".into()),
        Item::Text {
            text: "so: 🦀".into(),
            deltas: 3,
            pause: Duration::ZERO,
        },
        call("echo \"ä€🦀\\n\""),
        call("ls"),
    ];
    let reply = reply::Reply {
        model: "m",
        items: &items,
        number: 1,
        signature: "c2lnbmF0dXJl".to_owned(),
        input_tokens: 1,
    };
    let events = reply::stream(format, &reply).into_iter();
    events.flat_map(|event| event.text().into_bytes()).collect()
}

/// The message that results from a body which arrives in these chunks.
async fn message(wire: Wire, chunks: Vec<&[u8]>) -> Vec<Block> {
    let chunks = chunks.into_iter().map(Ok::<_, std::io::Error>);
    let mut reply = Reply::default();
    let body = futures_util::stream::iter(chunks);
    let end = read(wire, body, |delta| reply.apply(delta)).await.unwrap();
    assert_eq!(end.stop, StopReason::ToolUse);
    let (incarnation, n) = (Incarnation(1), 1);
    reply.finish(TryId { incarnation, n }, [])
}

#[test]
fn a_body_that_is_cut_at_any_byte_is_read_the_same() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for (wire, format) in FORMATS {
        let body = body(format);
        let whole = runtime.block_on(message(wire, vec![&body]));
        let calls: Vec<_> = whole.iter().filter_map(Block::as_call).collect();
        let first = json!({"command": "echo \"ä€🦀\\n\""}).to_string();
        assert_eq!(calls[0].arguments, Arguments::parse(&first));
        assert_eq!(calls.len(), 2);
        for at in 0..=body.len() {
            let (before, after) = body.split_at(at);
            let cut = runtime.block_on(message(wire, vec![before, after]));
            assert_eq!(cut, whole, "{wire:?}, cut at {at} of {}", body.len());
        }
        let bytes = runtime.block_on(message(wire, body.chunks(1).collect()));
        assert_eq!(bytes, whole, "{wire:?}, byte by byte");
    }
}

#[test]
fn arguments_come_whole_over_a_connection_in_chunks_of_any_size() {
    in_every_format(async |mut talk| {
        let expected = json!({"command": "echo 'ä€🦀' \"quoted\""}).to_string();
        for size in [1, 2, 3, 5, 64] {
            talk.prompt(&format!(
                "do: chunks {size} | say ä€🦀 | call shell {expected}"
            ));
            talk.ask().await.1.unwrap();
            let calls: Vec<_> = talk.window.open_calls().cloned().collect();
            assert_eq!(calls.len(), 1);
            assert_eq!(calls[0].arguments, Arguments::parse(&expected));
            talk.answer_calls();
            talk.ask().await.1.unwrap();
        }
        talk.assert_all_accepted();
    });
}

/// A real provider would accept every request of a conversation with the demo model, and the next prompt.
#[test]
fn a_conversation_with_the_demo_model_can_be_taken_to_any_provider() {
    in_every_format(async |mut talk| {
        talk.provider = Provider::demo(Demo {
            pause: Duration::ZERO,
        });
        for prompt in [
            "run `ls`; then count to 3; then run `pwd`",
            "hello",
            "go on",
        ] {
            talk.prompt(prompt);
            loop {
                let request = answer(&talk.window, &talk.context).unwrap();
                let body = agentd_core::wire::encode(&request);
                let verdict = match talk.context.wire {
                    Wire::AnthropicMessages => oracle::anthropic::check(&body),
                    Wire::OpenaiChat => oracle::openai_chat::check(&body),
                    Wire::OpenaiResponses => oracle::openai_responses::check(&body),
                    Wire::Gemini => oracle::gemini::check(&body),
                };
                assert_eq!(verdict, Ok(()), "{body:#}");
                talk.ask().await.1.unwrap();
                if talk.answer_calls() == 0 {
                    break;
                }
            }
        }
    });
}

#[test]
fn the_catalog_s_choice_becomes_a_provider() {
    let catalog = Catalog::built_in();
    for (name, variable, format) in [
        ("anthropic", "ANTHROPIC", Format::Anthropic),
        ("openai", "OPENAI", Format::OpenaiResponses),
        ("openai-chat", "OPENAI", Format::OpenaiChat),
        ("gemini", "GEMINI", Format::Gemini),
    ] {
        let choice = catalog.resolve(Some(name), Some("fake-1")).unwrap();
        let wire = choice.provider.wire;
        let mut talk = Talk::new(wire, format);
        let base_url = talk.model.base_url(format);
        let env = |asked: &str| match asked {
            "GOOGLE_GEMINI_BASE_URL" => Some(base_url.clone()),
            _ if asked == format!("{variable}_BASE_URL") => Some(base_url.clone()),
            _ if asked == format!("{variable}_API_KEY") => Some("sk-canary".to_owned()),
            _ => None,
        };
        let (provider, key) = connect(&choice, &env, Overrides::default()).unwrap();
        assert_eq!(key, Some(Key::new("sk-canary")));
        talk.provider = provider;
        talk.prompt("hello");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(talk.ask()).1.unwrap();
        talk.assert_all_accepted();
        // Without its key it says so; with one from elsewhere it looks for none.
        let error = connect(&choice, &|_| None, Overrides::default())
            .err()
            .unwrap();
        assert!(error.is_missing_key(), "{error}");
        let overrides = Overrides {
            base_url: Some(base_url.clone()),
            key: Some(Key::new("k")),
            ..Overrides::default()
        };
        assert!(connect(&choice, &|_| None, overrides).is_ok());
        let not_an_address = Overrides {
            base_url: Some("nowhere".into()),
            ..Overrides::default()
        };
        let error = connect(&choice, &env, not_an_address).err().unwrap();
        assert!(!error.is_missing_key() && !format!("{error:?}").contains("canary"));
    }
    let demo = catalog.resolve(Some("demo"), None).unwrap();
    let (_, key) = connect(&demo, &|_| None, Overrides::default()).unwrap();
    assert_eq!(key, None);
}

#[test]
fn failures_say_what_to_do_next() {
    in_every_format(async |mut talk| {
        talk.prompt("do: fail 429 7 | fail 529 | fail 500 | say at last");
        let limited = failure(talk.ask().await.1);
        assert_eq!(limited.class, FailureClass::RateLimited);
        assert_eq!(
            (limited.status, limited.retry_after_ms),
            (Some(429), Some(7000))
        );
        assert_eq!(failure(talk.ask().await.1).class, FailureClass::Overloaded);
        assert_eq!(failure(talk.ask().await.1).class, FailureClass::Unavailable);
        talk.ask().await.1.unwrap();
        assert_eq!(talk.window.last_text(), "at last");
        talk.assert_all_accepted();
    });
}

#[test]
fn a_stream_that_breaks_or_is_garbled_is_a_failed_try() {
    in_every_format(async |mut talk| {
        talk.prompt("do: drop 4 | malformed | deltas 8 | say one two three four five");
        let (deltas, end) = talk.ask().await;
        assert_eq!(failure(end).class, FailureClass::Dropped);
        let text = deltas
            .iter()
            .any(|delta| matches!(delta.change, Change::Text { .. }));
        assert!(text, "what had come before was handed out");
        assert_eq!(failure(talk.ask().await.1).class, FailureClass::Malformed);
        talk.ask().await.1.unwrap();
        assert_eq!(talk.window.last_text(), "one two three four five");
    });
}

#[test]
fn a_request_that_is_too_long_is_told_from_a_bad_one() {
    in_every_format(async |mut talk| {
        talk.prompt("do: overflow 10 | say never");
        assert_eq!(
            failure(talk.ask().await.1).class,
            FailureClass::ContextOverflow
        );
        talk.prompt("do: dance");
        assert_eq!(failure(talk.ask().await.1).class, FailureClass::Rejected);
    });
}

#[test]
fn letting_go_of_a_request_closes_its_stream() {
    in_every_format(async |mut talk| {
        talk.prompt("do: hang");
        let waiting = tokio::time::timeout(Duration::from_millis(200), talk.ask()).await;
        assert!(waiting.is_err(), "it hangs");
        let seen = async {
            while talk.model.disconnects() == 0 {
                // tidy: polls
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), seen)
            .await
            .expect("the server sees that the client has gone");
    });
}

#[test]
fn without_a_key_the_answer_is_unauthorized_and_with_one_it_is_never_repeated() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    for (wire, format) in FORMATS {
        let mut talk = Talk::new(wire, format);
        runtime.block_on(async {
            let mut options = Options::new(wire, talk.model.base_url(format), None);
            options.key_env = vec!["SOME_KEY".to_owned()];
            talk.provider = Provider::new(options).unwrap();
            talk.prompt("hello");
            let refused = failure(talk.ask().await.1);
            assert_eq!(refused.class, FailureClass::Unauthorized);
            assert!(
                refused.detail.contains("`agentd secret set SOME_KEY`"),
                "{}",
                refused.detail
            );
            // No server listens there. The failure contains the reason, and not the key.
            let key = Some(Key::new("sk-canary"));
            let options = Options::new(wire, "http://127.0.0.1:1", key);
            talk.provider = Provider::new(options).unwrap();
            let failure = failure(talk.ask().await.1);
            assert_eq!(failure.class, FailureClass::Unreachable);
            let whom = "cannot reach http://127.0.0.1:1: Connection refused";
            assert!(failure.detail.starts_with(whom), "{}", failure.detail);
            assert!(!format!("{failure:?}").contains("canary"));
        });
    }
}
