//! The siege: a hostile model with every tool, and another user of the machine, against the real program.
//!
//! - [`attack`]: what an attack is. One file per theme: [`files`], [`keys`], [`callers`], [`approvals`], [`escalated`], [`git`],
//!   [`repositories`], [`outer_repositories`],
//!   [`network`], [`rules`], [`text`], [`strangers`], [`nested`], [`arrivals`], [`host_processes`], [`other_user`],
//!   [`odd_files`], [`root`].
//! - [`layers`]: the layers of the defence, and the injected bug that removes each.
//! - [`testbed`]: a daemon, canaries and [`listeners`]; [`agents`] in it, what their model does ([`turns`]), and the
//!   files before each attack ([`ground`]); [`evidence`]: what is found from outside.
//! - [`run`]: which runs there are; [`worker`]: one of them, in its own process; [`report`]: the results.

pub mod agents;
pub mod approvals;
pub mod arrivals;
pub mod attack;
pub mod callers;
pub mod escalated;
pub mod evidence;
pub mod files;
pub mod git;
pub mod ground;
pub mod host_processes;
pub mod keys;
pub mod layers;
pub mod listeners;
pub mod nested;
pub mod network;
pub mod odd_files;
pub mod other_user;
pub mod outer_repositories;
pub mod report;
pub mod repositories;
pub mod root;
pub mod rules;
pub mod run;
pub mod strangers;
pub mod testbed;
pub mod text;
pub mod turns;
pub mod worker;

use attack::Theme;

pub const THEMES: [Theme; 18] = [
    files::THEME,
    keys::THEME,
    callers::THEME,
    approvals::THEME,
    escalated::THEME,
    git::THEME,
    repositories::THEME,
    outer_repositories::THEME,
    network::THEME,
    rules::THEME,
    text::THEME,
    strangers::THEME,
    nested::THEME,
    arrivals::THEME,
    host_processes::THEME,
    other_user::THEME,
    odd_files::THEME,
    root::THEME,
];

#[cfg(test)]
mod tests {
    use super::THEMES;
    use std::collections::HashSet;

    #[test]
    fn there_are_sixty_attacks_and_each_has_a_name_of_its_own() {
        let names: Vec<&str> = THEMES
            .iter()
            .flat_map(|theme| theme.attacks)
            .map(|attack| attack.name)
            .collect();
        let distinct: HashSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), distinct.len());
        assert!(names.len() >= 60, "{}", names.len());
    }
}
