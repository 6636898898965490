//! Which call a question belongs to, how many there may be, and what becomes of one that is given up.

use super::*;
use futures_util::FutureExt as _;
use serde_json::{Map, json};
use std::pin::pin;

type News = mpsc::UnboundedReceiver<ToolNews>;

fn asker() -> (Asker, News) {
    let (sender, news) = mpsc::unbounded_channel();
    (Asker::new("fs", sender, Secrets::new(Vec::new())), news)
}

fn form(description: &str) -> ElicitRequestParams {
    let name = json!({"type": "string", "description": description});
    let schema = json!({"type": "object", "properties": {"name": name}});
    let params = json!({"mode": "form", "message": "Who?", "requestedSchema": schema});
    serde_json::from_value(params).unwrap()
}

fn asked(news: &mut News) -> ToolQuestion {
    match news.try_recv() {
        Ok(ToolNews::Asks(asks)) => asks,
        other => panic!("{other:?}"),
    }
}

fn is_declined(result: Option<ElicitResult>) -> bool {
    result.is_some_and(|it| matches!(it.action, ElicitationAction::Decline))
}

#[test]
fn a_question_that_the_server_gives_up_is_withdrawn() {
    let (asker, mut news) = asker();
    let call = CallId::new("a");
    let running = asker.runs(call.clone());
    let mut waits = running.waits();
    let first = {
        let mut ask = pin!(asker.ask(&call, form("A name.")));
        assert!(ask.as_mut().now_or_never().is_none());
        let asks = asked(&mut news);
        assert!(*waits.borrow_and_update());
        asks
    };
    assert!(!*waits.borrow_and_update());
    match news.try_recv() {
        Ok(ToolNews::Withdraws(approval)) => assert_eq!(approval, first.approval),
        other => panic!("{other:?}"),
    }
    // The next question has an id of its own, and gets its own reply.
    let mut ask = pin!(asker.ask(&call, form("A name.")));
    assert!(ask.as_mut().now_or_never().is_none());
    let second = asked(&mut news);
    assert_ne!(second.approval, first.approval);
    let content = Map::from_iter([("name".to_owned(), Value::from("Ann"))]);
    second.reply.send(QuestionReply::Accept(content)).unwrap();
    let result = ask.now_or_never().unwrap();
    assert_eq!(result.content, Some(json!({"name": "Ann"})));
    // One that was answered is not withdrawn.
    assert!(news.try_recv().is_err());
}

/// The protocol gives content to forms only, and servers refuse it in the answer to a page.
#[test]
fn the_answer_to_a_page_has_no_content() {
    let (asker, mut news) = asker();
    let call = CallId::new("a");
    let _running = asker.runs(call.clone());
    let params = json!({"mode": "url", "message": "Log in", "url": "https://example.com", "elicitationId": "e"});
    let page = serde_json::from_value(params).unwrap();
    let mut ask = pin!(asker.ask(&call, page));
    assert!(ask.as_mut().now_or_never().is_none());
    let accepted = QuestionReply::Accept(Map::new());
    asked(&mut news).reply.send(accepted).unwrap();
    let result = ask.now_or_never().unwrap();
    assert!(matches!(result.action, ElicitationAction::Accept));
    assert_eq!(result.content, None);
}

#[test]
fn a_call_asks_a_limited_number_of_questions() {
    let (asker, mut news) = asker();
    let call = CallId::new("a");
    let _running = asker.runs(call.clone());
    for _ in 0..MOST_QUESTIONS {
        let mut ask = pin!(asker.ask(&call, form("A name.")));
        assert!(ask.as_mut().now_or_never().is_none());
        asked(&mut news).reply.send(QuestionReply::Decline).unwrap();
        assert!(is_declined(ask.now_or_never()));
    }
    let one_more = asker.ask(&call, form("A name."));
    assert!(is_declined(one_more.now_or_never()));
    assert!(news.try_recv().is_err());
}

/// A question would be withdrawn with its call, so it must be the call that asks.
#[test]
fn a_question_belongs_to_the_call_that_asks() {
    let (asker, mut news) = asker();
    let [a, b] = ["a", "b"].map(CallId::new);
    assert!(is_declined(
        asker.ask_for_only_call(form("A name.")).now_or_never()
    ));
    let _first = asker.runs(a.clone());
    {
        let _second = asker.runs(b);
        let unclear = asker.ask_for_only_call(form("A name."));
        assert!(is_declined(unclear.now_or_never()));
        assert!(news.try_recv().is_err());
        let mut ask = pin!(asker.ask(&a, form("A name.")));
        assert!(ask.as_mut().now_or_never().is_none());
        assert_eq!(asked(&mut news).call, a);
    }
    // The sender of that question was dropped, and the future with it.
    while news.try_recv().is_ok() {}
    let mut ask = pin!(asker.ask_for_only_call(form("A name.")));
    assert!(ask.as_mut().now_or_never().is_none());
    assert_eq!(asked(&mut news).call, a);
}

/// What waits for its turn is a question within its limits, not what the server sent.
#[test]
fn a_large_question_is_declined_before_it_waits() {
    let (asker, mut news) = asker();
    let call = CallId::new("a");
    let _running = asker.runs(call.clone());
    let mut first = pin!(asker.ask(&call, form("A name.")));
    assert!(first.as_mut().now_or_never().is_none());
    let asks = asked(&mut news);
    let large = asker.ask(&call, form(&"x".repeat(2 * FORM_BYTES)));
    assert!(is_declined(large.now_or_never()));
    // A small one waits for its turn.
    let mut second = pin!(asker.ask(&call, form("A name.")));
    assert!(second.as_mut().now_or_never().is_none());
    assert!(news.try_recv().is_err());
    drop(asks.reply);
    assert!(is_declined(first.now_or_never()));
    assert!(second.as_mut().now_or_never().is_none());
    asked(&mut news);
}

#[test]
fn progress_is_one_short_line() {
    let (asker, mut news) = asker();
    let token = rmcp::model::ProgressToken(rmcp::model::NumberOrString::Number(1));
    let mut report = ProgressNotificationParam::new(token, 1.0);
    report.total = Some(f64::NAN);
    report.message = Some(format!("read\n\u{1b}[31mmore {}", "é".repeat(500)));
    asker.progress(&CallId::new("a"), &report);
    let Ok(ToolNews::Progress(shown)) = news.try_recv() else {
        panic!();
    };
    assert_eq!((shown.progress, shown.total), (1.0, None));
    let text = shown.message.unwrap();
    assert!(text.starts_with("read [31mmore é"), "{text}");
    assert!(text.len() <= PROGRESS_BYTES && !text.contains('\n'));
    report.progress = f64::INFINITY;
    asker.progress(&CallId::new("a"), &report);
    assert!(news.try_recv().is_err());
}
