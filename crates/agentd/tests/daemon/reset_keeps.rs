//! What a reset keeps, and what is gone.

use crate::house::{House, until};
use agentd_client::api::{EventQuery, Item, Reset, Status};
use agentd_core::event::{Direction, Kind};
use agentd_core::spec::{Budget, Limits};

fn reset(house: &House, ask: &Reset) -> agentd_client::api::Receipt {
    house.block(house.client().reset("coder", ask)).unwrap()
}

#[test]
fn configuration_names_and_lifetime_cost_are_kept_and_the_rest_begins_anew() {
    let house = House::new();
    let before = house.create("coder");
    house.completed("coder", "do: say one");
    house
        .block(house.client().rename("coder", "writer"))
        .unwrap();
    let spec = house.block(house.client().spec("writer")).unwrap();
    let used = house.show("writer").usage;
    assert!(used.input_tokens > 0);
    let receipt = house
        .block(house.client().reset("writer", &Reset::default()))
        .unwrap();
    let after = house.show("writer");
    assert_eq!((after.id, after.name.as_str()), (before.id, "writer"));
    assert_eq!(after.aliases, ["coder"]);
    assert_eq!(after.usage, used);
    assert_eq!(house.block(house.client().spec("coder")).unwrap(), spec);
    assert_eq!(after.summary, None);
    assert_eq!(after.conversation.unwrap().turns, 0);
    let all = house.block(house.client().conversations("writer")).unwrap();
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
    let house = House::new();
    house.create("coder");
    house.send("coder", "do: hang");
    house.until_kind("coder", Kind::RequestSent);
    let waiting = house.send("coder", "do: say waited");
    let ask = Reset {
        keep_queue: true,
        ..Reset::default()
    };
    let receipt = reset(&house, &ask);
    assert_eq!(receipt.set_aside, []);
    let answer = house.answer("coder", waiting.prompt);
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (Status::Completed, "waited")
    );
    assert_eq!(answer.conversation, receipt.new);
}

#[test]
fn whoever_follows_hears_of_it() {
    let house = House::new();
    house.create("coder");
    house.completed("coder", "do: say one");
    let client = house.client();
    let heard = house.spawn(async move {
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
    reset(&house, &Reset::default());
    assert!(house.block(heard).unwrap());
}

#[test]
fn a_failed_agent_is_well_again() {
    let house = House::new();
    house.create("coder");
    let answer = house.ask("coder", "do: fail 400");
    assert_eq!(answer.status, Status::Failed);
    assert_eq!(house.show("coder").phase, agentd_core::state::Phase::Failed);
    reset(&house, &Reset::default());
    let agent = house.show("coder");
    assert_eq!(
        (agent.phase, agent.error),
        (agentd_core::state::Phase::Idle, None)
    );
    house.completed("coder", "do: say well");
}

#[test]
fn a_process_that_waits_for_nothing_is_another_one_afterwards() {
    let house = House::new();
    house.create("coder");
    house.completed("coder", "do: say one");
    let before = until("a process", || house.pid("coder"));
    reset(&house, &Reset::default());
    let after = until("a process", || house.pid("coder"));
    assert_ne!(before, after);
    assert_eq!(house.count("coder", Kind::IncarnationEnded), 1);
}

fn limited(budget: impl Fn(&mut Limits, Budget)) -> House {
    let house = House::new();
    let mut spec = house.spec();
    spec.limits.max_output_tokens = 100;
    let tokens = Some(5000);
    let of = Budget {
        tokens,
        ..Budget::default()
    };
    budget(&mut spec.limits, of);
    house.create_with("coder", spec);
    until("the limit", || {
        let status = house.ask("coder", "do: say a few words").status;
        (status == Status::Limited).then_some(())
    });
    assert_eq!(house.ask("coder", "do: say more").status, Status::Limited);
    house
}

#[test]
fn what_a_conversation_may_use_begins_anew_and_what_a_day_may_does_not() {
    let house = limited(|limits, budget| limits.conversation = budget);
    let used = house.show("coder").usage;
    reset(&house, &Reset::default());
    let fresh = house.show("coder");
    assert_eq!((fresh.usage, fresh.error), (used, None));
    house.completed("coder", "do: say it goes on");
    // The one before is as full as it was.
    let undo = Reset {
        step: Some(Direction::Undo),
        ..Reset::default()
    };
    reset(&house, &undo);
    assert_eq!(house.ask("coder", "do: say more").status, Status::Limited);

    let house = limited(|limits, budget| limits.day = budget);
    reset(&house, &Reset::default());
    assert_eq!(house.ask("coder", "do: say more").status, Status::Limited);
}
