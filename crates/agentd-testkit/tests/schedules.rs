//! Schedules on virtual time: whatever the clock, the daemon and the agent do, each due time is handled at most once, in
//! order, and none is forgotten.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by panicking"
)]

use agentd_core::event::*;
use agentd_core::id::{AgentId, ConversationId, PromptId, ScheduleId, Seq, TurnId};
use agentd_core::message::Block;
use agentd_core::schedule::{
    Attempt, Attempts, Due, Firing, MOST_CAUGHT_UP, Verdict, events, next_firing,
};
use agentd_core::state::AgentState;
use agentd_core::time::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;
use uuid::Uuid;

/// 2026-01-01.
const START: i64 = 1_767_225_600_000;
const ZONES: [&str; 5] = [
    "UTC",
    "Europe/Zurich",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
];
const EXPRESSIONS: [&str; 8] = [
    "0 9 * * 1-5",
    "30 2 * * *",
    "0 0 * * *",
    "*/15 * * * *",
    "0 */2 * * *",
    "0 2 29 2 *",
    "59 23 L * *",
    "5 1-3 * * 0",
];

/// What happens, one step after the other.
#[derive(Clone, Debug)]
enum Step {
    /// The clock moves, forward or back, and the daemon looks.
    Clock(i64),
    /// The clock moves while no daemon runs.
    Down(i64),
    /// The agent answers what is queued.
    Answer,
    Stop,
    Start,
}

fn step() -> impl Strategy<Value = Step> {
    let hour = 3_600_000_i64;
    prop_oneof![
        6 => (0..18 * hour).prop_map(Step::Clock),
        2 => (-72 * hour..0).prop_map(Step::Clock),
        2 => (0..5 * 24 * hour).prop_map(Step::Down),
        4 => Just(Step::Answer),
        1 => Just(Step::Stop),
        1 => Just(Step::Start),
    ]
}

fn rule() -> impl Strategy<Value = ScheduleRule> {
    let cron = (0..EXPRESSIONS.len(), 0..ZONES.len());
    let cron = cron.prop_map(|(expression, zone)| ScheduleRule::Cron {
        expression: EXPRESSIONS[expression].to_owned(),
        zone: ZONES[zone].to_owned(),
    });
    let every = (60_000_u64..200_000_000, 0..86_400_000_i64);
    let every = every.prop_map(|(every_ms, from)| ScheduleRule::Every {
        every_ms,
        from: Timestamp::from_millis(START - from),
    });
    let at = (1..9_000_000_000_i64).prop_map(|off| ScheduleRule::At {
        at: Timestamp::from_millis(START + off),
        zone: "UTC".to_owned(),
    });
    prop_oneof![3 => cron, 2 => every, 1 => at]
}

fn policies() -> impl Strategy<Value = (MissedPolicy, OverlapPolicy)> {
    prop_oneof![
        Just((MissedPolicy::Once, OverlapPolicy::Skip)),
        Just((MissedPolicy::Once, OverlapPolicy::Queue)),
        Just((MissedPolicy::Skip, OverlapPolicy::Skip)),
        Just((MissedPolicy::All, OverlapPolicy::Queue)),
    ]
}

struct Run {
    state: AgentState,
    now: Timestamp,
    ids: u128,
    handled: BTreeMap<ScheduleId, Vec<Firing>>,
}

fn agent() -> AgentId {
    AgentId::new(Uuid::from_u128(1))
}

fn conversation() -> ConversationId {
    ConversationId::new(Uuid::from_u128(2))
}

impl Run {
    fn new() -> Self {
        let mut run = Self {
            state: AgentState::new(agent()),
            now: Timestamp::from_millis(START),
            ids: 100,
            handled: BTreeMap::new(),
        };
        let (name, mode) = ("agent".to_owned(), Mode::Persistent);
        run.push(None, AgentCreated { name, mode });
        let (source, parent, from, op) = (BeginSource::Create, None, None, None);
        run.push(
            None,
            ConversationBegan {
                source,
                parent,
                from,
                op,
            },
        );
        run
    }

    fn id(&mut self) -> Uuid {
        self.ids += 1;
        Uuid::from_u128(self.ids)
    }

    fn push(&mut self, turn: Option<TurnId>, body: impl Into<Body>) {
        let event = NewEvent {
            at: self.now,
            conversation: conversation(),
            turn,
            body: body.into(),
        };
        let seq = Seq(self.state.head.0 + 1);
        self.state.apply(&event.placed(agent(), seq));
    }

    fn add(&mut self, rule: ScheduleRule, (missed, overlap): (MissedPolicy, OverlapPolicy)) {
        let schedule = ScheduleId::new(self.id());
        let next = rule.first_after(self.now).unwrap();
        self.push(
            None,
            ScheduleAdded {
                schedule,
                name: schedule.to_string(),
                rule,
                action: ScheduleAction::Prompt,
                missed,
                overlap,
                next: Some(next),
            },
        );
        self.handled.insert(schedule, Vec::new());
    }

    /// Handles everything that is due, as the daemon does.
    fn look(&mut self) -> Attempt {
        let mut attempt = Attempt::Nothing;
        while let Some(firing) = next_firing(&self.state, self.now) {
            let firing = firing.unwrap();
            let prompt = PromptId::new(self.id());
            let (outcome, prompt) = match firing.verdict {
                Verdict::Act => {
                    let blocks = vec![Block::text("go on")];
                    let id = Some(prompt);
                    let fired = FiringOutcome::Fired {
                        prompt: id,
                        op: None,
                    };
                    (fired, Some(Prompt { prompt, blocks }))
                }
                Verdict::Skip(why) => (FiringOutcome::Skipped { why }, None),
            };
            let lines = events(&self.state, firing.fired(outcome), None, prompt).unwrap();
            for (_, body) in lines {
                self.push(None, body);
            }
            self.handled.get_mut(&firing.schedule).unwrap().push(firing);
            attempt = Attempt::Handled;
        }
        attempt
    }

    fn answer(&mut self) {
        let waiting = self.state.inbox.waiting();
        let prompts: Vec<PromptId> = waiting.map(|queued| queued.prompt).collect();
        if prompts.is_empty() || self.state.stopped {
            return;
        }
        let turn = Some(TurnId::new(self.id()));
        self.push(turn, TurnStarted::default());
        self.push(turn, PromptsTaken { prompts });
        self.push(turn, TurnEnded::with(TurnStatus::Completed));
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Clock(by) | Step::Down(by) => {
                let now = self.now.as_millis().saturating_add(*by).max(START);
                self.now = Timestamp::from_millis(now);
            }
            Step::Answer => self.answer(),
            Step::Stop => self.push(None, AgentStopped {}),
            Step::Start => self.push(None, AgentStarted {}),
        }
        if !matches!(step, Step::Down(_)) {
            self.look();
        }
    }
}

#[test]
fn each_due_time_is_handled_at_most_once_and_in_order() {
    let steps = prop::collection::vec(step(), 1..20);
    let schedules = prop::collection::vec((rule(), policies()), 1..4);
    TestRunner::new(agentd_testkit::cases(100))
        .run(&(schedules, steps), |(schedules, steps)| {
            let mut run = Run::new();
            for (rule, policies) in schedules {
                run.add(rule, policies);
            }
            for step in &steps {
                run.take(step);
            }
            prop_assert_eq!(run.state.anomalies, 0);
            for (schedule, handled) in &run.handled {
                let known = run.state.schedules.get(*schedule).unwrap();
                let mut expected = known.rule.first_after(Timestamp::from_millis(START)).ok();
                for firing in handled {
                    let first = expected.unwrap();
                    // In order, and never before it is due.
                    prop_assert!(firing.due >= first, "{firing:?} before {first:?}");
                    // It stands for the due times from the one that was next: none is left out.
                    let due = known.rule.due_until(first, firing.due).unwrap();
                    prop_assert_eq!(due.latest.back(), Some(&firing.due));
                    if due.total < 10_000 {
                        prop_assert_eq!(due.total, firing.missed + 1);
                    }
                    prop_assert_eq!(due.next, firing.next);
                    expected = firing.next;
                }
                prop_assert_eq!(known.next, expected);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn no_more_than_the_policy_allows_is_caught_up_at_once() {
    let down = 0..400 * 86_400_000_i64;
    TestRunner::new(agentd_testkit::cases(60))
        .run(&(rule(), policies(), down), |(rule, policies, down)| {
            let mut run = Run::new();
            run.add(rule, policies);
            run.take(&Step::Down(down));
            run.look();
            let handled = run.handled.values().next().unwrap();
            let fired = handled.iter().filter(|it| it.verdict == Verdict::Act);
            let most = match policies.0 {
                MissedPolicy::All => MOST_CAUGHT_UP,
                MissedPolicy::Once | MissedPolicy::Skip => 1,
            };
            prop_assert!(fired.count() <= most);
            // Nothing is left that is due, unless the queue is full.
            let is_full = run.state.inbox.waiting().len() >= MOST_CAUGHT_UP;
            prop_assert!(is_full || run.state.schedule_due_at().is_none_or(|at| at > run.now));
            Ok(())
        })
        .unwrap();
}

/// The due times of a search from any instant are those of a search from an earlier one.
#[test]
fn due_times_do_not_depend_on_where_the_search_begins() {
    let from = 0..365 * 86_400_000_i64;
    TestRunner::new(agentd_testkit::cases(1_000))
        .run(&(rule(), from, 0..200_000_000_i64), |(rule, from, on)| {
            let from = Timestamp::from_millis(START + from);
            let Some(due) = rule.next_after(from).unwrap() else {
                return Ok(());
            };
            prop_assert!(due > from);
            let between = Timestamp::from_millis(from.as_millis() + on);
            let again = rule.next_after(between).unwrap();
            if between < due {
                prop_assert_eq!(again, Some(due));
            } else {
                prop_assert!(again.is_none_or(|again| again > due));
            }
            Ok(())
        })
        .unwrap();
}

/// What happens to several agents of a daemon, and to its clocks.
#[derive(Clone, Debug)]
enum Jump {
    /// Time passes.
    Pass(i64),
    /// The wall clock is set, ahead or back.
    Wall(i64),
    /// Both clocks jump, as under a simulated clock.
    Both(i64),
    /// An agent answers what is queued.
    Answer(usize),
    /// The next attempt fails.
    Fail,
}

fn jump() -> impl Strategy<Value = Jump> {
    let hour = 3_600_000_i64;
    prop_oneof![
        3 => (0..hour).prop_map(Jump::Pass),
        3 => (-40 * hour..40 * hour).prop_map(Jump::Wall),
        2 => (-40 * hour..40 * hour).prop_map(Jump::Both),
        4 => (0..AGENTS).prop_map(Jump::Answer),
        1 => Just(Jump::Fail),
    ]
}

const AGENTS: usize = 3;

/// The loop of the daemon over the due times of its agents.
struct Watch {
    agents: Vec<Run>,
    attempts: Attempts,
    steady_ms: i64,
    fails: bool,
}

impl Watch {
    fn new(schedules: Vec<(ScheduleRule, (MissedPolicy, OverlapPolicy))>) -> Self {
        let mut agents: Vec<Run> = (0..AGENTS).map(|_| Run::new()).collect();
        for run in &mut agents {
            for (rule, policies) in &schedules {
                run.add(rule.clone(), *policies);
            }
        }
        Self {
            agents,
            attempts: Attempts::default(),
            steady_ms: 100 * 86_400_000,
            fails: false,
        }
    }

    /// As the store lists them. An agent's number takes the place of its id.
    fn listed(&self) -> Vec<Due> {
        let due = self.agents.iter().enumerate().filter_map(|(n, run)| {
            let id = AgentId::new(Uuid::from_u128(n as u128));
            Some((id, run.state.schedule_due_at()?))
        });
        let mut due: Vec<Due> = due.collect();
        due.sort_by_key(|(_, at)| *at);
        due
    }

    fn take(&mut self, jump: &Jump) {
        let by = match jump {
            Jump::Pass(by) | Jump::Wall(by) | Jump::Both(by) => *by,
            Jump::Answer(n) => {
                self.agents[*n].answer();
                0
            }
            Jump::Fail => {
                self.fails = true;
                0
            }
        };
        if matches!(jump, Jump::Pass(_) | Jump::Both(_)) {
            self.steady_ms = (self.steady_ms + by).max(0);
        }
        for run in &mut self.agents {
            run.now = Timestamp::from_millis((run.now.as_millis() + by).max(START));
        }
        self.look();
    }

    fn look(&mut self) {
        let steady = self.steady_ms.unsigned_abs();
        self.attempts.advance(steady);
        while let Some(due) = self.attempts.first(self.listed()) {
            let number = usize::try_from(due.0.uuid().as_u128()).unwrap();
            let run = &mut self.agents[number];
            if due.1 > run.now {
                return;
            }
            let attempt = match std::mem::take(&mut self.fails) {
                true => Attempt::Failed,
                false => run.look(),
            };
            self.attempts.ended(due, attempt, steady);
        }
    }
}

/// Regression: with `missed: all`, agents whose queue was full stayed behind after the clock was set ahead and back.
#[test]
fn whatever_the_clocks_do_the_next_due_time_is_later_and_is_reached() {
    let rule = prop_oneof![3 => rule(), 1 => Just(minutely())];
    let schedules = prop::collection::vec((rule, policies()), 1..4);
    let jumps = prop::collection::vec(jump(), 1..30);
    TestRunner::new(agentd_testkit::cases(60))
        .run(&(schedules, jumps), |(schedules, jumps)| {
            let mut watch = Watch::new(schedules);
            for jump in &jumps {
                watch.take(jump);
                for run in &watch.agents {
                    for known in run.state.schedules.iter() {
                        let later = known.next.zip(known.last_due);
                        prop_assert!(later.is_none_or(|(next, last)| next > last), "{known:?}");
                    }
                }
                // Nothing that is due is left, unless the attempt has failed a moment ago.
                if watch.attempts.delayed() == 0 {
                    for (run, (_, at)) in watch.agents.iter().zip(watch.listed()) {
                        prop_assert!(at > run.now, "{at:?} at {:?}", run.now);
                    }
                }
            }
            // Every schedule that is ever due again fires when its time comes.
            watch.fails = false;
            let known = |watch: &Watch| -> Vec<_> {
                let all = watch
                    .agents
                    .iter()
                    .flat_map(|run| run.state.schedules.iter());
                all.map(|known| (known.next, known.last_due)).collect()
            };
            let before = known(&watch);
            let latest = before.iter().filter_map(|(next, _)| *next).max();
            let Some(latest) = latest else { return Ok(()) };
            let by = latest.as_millis() - watch.agents[0].now.as_millis();
            watch.take(&Jump::Pass(by.max(60_000)));
            // Queues that are full have room again.
            for _ in 0..10 {
                for n in 0..AGENTS {
                    watch.take(&Jump::Answer(n));
                }
            }
            for ((next, _), (_, last)) in before.iter().zip(known(&watch)) {
                prop_assert!(next.is_none_or(|next| last.is_some_and(|last| last >= next)));
            }
            Ok(())
        })
        .unwrap();
}

fn minutely() -> ScheduleRule {
    ScheduleRule::Cron {
        expression: "* * * * *".to_owned(),
        zone: "UTC".to_owned(),
    }
}
