//! What a reset keeps, and what it drops.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{EventQuery, Item, Reset, Status};
use agentd_core::event::{Direction, Kind};
use agentd_core::spec::{Budget, Limits};

fn reset(daemon: &TestDaemon, ask: &Reset) -> agentd_client::api::Receipt {
    daemon.block(daemon.client().reset("coder", ask)).unwrap()
}

#[test]
fn configuration_names_and_lifetime_cost_are_kept_and_the_rest_begins_anew() {
    let daemon = TestDaemon::new();
    let before = daemon.create("coder");
    daemon.completed("coder", "do: say one");
    daemon
        .block(daemon.client().rename("coder", "writer"))
        .unwrap();
    let spec = daemon.block(daemon.client().spec("writer")).unwrap();
    let used = daemon.show("writer").usage;
    assert!(used.input_tokens > 0);
    let receipt = daemon
        .block(daemon.client().reset("writer", &Reset::default()))
        .unwrap();
    let after = daemon.show("writer");
    assert_eq!((after.id, after.name.as_str()), (before.id, "writer"));
    assert_eq!(after.aliases, ["coder"]);
    assert_eq!(after.usage, used);
    assert_eq!(daemon.block(daemon.client().spec("coder")).unwrap(), spec);
    assert_eq!(after.summary, None);
    assert_eq!(after.conversation.unwrap().turns, 0);
    let all = daemon
        .block(daemon.client().conversations("writer"))
        .unwrap();
    let new = all
        .conversations
        .iter()
        .find(|it| it.id == receipt.new)
        .unwrap();
    assert_eq!(new.usage.input_tokens, 0);
    assert_eq!(new.compactions, 0);
}

#[test]
fn a_queue_that_is_kept_goes_along() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.send("coder", "do: hang");
    daemon.until_kind("coder", Kind::RequestSent);
    let waiting = daemon.send("coder", "do: say waited");
    let ask = Reset {
        keep_queue: true,
        ..Reset::default()
    };
    let receipt = reset(&daemon, &ask);
    assert_eq!(receipt.set_aside, []);
    let answer = daemon.answer("coder", waiting.prompt);
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (Status::Completed, "waited")
    );
    assert_eq!(answer.conversation, receipt.new);
}

#[test]
fn whoever_follows_hears_of_it() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    let client = daemon.client();
    let heard = daemon.spawn(async move {
        let query = EventQuery::default();
        let mut events = client.follow("coder", &query).await.unwrap();
        while let Some(Ok(item)) = events.next().await {
            if let Item::Event(event) = item
                && event.kind() == Kind::ResetEnded
            {
                return true;
            }
        }
        false
    });
    reset(&daemon, &Reset::default());
    assert!(daemon.block(heard).unwrap());
}

#[test]
fn a_failed_agent_is_well_again() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let answer = daemon.ask("coder", "do: fail 400");
    assert_eq!(answer.status, Status::Failed);
    assert_eq!(
        daemon.show("coder").phase,
        agentd_core::state::Phase::Failed
    );
    reset(&daemon, &Reset::default());
    let agent = daemon.show("coder");
    assert_eq!(
        (agent.phase, agent.error),
        (agentd_core::state::Phase::Idle, None)
    );
    daemon.completed("coder", "do: say well");
}

#[test]
fn a_process_that_waits_for_nothing_is_another_one_afterwards() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    let before = until("a process", || daemon.pid("coder"));
    reset(&daemon, &Reset::default());
    let after = until("a process", || daemon.pid("coder"));
    assert_ne!(before, after);
    assert_eq!(daemon.count("coder", Kind::IncarnationEnded), 1);
}

fn limited(budget: impl Fn(&mut Limits, Budget)) -> TestDaemon {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.limits.max_output_tokens = Some(100);
    let tokens = Some(5000);
    let of = Budget {
        tokens,
        ..Budget::default()
    };
    budget(&mut spec.limits, of);
    daemon.create_with("coder", spec);
    until("the limit", || {
        let status = daemon.ask("coder", "do: say a few words").status;
        (status == Status::Limited).then_some(())
    });
    assert_eq!(daemon.ask("coder", "do: say more").status, Status::Limited);
    daemon
}

#[test]
fn what_a_conversation_may_use_begins_anew_and_what_a_day_may_does_not() {
    let daemon = limited(|limits, budget| limits.conversation = budget);
    let used = daemon.show("coder").usage;
    reset(&daemon, &Reset::default());
    let fresh = daemon.show("coder");
    assert_eq!((fresh.usage, fresh.error), (used, None));
    daemon.completed("coder", "do: say it goes on");
    // The one before is as full as it was.
    let undo = Reset {
        step: Some(Direction::Undo),
        ..Reset::default()
    };
    reset(&daemon, &undo);
    assert_eq!(daemon.ask("coder", "do: say more").status, Status::Limited);

    let daemon = limited(|limits, budget| limits.day = budget);
    reset(&daemon, &Reset::default());
    assert_eq!(daemon.ask("coder", "do: say more").status, Status::Limited);
}
