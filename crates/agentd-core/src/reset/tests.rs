//! Each step by itself; the whole is simulated by the test kit.

use super::*;
use crate::fixture::Journal;

fn order(to: ResetTo) -> ResetBegan {
    ResetBegan {
        op: OpId::from_bytes([9; 16]),
        to,
        force: false,
        kill_background: false,
        keep_queue: false,
        clear_log: false,
        skip_hooks: false,
        grace_ms: 15_000,
        was_awake: false,
    }
}

#[test]
fn the_steps_come_in_order_and_an_op_is_good_for_once() {
    let mut journal = Journal::new();
    let old = journal.conversation;
    assert_eq!(next(&journal.state()), Next::Nothing);
    let Begin::Append((_, body)) = begin(&journal.state(), order(ResetTo::Fresh)).unwrap() else {
        panic!("it may begin");
    };
    journal.push(body);
    let again = begin(&journal.state(), order(ResetTo::Fresh)).unwrap();
    assert_eq!(again, Begin::UnderWay);
    assert_eq!(next(&journal.state()), Next::Hooks(ResetStep::PreReset));
    for (step, then) in [
        (ResetStep::PreReset, Next::Stop),
        (ResetStep::Stop, Next::Hooks(ResetStep::SessionEnd)),
        (ResetStep::SessionEnd, Next::Switch),
    ] {
        let (_, body) = stepped(&journal.state(), step).unwrap();
        journal.push(body);
        assert_eq!(next(&journal.state()), then);
    }
    let gone = withdraw(&journal.state(), ResetRefusal::StillActive);
    assert_eq!(gone, None, "there is no way back any more");
    let new = ConversationId::from_bytes([7; 16]);
    let window = journal.window();
    for (conversation, body) in switch(&journal.state(), &window, &window, new).unwrap() {
        journal.conversation = conversation;
        journal.push(body);
    }
    assert_eq!(journal.state().tree.current(), Some(new));
    let (_, body) = stepped(&journal.state(), ResetStep::SessionStart).unwrap();
    journal.push(body);
    assert_eq!(next(&journal.state()), Next::End);
    let (_, body) = end(&journal.state()).unwrap();
    journal.push(body);
    let state = journal.state();
    assert_eq!((next(&state), state.anomalies), (Next::Nothing, 0));
    let receipt = receipt(&state, order(ResetTo::Fresh).op, &journal.events).unwrap();
    assert_eq!((receipt.old, receipt.new), (old, new));
    let again = begin(&state, order(ResetTo::Fresh)).unwrap();
    assert!(matches!(again, Begin::Over(Outcome::Ended { .. })));
}
