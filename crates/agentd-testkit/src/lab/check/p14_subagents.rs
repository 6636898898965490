//! P14: the end of a subagent is reported to its parent once, and correctly; no subagent is without an owner, and its
//! parent is charged what it spent. A fork inherits nothing that runs in its parent, and is told so.

use super::evidence::Event;
use super::story::{PromptStatus, Story};
use super::{Case, Found};
use serde_json::Value;

const P: &str = "P14";

const TOKENS: &[&str] = &[
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
];

pub fn check(case: &Case<'_>, found: &mut Found) {
    for story in &case.stories {
        let started = story.events.iter().filter(|it| it.is("subagent_started"));
        for started in started {
            one_end(case, story, started, found);
        }
        for of in story.events.iter().filter(|it| it.is("subagent_of")) {
            owned(case, story, of, found);
        }
        forked(story, found);
    }
}

fn ends<'a>(story: &Story<'a>, child: &str) -> Vec<&'a Event> {
    let ends = story.events.iter().filter(|it| it.is("subagent_ended"));
    ends.filter(|it| it.text("agent") == child).collect()
}

/// The parent knows how it ended, once, and correctly.
fn one_end(case: &Case<'_>, story: &Story<'_>, started: &Event, found: &mut Found) {
    let (child, name) = (started.text("agent"), started.text("name"));
    let mut wrong = |what: String, at: &[u64]| found.add(P, story.agent, what, at);
    let again = story.events.iter().filter(|it| {
        it.is("subagent_started") && it.text("agent") == child && it.seq < started.seq
    });
    if again.count() > 0 {
        wrong(format!("subagent {name} was started twice"), &[started.seq]);
    }
    let ends = ends(story, child);
    let at: Vec<u64> = ends.iter().map(|it| it.seq).collect();
    let Some(ended) = ends.first() else {
        return wrong(
            format!("the end of subagent {name} was not reported to its parent"),
            &[started.seq],
        );
    };
    if ends.len() > 1 {
        wrong(
            format!(
                "the end of subagent {name} was reported {} times",
                ends.len()
            ),
            &at,
        );
    }
    let outcome = ended.text("outcome");
    let Some(own) = case.story(child) else {
        // It may have been cancelled before it was created.
        if outcome != "interrupted" {
            wrong(
                format!("subagent {name} is {outcome}, but has no journal"),
                &at,
            );
        }
        return;
    };
    let really = really(own);
    if really.is_some_and(|really| really != outcome) {
        let really = really.unwrap_or_default();
        wrong(
            format!("subagent {name} ended as {really}, but was reported as {outcome}"),
            &at,
        );
    }
    answered(story, started, ended, found);
    budget(story, own, started, ended, found);
}

/// How it ended according to its own journal; none if that cannot be determined.
fn really<'a>(own: &Story<'a>) -> Option<&'a str> {
    let of = own.events.iter().find(|it| it.is("subagent_of"))?;
    let prompt = own.prompts.get(of.text("prompt"))?;
    match (prompt.status, prompt.taken.last()) {
        (PromptStatus::Aside, _) => Some("reset"),
        (_, None) if own.archived => Some("deleted"),
        (_, None) => own.stopped.then_some("interrupted"),
        (_, Some((_, turn))) => {
            let (_, status) = own.turn(turn)?.ended.first()?;
            let by_reset = own.resets.iter().any(|reset| !reset.began.is_empty());
            (!by_reset && !own.archived).then_some(*status)
        }
    }
}

/// A subagent in the background answers by a prompt, or by a notice if the model need not act on it.
fn answered(story: &Story<'_>, started: &Event, ended: &Event, found: &mut Found) {
    let name = started.text("name");
    let is_behind = started.body["background"] == true;
    let prompt = ended.body["prompt"].as_str();
    let mark = format!("The subagent {name} ");
    let by_prompt = story
        .prompts
        .values()
        .filter(|it| it.words.join("\n").starts_with(&mark));
    let notices = story.events.iter().filter(|it| it.is("notice"));
    let by_notice = notices.filter(|it| it.text("text").starts_with(&mark));
    let times = by_prompt.count() + by_notice.count();
    if is_behind && times != 1 {
        let what = format!("the answer of subagent {name} came {times} times");
        found.add(P, story.agent, what, &[ended.seq]);
    }
    if !is_behind && (times != 0 || prompt.is_some()) {
        let what = format!("subagent {name} was waited for, but answers again");
        found.add(P, story.agent, what, &[ended.seq]);
    }
}

/// Its parent is charged with what it used, and that is not more than its lease.
fn budget(story: &Story<'_>, own: &Story<'_>, started: &Event, ended: &Event, found: &mut Found) {
    let name = started.text("name");
    let total = |usage: &Value| -> u64 {
        let tokens = TOKENS.iter().filter_map(|name| usage[*name].as_u64());
        tokens.sum()
    };
    let ends = own.events.iter().filter(|it| it.is("request_ended"));
    let mut used: u64 = ends.map(|it| total(&it.body["usage"])).sum();
    // The usage of its own subagents counts too.
    let below = own.events.iter().filter(|it| it.is("subagent_ended"));
    used += below
        .map(|it| total(&it.body["spent"]["usage"]))
        .sum::<u64>();
    let charged = total(&ended.body["spent"]["usage"]);
    if used != charged {
        let what =
            format!("subagent {name} used {used} tokens, but its parent is charged {charged}");
        found.add(P, story.agent, what, &[ended.seq]);
    }
    if let Some(lease) = started.body["lease"]["tokens"].as_u64()
        && used > lease
    {
        let what = format!("subagent {name} used {used} tokens, but its lease was {lease}");
        found.add(P, story.agent, what, &[started.seq]);
    }
}

/// Both journals record the relation.
fn owned(case: &Case<'_>, own: &Story<'_>, of: &Event, found: &mut Found) {
    let parent = of.text("parent");
    let Some(story) = case.story(parent) else {
        let what = format!("its parent {parent} does not exist");
        return found.add(P, own.agent, what, &[of.seq]);
    };
    let mut started = story.events.iter().filter(|it| it.is("subagent_started"));
    if !started.any(|it| it.text("agent") == own.agent) {
        let what = format!("its parent {parent} does not know it");
        found.add(P, own.agent, what, &[of.seq]);
    }
    let told = own.events.iter().filter(|it| it.is("parent_told"));
    let told: Vec<u64> = told.map(|it| it.seq).collect();
    let is_over = !ends(story, own.agent).is_empty();
    if told.len() != usize::from(is_over) {
        let what = format!(
            "it has recorded {} times that its parent knows how it ended",
            told.len()
        );
        found.add(P, own.agent, what, &told);
    }
}

/// It begins with one notice that says so, and without tasks or questions.
fn forked(story: &Story<'_>, found: &mut Found) {
    let mut began = story.events.iter().filter(|it| it.is("conversation_began"));
    let Some(began) = began.find(|it| it.text("source") == "fork") else {
        return;
    };
    let events = story.events.iter();
    let before: Vec<&Event> = events.take_while(|it| !it.is("turn_started")).collect();
    let told = before.iter().filter(|it| it.text("cause") == "branched");
    let told = told.count();
    if told != 1 {
        let what = format!("a fork is told {told} times that it is one");
        found.add(P, story.agent, what, &[began.seq]);
    }
    for kind in ["task_started", "approval_requested", "tool_started"] {
        for event in before.iter().filter(|it| it.is(kind)) {
            let what = format!("a fork begins with `{kind}`");
            found.add(P, story.agent, what, &[event.seq]);
        }
    }
}
