//! The turn under way ends now; the next prompt is answered.

use super::GRACE;
use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::problem::Result;
use agentd_client::{Kind, Problem};
use agentd_core::link::Order;
use std::sync::Arc;

pub async fn interrupt(daemon: &Arc<Daemon>, desk: &Arc<Desk>) -> Result<()> {
    let turn = {
        let mut guard = desk.lock().await;
        let Some(turn) = &guard.state.turn else {
            let what = format!("`{}` has no turn under way", guard.state.name);
            return Err(Problem::new(Kind::Conflict, what));
        };
        let turn = turn.id;
        // A turn that waits may have no process; only one can end it as it should.
        guard.wanted = true;
        daemon.mind(desk, &mut guard);
        turn
    };
    let mut told = None;
    let over = desk.within(GRACE, |guard| {
        let runs = guard.state.turn.as_ref().is_some_and(|it| it.id == turn);
        let connection = guard.down.as_ref().map(|it| it.number);
        if runs && connection.is_some() && told != connection {
            // Once on each connection: an order that was on its way may have been lost with it.
            // And for this turn alone: it may end by itself before it hears it.
            guard.order_turn(Order::Interrupt, turn);
            told = connection;
        }
        (!runs).then_some(())
    });
    over.await.ok_or_else(|| {
        let what = "the turn has not ended yet";
        Problem::new(Kind::Unavailable, what).next("wait for it, or stop the agent")
    })
}
