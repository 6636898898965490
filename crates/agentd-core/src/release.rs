//! The release of a held agent: which parts are dropped, and the events that record it.

use crate::event::{
    AgentReleased, AgentStarted, ApprovalWithdrawn, Body, HeldPart, PromptsSetAside, SpecSet,
};
use crate::spec::{AgentSpec, Decision, Runtime, Sandbox};
use crate::state::{AgentState, Queued};
use std::collections::BTreeMap;

/// The events that release a held agent, in one append. They also start it, unless it came with an unfinished turn.
/// That turn must end first and is not continued, because its calls were made and approved elsewhere.
pub fn release(state: &AgentState, keep: &[HeldPart]) -> Vec<Body> {
    let mut bodies: Vec<Body> = Vec::new();
    let prompts: Vec<_> = queue(state).map(|queued| queued.prompt).collect();
    if !keep.contains(&HeldPart::Queue) && !prompts.is_empty() {
        bodies.push(PromptsSetAside { prompts }.into());
    }
    // Answered approvals too, because another user answered them.
    for (approval, _) in state.approvals.iter() {
        let approval = *approval;
        bodies.push(ApprovalWithdrawn { approval }.into());
    }
    let spec = without(&state.spec, keep);
    if spec != *state.spec {
        let spec = Box::new(spec);
        bodies.push(SpecSet { spec }.into());
    }
    let mut kept = keep.to_vec();
    kept.sort_unstable();
    kept.dedup();
    bodies.push(AgentReleased { kept }.into());
    if state.turn.is_none() {
        bodies.push(AgentStarted {}.into());
    }
    bodies
}

/// The prompts that the agent came with. Prompts that were sent later are the user's own.
pub fn queue(state: &AgentState) -> impl Iterator<Item = &Queued> {
    let came = state.held().map(|held| held.seq);
    let waiting = state.inbox.waiting();
    waiting.filter(move |queued| came.is_some_and(|came| queued.seq < came))
}

/// The settings without the parts that are not kept. Limits, deny rules and a narrower sandbox stay.
pub fn without(spec: &AgentSpec, keep: &[HeldPart]) -> AgentSpec {
    let mut spec = spec.clone();
    for part in HeldPart::ALL {
        if !keep.contains(&part) {
            drop_part(&mut spec, part);
        }
    }
    spec
}

fn drop_part(spec: &mut AgentSpec, part: HeldPart) {
    match part {
        HeldPart::Hooks => spec.hooks = serde_json::Value::Null,
        HeldPart::Permissions => spec
            .permissions
            .retain(|rule| rule.decision != Decision::Allow),
        HeldPart::Sandbox => {
            spec.sandbox = spec.sandbox.filter(|it| *it != Sandbox::FullAccess);
            spec.writable.clear();
            spec.readable.clear();
            spec.pass.clear();
            for rule in &mut spec.permissions {
                rule.needs.clear();
            }
        }
        HeldPart::Env => {
            spec.env.clear();
            spec.pass_env.clear();
        }
        HeldPart::Programs => {
            spec.mcp = BTreeMap::new();
            spec.command = None;
            spec.runtime = Runtime::Native;
        }
        // It is not part of the settings.
        HeldPart::Queue => {}
    }
}

/// The parts that the agent has, which would be dropped if none were kept.
pub fn parts(state: &AgentState) -> Vec<HeldPart> {
    let is_there = |part: &HeldPart| match part {
        HeldPart::Queue => {
            let aside = state.inbox.set_aside_prompts();
            queue(state).count() + aside.len() > 0
        }
        _ => {
            let mut spec = (*state.spec).clone();
            drop_part(&mut spec, *part);
            spec != *state.spec
        }
    };
    HeldPart::ALL.into_iter().filter(is_there).collect()
}

#[cfg(test)]
mod tests;
