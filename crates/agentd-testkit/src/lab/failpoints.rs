//! The failpoints of a scenario, found by a run without faults; and faults for each of them.

use super::dice::Dice;
use super::spec::{Fault, Spec};
use agentd_failpoint::Passed;
use agentd_failpoint::plan::{Action, Role};
use std::collections::{BTreeMap, BTreeSet};

/// A failpoint, whichever time it is passed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failpoint {
    pub role: Role,
    pub name: String,
}

/// The failpoints in the order in which they were first passed, and the most often that one process passed each.
pub fn of(trace: &[Passed]) -> Vec<(Failpoint, u32)> {
    let mut most: BTreeMap<Failpoint, u32> = BTreeMap::new();
    let mut order = Vec::new();
    for passed in trace {
        let failpoint = Failpoint {
            role: passed.role,
            name: passed.failpoint.clone(),
        };
        let known = most.entry(failpoint.clone()).or_insert_with(|| {
            order.push(failpoint);
            0
        });
        *known = (*known).max(passed.nth);
    }
    let with_most = order.into_iter().map(|failpoint| {
        let most = most.get(&failpoint).copied().unwrap_or(1);
        (failpoint, most)
    });
    with_most.collect()
}

/// Runs that hit each of the failpoints with one of the actions, several per run: one early, one in the
/// middle, one late.
pub fn hit_each(
    scenario: &str,
    failpoints: &[(Failpoint, u32)],
    actions: &[Action],
    in_one_run: usize,
    dice: &mut Dice,
) -> Vec<Spec> {
    let in_one_run = in_one_run.max(1);
    let runs = failpoints.len().div_ceil(in_one_run);
    let mut specs: Vec<Spec> = (0..runs)
        .map(|_| Spec::new(scenario, dice.below(1 << 20)))
        .collect();
    for (at, (failpoint, most)) in failpoints.iter().enumerate() {
        let action = dice.choose(actions).copied().unwrap_or(Action::Kill);
        let nth = 1 + u32::try_from(dice.below(u64::from(*most))).unwrap_or_default();
        if let Some(spec) = specs.get_mut(at % runs) {
            spec.faults.push(Fault {
                role: failpoint.role,
                failpoint: failpoint.name.clone(),
                nth: Some(nth),
                action,
                each: false,
            });
        }
    }
    specs
}

/// The failpoints at which no fault happened.
pub fn missed(
    failpoints: &[(Failpoint, u32)],
    hit: &BTreeSet<(String, String)>,
) -> Vec<(Failpoint, u32)> {
    let is_missed = |(failpoint, _): &&(Failpoint, u32)| {
        let key = (failpoint.role.name().to_owned(), failpoint.name.clone());
        !hit.contains(&key)
    };
    failpoints.iter().filter(is_missed).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(role: Role, failpoint: &str, nth: u32) -> Passed {
        Passed {
            at: 0,
            role,
            process: 1,
            pid: 1,
            failpoint: failpoint.to_owned(),
            nth,
        }
    }

    #[test]
    fn each_point_is_hit_once() {
        let mut trace: Vec<Passed> = (0..10)
            .map(|n| passed(Role::Runtime, &format!("p-{n}"), 1))
            .collect();
        trace.push(passed(Role::Runtime, "p-3", 2));
        trace.push(passed(Role::Daemon, "p-3", 1));
        let failpoints = of(&trace);
        assert_eq!(failpoints.len(), 11);
        assert_eq!(failpoints[3].1, 2);
        let specs = hit_each(
            "standard",
            &failpoints,
            &[Action::Kill],
            3,
            &mut Dice::new(1),
        );
        assert_eq!(specs.len(), 4);
        let faults = specs.iter().flat_map(|spec| &spec.faults);
        let hit: BTreeSet<_> = faults
            .map(|fault| (fault.role.name().to_owned(), fault.failpoint.clone()))
            .collect();
        assert_eq!(hit.len(), 11);
        assert_eq!(missed(&failpoints, &hit), []);
        // Early, in the middle, late.
        assert_eq!(specs[0].faults[1].failpoint, "p-4");
    }
}
