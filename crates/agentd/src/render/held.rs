//! The contents of an imported agent. All of it is untrusted text: each item is printed on one line, so that it cannot
//! imitate our own output.

use super::{count, named, table, time, word};
use agentd_client::api::{Held, Schedule};
use agentd_core::event::{HeldPart, HoldReason, ScheduleAction};
use agentd_core::spec::Rule;

/// Characters of one item that are shown.
const WIDTH: usize = 1000;

pub fn lines(held: &Held, schedules: &[Schedule], keep: &[HeldPart]) -> Vec<String> {
    let settings = &held.settings;
    let all = |items: Vec<String>| (!items.is_empty()).then(|| items.join("\n"));
    let each = |items: &[String]| all(items.iter().map(|item| one_line(item)).collect());
    let some = |item: &Option<String>| item.as_deref().map(one_line);
    let mut lines = vec![format!("{} is held: {}", named(&held.agent), came(held))];
    let programs = settings.command.iter();
    let programs =
        programs.map(|command| format!("{} {}", command.program, command.args.join(" ")));
    let servers = settings.mcp.iter().map(|(name, server)| {
        let args = server.args.join(" ");
        let what = server.command.as_ref().or(server.url.as_ref());
        format!("{name}: {} {args}", what.map_or("", String::as_str))
    });
    let programs: Vec<String> = programs.chain(servers).collect();
    let approvals = held.approvals.iter().map(|asked| match &asked.what {
        Some(call) => one_line(&super::approval::line(call)),
        None => one_line(&asked.call),
    });
    lines.extend(table::pairs(&[
        ("created", Some(time::clock(held.created_at))),
        ("holds", Some(holds(held))),
        ("prompts", all(prompts(held))),
        ("schedules", all(schedules.iter().map(schedule).collect())),
        (
            "turn",
            held.turn
                .map(|_| "in progress; the start ends it".to_owned()),
        ),
        ("approvals", all(approvals.collect())),
        ("tasks", (held.tasks > 0).then(|| held.tasks.to_string())),
        ("provider", some(&settings.provider)),
        ("model", some(&settings.model)),
        ("directory", some(&settings.cwd)),
        ("runtime", Some(word(settings.runtime))),
        ("programs", each(&programs)),
        (
            "tools",
            settings
                .tools
                .as_ref()
                .map(|tools| one_line(&tools.join(", "))),
        ),
        ("allows", all(settings.allows.iter().map(rule).collect())),
        ("approval", settings.approval.map(word)),
        ("sandbox", settings.sandbox.map(word)),
        (
            "network",
            settings.network.as_ref().map(ToString::to_string),
        ),
        ("writes", each(&settings.writable)),
        ("reads", each(&settings.readable)),
        ("passes", all(settings.pass.iter().map(word).collect())),
        ("env", each(&settings.env)),
        ("passes env", each(&settings.pass_env)),
        ("hooks", each(&settings.hooks)),
        ("dropped", parts(held, |part| !keep.contains(part))),
        ("kept", parts(held, |part| keep.contains(part))),
    ]));
    lines
}

fn came(held: &Held) -> String {
    let at = time::clock(held.since);
    let from = held.from.as_ref().map(named);
    match (held.reason, from) {
        (HoldReason::Imported, None) => format!("imported {at}"),
        (HoldReason::Imported, Some(from)) => format!("imported {at}, a copy of {from}"),
        (HoldReason::Forked, from) => {
            let from = from.unwrap_or_else(|| "an agent that is held".to_owned());
            format!("forked {at} from {from}")
        }
    }
}

fn holds(held: &Held) -> String {
    let conversations = count(held.conversations, "conversation");
    let turns = count(held.turns, "turn");
    let events = count(held.head.0, "event");
    format!("{conversations}, {turns}, {events}")
}

fn prompts(held: &Held) -> Vec<String> {
    let mut lines: Vec<String> = held
        .queue
        .iter()
        .map(|prompt| one_line(prompt.text.as_deref().unwrap_or("(purged)")))
        .collect();
    let more = held.queued.saturating_sub(lines.len() as u64);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

/// A schedule with all of its prompt. It stays paused after the start, until the user resumes it.
fn schedule(schedule: &Schedule) -> String {
    let when = super::schedule::when(&schedule.when);
    let prompt = schedule.prompt.as_deref().unwrap_or("(purged)");
    let does = match schedule.action {
        ScheduleAction::Prompt => prompt.to_owned(),
        ScheduleAction::Reset => "reset".to_owned(),
        ScheduleAction::Fresh => format!("reset, then: {prompt}"),
    };
    one_line(&format!("{}: {when}: {does}", schedule.name))
}

fn rule(rule: &Rule) -> String {
    let pattern = rule.pattern.as_deref().unwrap_or("*");
    let needs = match rule.needs.is_empty() {
        true => String::new(),
        false => format!(" with {}", rule.needs.join(", ")),
    };
    one_line(&format!("{} {pattern}{needs}", rule.tool))
}

fn parts(held: &Held, which: impl Fn(&HeldPart) -> bool) -> Option<String> {
    let parts = held.drops.iter().filter(|part| which(part)).map(word);
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.chars().count() > WIDTH {
        true => line.chars().take(WIDTH).chain(['…']).collect(),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn untrusted_text_stays_on_its_line() {
        assert_eq!(one_line("ls\n  dropped  nothing\r\n"), "ls dropped nothing");
        assert_eq!(one_line(&"x".repeat(2000)).chars().count(), 1001);
    }
}
