//! The plan: every failpoint of some scenarios, random times in all of them, and faults below the
//! process. Its size can be printed before it runs.

use super::below;
use super::dice::Dice;
use super::failpoints::{self, Failpoint};
use super::options::Options;
use super::spec::{Fault, Spec};
use super::watch;
use crate::sim;
use agentd_failpoint::plan::{Action, Role};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Faults in one run.
pub(super) const IN_ONE_RUN: usize = 3;
/// Failpoints of a scenario that a short run hits at least, if it has that many: its own, and others by the seed.
const SOME: usize = 20;
/// Scenarios whose runs take long. A short plan hits only those of their failpoints that no earlier scenario passes, and a long
/// one kills once at each.
const SLOW: [&str; 1] = ["backup"];
/// One run in this many is without a sandbox.
const FULL_ACCESS: u64 = 4;
/// How often a turn that kills its process each time is tried.
const TRIES: usize = 3;

/// The failpoints that a scenario passes, and the most often that one process passes each.
#[derive(Clone, Debug)]
pub struct Traced {
    pub scenario: &'static str,
    pub failpoints: Vec<(Failpoint, u32)>,
}

/// What will run.
#[derive(Debug, Default)]
pub struct Plan {
    pub specs: Vec<Spec>,
    /// What this machine cannot run, one line each.
    pub skipped: Vec<String>,
}

impl Plan {
    /// Each failpoint at which a process is killed, with its scenario.
    pub fn failpoints(&self) -> BTreeSet<(String, Failpoint)> {
        let faults = self.specs.iter().flat_map(|spec| {
            let faults = spec.faults.iter();
            faults.map(|fault| (spec.scenario.clone(), fault))
        });
        let failpoints = faults.map(|(scenario, fault)| {
            let (role, name) = (fault.role, fault.failpoint.clone());
            (scenario, Failpoint { role, name })
        });
        failpoints.collect()
    }
}

/// All runs except those that found the failpoints.
pub fn of(options: &Options, traced: &[Traced], dice: &mut Dice) -> Plan {
    let wants = |name: &str| options.only.as_ref().is_none_or(|only| only == name);
    let mut specs = Vec::new();
    let mut known = BTreeSet::new();
    for one in traced {
        let is_new = |(failpoint, _): &&(Failpoint, u32)| !known.contains(failpoint);
        let own: Vec<(Failpoint, u32)> = one.failpoints.iter().filter(is_new).cloned().collect();
        known.extend(own.iter().map(|(failpoint, _)| failpoint.clone()));
        specs.extend(each_point(options.long, one, &own, dice));
    }
    let small = small(options.long, dice).into_iter();
    specs.extend(small.filter(|spec| wants(&spec.scenario)));
    let (below, skipped) = below::specs(options.seed, if options.long { 60 } else { 1 });
    specs.extend(below.into_iter().filter(|spec| wants(&spec.scenario)));
    for spec in &mut specs {
        let is_drawn = dice.below(FULL_ACCESS) == 0;
        spec.full_access = is_drawn || below::masks_proc(&spec.scenario);
    }
    dice.shuffle(&mut specs);
    let skipped = skipped.into_iter().filter(|(name, _)| wants(name));
    let mut skipped: Vec<String> = skipped.map(|(_, line)| line).collect();
    if let Err(missing) = agentd_sandbox::support().namespaces {
        skipped.push(format!("tools run without a sandbox: {missing}"));
    }
    Plan { specs, skipped }
}

/// Each failpoint is hit by SIGKILL, and by one of the signals that a process can handle or that stop it for a
/// while. In a short run a scenario hits its own failpoints (that no earlier scenario passes) and some more.
fn each_point(long: bool, one: &Traced, own: &[(Failpoint, u32)], dice: &mut Dice) -> Vec<Spec> {
    let gentle = [Action::Term, Action::Int, Action::Stop];
    let is_slow = SLOW.contains(&one.scenario);
    let mut some = own.to_vec();
    if !long {
        let mut others: Vec<_> = one
            .failpoints
            .iter()
            .filter(|it| !own.contains(it))
            .collect();
        dice.shuffle(&mut others);
        let more = match is_slow {
            true => 0,
            false => SOME.saturating_sub(own.len()),
        };
        some.extend(others.into_iter().take(more).cloned());
        // Keep the original order.
        some.sort_by_key(|failpoint| one.failpoints.iter().position(|known| known == failpoint));
    }
    let mut specs = Vec::new();
    let mut hit = |failpoints: &[(Failpoint, u32)], actions: &[Action], in_one_run| {
        let runs = failpoints::hit_each(one.scenario, failpoints, actions, in_one_run, dice);
        specs.extend(runs);
    };
    let is_first = own.len() == one.failpoints.len();
    let (kills, others) = match (long && !is_slow, is_first) {
        (false, _) => (1, 0),
        (true, true) => (12, 3),
        (true, false) => (3, 1),
    };
    let failpoints = if long { &one.failpoints } else { &some };
    for _ in 0..kills {
        hit(failpoints, &[Action::Kill], IN_ONE_RUN);
    }
    hit(own, &gentle, IN_ONE_RUN);
    for _ in 0..others {
        hit(failpoints, &gentle, IN_ONE_RUN);
    }
    specs
}

/// Runs that test what single failpoints cannot.
fn small(long: bool, dice: &mut Dice) -> Vec<Spec> {
    let rounds = if long { 60 } else { 3 };
    let mut specs = Vec::new();
    let mut seed = || dice.below(1 << 20);
    for round in 0..rounds {
        for (scenario, random) in [
            ("interrupt", 2),
            ("resets", 3),
            ("approvals", 2),
            ("sleep", 3),
            ("reader", 3),
            ("crowd", 10),
            ("accepted", 2),
            ("leftovers", 1),
            ("hooks", 3),
            ("rewind", 3),
            ("fork", 3),
            ("subagents", 4),
            ("background", 4),
            ("restore", 3),
            ("files", 3),
            ("outer", 3),
            ("outer_acp", 3),
            ("schedule", 3),
        ] {
            specs.push(Spec {
                random,
                ..Spec::new(scenario, seed())
            });
        }
        specs.push(crash_loop(seed()));
        // Its runs take long.
        if round % 3 == 0 {
            specs.push(Spec {
                random: 4,
                ..Spec::new("backup", seed())
            });
        }
    }
    specs
}

fn crash_loop(seed: u64) -> Spec {
    Spec::new("crash_loop", seed).with([Fault {
        role: Role::Runtime,
        failpoint: "at-barrier.2".to_owned(),
        nth: None,
        action: Action::Kill,
        each: true,
    }])
}

/// The size of a plan.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    pub runs: usize,
    pub failpoints: usize,
    /// SIGKILLs at failpoints.
    pub kills: usize,
    /// Other signals at failpoints.
    pub others: usize,
    /// Signals at random times, and the expected number of SIGKILLs among them.
    pub random: usize,
    pub random_kills: usize,
    pub power_cuts: usize,
    /// Simulated schedules, which `cargo xtask lab --long` runs before the lab.
    pub schedules: usize,
}

impl Sizes {
    pub fn of(plan: &Plan, traced: &[Traced], long: bool) -> Self {
        let mut sizes = Self {
            runs: plan.specs.len() + traced.len(),
            failpoints: traced.iter().map(|one| one.failpoints.len()).sum(),
            schedules: if long { sim::LONG_SCHEDULES } else { 0 },
            ..Self::default()
        };
        for spec in &plan.specs {
            for fault in &spec.faults {
                let times = if fault.each { TRIES } else { 1 };
                match fault.action {
                    Action::Kill => sizes.kills += times,
                    _ => sizes.others += times,
                }
            }
            sizes.random += spec.random as usize;
            sizes.power_cuts += below::cuts(&spec.scenario);
        }
        let (kills, all) = watch::kills_among_targets();
        sizes.random_kills = sizes.random * kills / all;
        sizes
    }

    pub fn text(&self) -> String {
        let mut out = String::new();
        let rows = [
            ("runs", self.runs),
            ("failpoints", self.failpoints),
            ("SIGKILLs at failpoints", self.kills),
            ("other signals at failpoints", self.others),
            ("signals at random times", self.random),
            ("SIGKILLs among them (expected)", self.random_kills),
            ("power failures", self.power_cuts),
            ("simulated schedules", self.schedules),
        ];
        for (name, size) in rows {
            let _fits = writeln!(out, "{name:<30} {size:>7}");
        }
        out
    }

    pub fn json(&self) -> Value {
        json!({"runs": self.runs, "failpoints": self.failpoints, "kills": self.kills, "others": self.others,
               "random": self.random, "random_kills": self.random_kills,
               "power_cuts": self.power_cuts, "schedules": self.schedules})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn options(long: bool) -> Options {
        Options {
            seed: 1,
            long,
            only: None,
            width: 1,
            dir: PathBuf::new(),
        }
    }

    fn failpoints(names: std::ops::Range<u32>) -> Vec<(Failpoint, u32)> {
        let failpoint = |n| Failpoint {
            role: Role::Daemon,
            name: format!("p-{n}"),
        };
        names.map(|n| (failpoint(n), 1)).collect()
    }

    #[test]
    fn a_long_plan_is_as_large_as_is_said() {
        let names = [
            "standard",
            "hooks",
            "rewind",
            "fork",
            "subagents",
            "background",
        ];
        let traced = names.map(|scenario| Traced {
            scenario,
            failpoints: failpoints(0..180),
        });
        let plan = of(&options(true), &traced, &mut Dice::new(1));
        let sizes = Sizes::of(&plan, &traced, true);
        assert!(sizes.kills + sizes.random_kills >= 6000, "{sizes:?}");
        assert!(sizes.schedules >= 100_000, "{sizes:?}");
        assert!(sizes.text().contains("SIGKILLs at failpoints"), "{sizes:?}");
    }

    /// Its own failpoints, and enough others to make the run worthwhile.
    #[test]
    fn a_short_plan_has_each_point_where_it_is_passed_first() {
        let traced = [
            Traced {
                scenario: "standard",
                failpoints: failpoints(0..200),
            },
            Traced {
                scenario: "hooks",
                failpoints: failpoints(20..220),
            },
        ];
        let hit = |long: bool| {
            let plan = of(&options(long), &traced, &mut Dice::new(1));
            let runs = plan.specs.into_iter().filter(|it| it.scenario == "hooks");
            let faults = runs.flat_map(|it| it.faults);
            let kills = faults.filter(|it| it.action == Action::Kill);
            kills.map(|it| it.failpoint).collect::<BTreeSet<String>>()
        };
        let short = hit(false);
        assert!((200..220).all(|n| short.contains(&format!("p-{n}"))));
        assert_eq!(short.len(), SOME);
        assert_eq!(hit(true).len(), 200);
    }

    #[test]
    fn a_short_plan_hits_only_own_failpoints_of_a_slow_scenario() {
        let traced = [
            Traced {
                scenario: "standard",
                failpoints: failpoints(0..200),
            },
            Traced {
                scenario: SLOW[0],
                failpoints: failpoints(190..220),
            },
        ];
        let hit = |long: bool| {
            let plan = of(&options(long), &traced, &mut Dice::new(1));
            let hit = plan.failpoints().into_iter();
            let own = hit.filter(|(scenario, _)| scenario == SLOW[0]);
            own.map(|(_, failpoint)| failpoint.name)
                .collect::<BTreeSet<String>>()
        };
        let own: BTreeSet<String> = (200..220).map(|n| format!("p-{n}")).collect();
        assert_eq!(hit(false), own);
        assert_eq!(hit(true).len(), 30);
    }
}
