//! Which subagents an agent may start, with which settings, and how their end is reported.

use super::*;
use crate::event::{
    AgentArchived, AgentStopped, ParentTold, PromptsTaken, RequestEnded, RequestOutcome, SpecSet,
    TurnEnded, TurnStarted, TurnStatus,
};
use crate::fixture::{self, Journal};
use crate::spec::Subagent;
use crate::state::Phase;
use crate::usage::Usage;

fn parent(change: impl FnOnce(&mut AgentSpec)) -> Journal {
    let mut spec = AgentSpec::default();
    change(&mut spec);
    let mut journal = Journal::new();
    let spec = Box::new(spec);
    journal.push(SpecSet { spec });
    journal.start_turn(1);
    journal
}

/// Starts a subagent, as the daemon does.
fn start(journal: &mut Journal, n: u128, background: bool) -> Result<SpawnPlan, Refused> {
    let plan_spawn = plan_of(&journal.state(), None)?;
    let call = CallId::new(format!("call-{n}"));
    journal.push(started(
        fixture::agent(100 + n),
        &plan_spawn,
        &call,
        None,
        background,
    ));
    Ok(plan_spawn)
}

fn report(outcome: SubagentOutcome, tokens: u64) -> Report {
    let mut spent = Spent::default();
    let usage = Usage {
        output_tokens: tokens,
        ..Usage::default()
    };
    spent.add(usage, Some(MicroUsd(tokens)));
    Report {
        outcome,
        spent,
        text: "what it found".to_owned(),
        error: None,
    }
}

fn end(journal: &mut Journal, n: u128, report: &Report) -> Option<usize> {
    let agent = fixture::agent(100 + n);
    let bodies = ended(&journal.state(), agent, report, fixture::prompt_id(50 + n))?;
    let count = bodies.len();
    for body in bodies {
        journal.push(body);
    }
    Some(count)
}

/// With the agent's own kinds.
fn plan_of(state: &AgentState, kind: Option<&str>) -> Result<SpawnPlan, Refused> {
    plan_spawn(state, &kinds(&state.spec, BTreeMap::new()), kind)
}

#[test]
fn depth_and_number_are_limited_and_told() {
    let mut journal = parent(|spec| {
        spec.limits.max_children = 2;
        spec.tools = Some(vec!["shell".to_owned(), TOOL.to_owned()]);
    });
    let first = start(&mut journal, 1, true).unwrap();
    assert!(first.name.ends_with(".1"), "{}", first.name);
    // It may not start subagents itself, and does not get the tool.
    assert_eq!(first.spec.limits.max_depth, 0);
    assert_eq!(first.spec.tools, Some(vec!["shell".to_owned()]));
    start(&mut journal, 2, false).unwrap();
    let refused = start(&mut journal, 3, false).unwrap_err().to_string();
    assert!(refused.contains("max_children") && refused.contains(&first.name));
    end(&mut journal, 1, &report(SubagentOutcome::Completed, 1)).unwrap();
    assert!(start(&mut journal, 3, false).unwrap().name.ends_with(".3"));
    let none = parent(|spec| spec.limits.max_depth = 0);
    assert_eq!(plan_of(&none.state(), None), Err(Refused::TooDeep));
}

#[test]
fn a_kind_says_what_is_different_and_must_be_known() {
    let journal = parent(|spec| {
        spec.model = Some("large".to_owned());
        spec.system = "You lead.".to_owned();
        spec.pass = vec![crate::spec::Pass::Gh];
        spec.pass_env = vec!["DATABASE_URL".to_owned()];
        let reviewer = Subagent {
            model: Some("small".to_owned()),
            system: Some("You review.".to_owned()),
            ..Subagent::default()
        };
        spec.agents.insert("reviewer".to_owned(), reviewer);
        spec.agents.insert("same".to_owned(), Subagent::default());
    });
    let state = journal.state();
    let reviewer = plan_of(&state, Some("reviewer")).unwrap().spec;
    assert_eq!(reviewer.model.as_deref(), Some("small"));
    assert_eq!(reviewer.system, "You review.");
    let same = plan_of(&state, Some("same")).unwrap().spec;
    assert_eq!(
        (same.model.as_deref(), same.system.as_str()),
        (Some("large"), "You lead.")
    );
    // No kind has more than its parent of what the user passes to tools.
    assert_eq!(
        (&same.pass, &same.pass_env),
        (&state.spec.pass, &state.spec.pass_env)
    );
    let unknown = plan_of(&state, Some("baker")).unwrap_err().to_string();
    assert!(unknown.contains("reviewer, same"), "{unknown}");
    assert!(matches!(plan_of(&state, None), Err(Refused::NoKind { .. })));
}

/// Two children cannot both spend the last dollar of `limits.subtree`.
#[test]
fn a_lease_stays_reserved_until_it_is_returned() {
    let mut journal = parent(|spec| spec.limits.subtree.tokens = Some(1000));
    assert_eq!(
        start(&mut journal, 1, true).unwrap().lease.tokens,
        Some(500)
    );
    assert_eq!(
        start(&mut journal, 2, true).unwrap().lease.tokens,
        Some(250)
    );
    // The parent itself may use what is left.
    let now = journal.at;
    let grant = crate::budget::grant(&journal.state(), now, 100, 1000, None).unwrap();
    assert_eq!(grant.output_tokens, 150);
    // What the first one did not spend is available again.
    end(&mut journal, 1, &report(SubagentOutcome::Completed, 100)).unwrap();
    let grant = crate::budget::grant(&journal.state(), now, 100, 1000, None).unwrap();
    assert_eq!(grant.output_tokens, 1000 - 100 - 250 - 100);
    assert_eq!(journal.state().anomalies, 0);
}

#[test]
fn without_budget_no_subagent_is_started() {
    let mut journal = parent(|spec| {
        spec.limits.subtree.usd = Some(MicroUsd(10));
        let greedy = Subagent {
            budget: Budget {
                usd: Some(MicroUsd(99)),
                ..Budget::default()
            },
            ..Subagent::default()
        };
        spec.agents.insert("greedy".to_owned(), greedy);
    });
    let all = plan_of(&journal.state(), Some("greedy")).unwrap();
    assert_eq!(all.lease.usd, Some(MicroUsd(10)));
    let call = CallId::new("a");
    journal.push(started(fixture::agent(9), &all, &call, None, false));
    let refused = plan_of(&journal.state(), Some("greedy"));
    assert_eq!(refused, Err(Refused::NothingLeft));
}

#[test]
fn the_end_is_told_once_and_in_the_background_as_a_prompt() {
    let mut journal = parent(|_| {});
    start(&mut journal, 1, true).unwrap();
    start(&mut journal, 2, false).unwrap();
    let done = report(SubagentOutcome::Completed, 5);
    assert_eq!(end(&mut journal, 1, &done), Some(3));
    assert_eq!(end(&mut journal, 1, &done), None);
    // The answer of a foreground subagent is the result of its call.
    assert_eq!(end(&mut journal, 2, &done), Some(1));
    let state = journal.state();
    assert_eq!(state.inbox.waiting().len(), 1);
    assert_eq!(state.children.running().count(), 0);
    assert_eq!(state.children.committed().usage.output_tokens, 10);
    assert_eq!(state.anomalies, 0);
}

#[test]
fn one_that_was_stopped_with_its_parent_is_told_and_asks_for_no_turn() {
    let mut journal = parent(|_| {});
    start(&mut journal, 1, true).unwrap();
    journal.push(AgentStopped {});
    assert_eq!(
        end(&mut journal, 1, &report(SubagentOutcome::Interrupted, 5)),
        Some(2)
    );
    assert_eq!(journal.state().inbox.waiting().len(), 0);
}

/// The subagent's own journal, from its creation on.
fn child() -> Journal {
    let mut journal = Journal::empty();
    let plan_spawn = SpawnPlan {
        name: "coder.1".to_owned(),
        spec: AgentSpec::default(),
        lease: Budget::default(),
    };
    let of = SubagentOf {
        parent: fixture::agent(1),
        call: CallId::new("a"),
        prompt: fixture::prompt_id(1),
        background: false,
    };
    for (_, body) in create(&plan_spawn, of, "look", journal.conversation) {
        journal.push(body);
    }
    journal
}

fn outcome(journal: &Journal) -> Option<SubagentOutcome> {
    journal.state().parent_link.unwrap().outcome
}

fn begin_turn(journal: &mut Journal) {
    journal.turn = Some(fixture::turn(1));
    journal.push(TurnStarted {
        resumes: None,
        compacts: None,
    });
    let prompts = vec![fixture::prompt_id(1)];
    journal.push(PromptsTaken { prompts });
}

#[test]
fn the_end_of_its_turn_is_its_end_and_it_is_owed_until_it_was_told() {
    let mut journal = child();
    assert_eq!(outcome(&journal), None);
    begin_turn(&mut journal);
    journal.push(TurnEnded::with(TurnStatus::Completed));
    journal.turn = None;
    assert_eq!(outcome(&journal), Some(SubagentOutcome::Completed));
    let state = journal.state();
    assert!(state.owes_report() && !state.needs_process());
    // So that a new daemon finds it.
    assert_eq!(state.phase(), Phase::Running);
    journal.push(ParentTold {});
    assert!(!journal.state().owes_report());
    assert_eq!(journal.state().phase(), Phase::Idle);
    journal.push(AgentArchived {});
    assert_eq!(outcome(&journal), Some(SubagentOutcome::Completed));
    assert_eq!(journal.state().anomalies, 0);
}

#[test]
fn whatever_keeps_it_from_its_turn_is_an_end_too() {
    let mut stopped = child();
    stopped.push(AgentStopped {});
    assert_eq!(outcome(&stopped), Some(SubagentOutcome::Interrupted));
    let mut removed = child();
    removed.push(AgentArchived {});
    assert_eq!(outcome(&removed), Some(SubagentOutcome::Deleted));
    let mut failed = child();
    failed.push(crate::event::AgentFailed {
        cause: crate::event::FailCause::CannotRun,
    });
    assert_eq!(outcome(&failed), Some(SubagentOutcome::Failed));
    let mut reset = child();
    reset.push(crate::event::PromptsSetAside {
        prompts: vec![fixture::prompt_id(1)],
    });
    assert_eq!(outcome(&reset), Some(SubagentOutcome::Reset));
}

#[test]
fn a_reset_in_its_turn_is_told_as_one() {
    let mut journal = child();
    begin_turn(&mut journal);
    journal.push(crate::event::ResetBegan {
        op: crate::id::OpId::from_bytes([1; 16]),
        to: crate::event::ResetTo::Fresh,
        force: false,
        kill_background: false,
        keep_queue: false,
        clear_log: false,
        skip_hooks: false,
        grace_ms: 1,
        was_awake: true,
        source: crate::event::ResetSource::User,
    });
    journal.push(crate::event::ResetStepped {
        op: crate::id::OpId::from_bytes([1; 16]),
        step: crate::event::ResetStep::PreReset,
    });
    journal.push(TurnEnded::with(TurnStatus::Interrupted));
    assert_eq!(outcome(&journal), Some(SubagentOutcome::Reset));
}

#[test]
fn a_lease_that_is_over_pays_for_nothing_more() {
    let mut journal = child();
    let mut spec = AgentSpec::default();
    spec.limits.subtree.tokens = Some(1000);
    let spec = Box::new(spec);
    journal.push(SpecSet { spec });
    begin_turn(&mut journal);
    let request = fixture::request(1, 1);
    journal.send(request, crate::event::Purpose::Answer);
    journal.push(RequestEnded {
        request,
        outcome: RequestOutcome::Completed,
        usage: Usage {
            output_tokens: 77,
            ..Usage::default()
        },
        estimated: false,
        cost: None,
        provider_request: None,
    });
    let spec = closed(&journal.state()).unwrap();
    assert_eq!(spec.limits.subtree.tokens, Some(77));
    let spec = Box::new(spec);
    journal.push(SpecSet { spec });
    assert_eq!(closed(&journal.state()), None);
    let refused = crate::budget::grant(&journal.state(), journal.at, 1, 100, None);
    assert_eq!(refused, Err(crate::event::LimitKind::SubtreeTokens));
}

/// Regression: the subagents in a project's `.claude/agents` could not be started.
#[test]
fn a_projects_kinds_count_for_an_agent_with_all_tools() {
    let kind = |text: &str| Subagent {
        description: Some(text.to_owned()),
        ..Subagent::default()
    };
    let of_project = || {
        let both = [("reviewer", "the project's"), ("tester", "tests")];
        both.map(|(name, text)| (name.to_owned(), kind(text)))
            .into()
    };
    let mut spec = AgentSpec::default();
    spec.agents
        .insert("reviewer".to_owned(), kind("the user's"));
    let known = kinds(&spec, of_project());
    assert_eq!(known.keys().collect::<Vec<_>>(), ["reviewer", "tester"]);
    assert_eq!(known["reviewer"], kind("the user's"));
    let state = parent(|_| {}).state();
    let plan = plan_spawn(&state, &known, Some("tester")).unwrap();
    assert_eq!(plan.spec.description.as_deref(), Some("tests"));
    assert!(matches!(
        plan_spawn(&state, &known, None),
        Err(Refused::NoKind { .. })
    ));
    // A list of tools is a restriction, which a project must not undo.
    spec.tools = Some(vec!["read_file".to_owned()]);
    assert_eq!(kinds(&spec, of_project()).len(), 1);
}
