//! Admission: whether a new turn may begin now, or must wait.
//!
//! The limits are those of the whole home. A turn that has begun is never held back.

use crate::usage::MicroUsd;
use std::fmt;

/// Bytes that must be free if the settings say nothing.
const MIN_FREE: u64 = 100_000_000;
/// On a small file system that would be most of it: one part of this many is enough there.
const PARTS: u64 = 50;

/// What the user's settings say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Turns at the same time.
    pub max_turns: Option<u32>,
    /// What all agents together may spend on a day.
    pub day_usd: Option<MicroUsd>,
    /// Bytes that must be free on the disk of the state directory. None is 100 MB, or 2 % of a small disk.
    pub min_free: Option<u64>,
}

/// Free and total bytes of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    pub free: u64,
    pub total: u64,
}

/// What the daemon knows when a turn wants to begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    pub is_draining: bool,
    /// The turns that are running, without those that wait for the user.
    pub turns: u64,
    /// None if it is not known, or there is no limit.
    pub spent_today: Option<MicroUsd>,
    /// None if it cannot be read.
    pub disk: Option<Disk>,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    User,
    /// A subagent's. The turn of its parent may be waiting for it, so holding it back could block both for good.
    Subagent,
}

/// Why a turn waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Draining,
    Disk { free: u64, least: u64 },
    Turns { limit: u32 },
    DayCost { spent: MicroUsd, limit: MicroUsd },
}

/// Why a turn must wait; none if it may begin.
pub fn wait(rules: &Rules, now: &Now, whose: Whose) -> Option<Wait> {
    if let Some(disk) = now.disk {
        let usual = MIN_FREE.min(disk.total / PARTS);
        let least = rules.min_free.unwrap_or(usual);
        if disk.free < least {
            let free = disk.free;
            return Some(Wait::Disk { free, least });
        }
    }
    if whose == Whose::Subagent {
        return None;
    }
    if now.is_draining {
        return Some(Wait::Draining);
    }
    match rules.max_turns {
        Some(limit) if now.turns >= u64::from(limit) => return Some(Wait::Turns { limit }),
        _ => {}
    }
    match (rules.day_usd, now.spent_today) {
        (Some(limit), Some(spent)) if spent >= limit => Some(Wait::DayCost { spent, limit }),
        _ => None,
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usd = |MicroUsd(micros): MicroUsd| micros as f64 / 1e6;
        match *self {
            Self::Draining => f.write_str(
                "its turn waits: the daemon is draining; `agentd daemon drain --off` lets turns begin again",
            ),
            Self::Disk { free, least } => write!(
                f,
                "its turn waits: the disk of the state directory has {} MB left, and {} MB are required \
                 (daemon.min_free_mb); free some space",
                free / 1_000_000,
                least / 1_000_000
            ),
            Self::Turns { limit } => write!(
                f,
                "its turn waits until another one ends: daemon.max_turns is {limit}"
            ),
            Self::DayCost { spent, limit } => write!(
                f,
                "its turn waits until tomorrow (UTC): agents have spent ${:.2} of ${:.2} today (daemon.day.usd)",
                usd(spent),
                usd(limit)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    fn rules() -> Rules {
        Rules {
            max_turns: Some(2),
            day_usd: Some(MicroUsd(5_000_000)),
            min_free: None,
        }
    }

    fn now() -> Now {
        Now {
            is_draining: false,
            turns: 1,
            spent_today: Some(MicroUsd(4_999_999)),
            disk: Some(Disk {
                free: 100 * MB,
                total: 100_000 * MB,
            }),
        }
    }

    #[test]
    fn a_turn_begins_below_all_limits() {
        assert_eq!(wait(&rules(), &now(), Whose::User), None);
        let unknown = Now::default();
        assert_eq!(wait(&rules(), &unknown, Whose::User), None);
        assert_eq!(wait(&Rules::default(), &now(), Whose::User), None);
    }

    #[test]
    fn each_limit_holds_a_turn_back_and_names_its_setting() {
        let disk = Some(Disk {
            free: 99 * MB,
            total: 100_000 * MB,
        });
        let spent = Some(MicroUsd(5_000_000));
        let cases = [
            (
                Now {
                    is_draining: true,
                    ..now()
                },
                "drain --off",
            ),
            (Now { turns: 2, ..now() }, "daemon.max_turns"),
            (
                Now {
                    spent_today: spent,
                    ..now()
                },
                "daemon.day.usd",
            ),
            (Now { disk, ..now() }, "daemon.min_free_mb"),
        ];
        for (now, named) in cases {
            let waits = wait(&rules(), &now, Whose::User);
            let text = waits.map(|it| it.to_string()).unwrap_or_default();
            assert!(text.contains(named), "{now:?}: {text}");
        }
    }

    #[test]
    fn a_subagent_waits_for_nothing_but_disk_space() {
        let full = Now {
            is_draining: true,
            turns: 9,
            spent_today: Some(MicroUsd(9_000_000)),
            ..now()
        };
        assert_eq!(wait(&rules(), &full, Whose::Subagent), None);
        let disk = Some(Disk { free: 0, total: MB });
        let waits = wait(&rules(), &Now { disk, ..full }, Whose::Subagent);
        assert!(matches!(waits, Some(Wait::Disk { .. })), "{waits:?}");
    }

    #[test]
    fn a_small_disk_needs_a_share_of_itself() {
        let disk = |free| Now {
            disk: Some(Disk {
                free,
                total: 50 * MB,
            }),
            ..Now::default()
        };
        assert_eq!(wait(&rules(), &disk(MB), Whose::User), None);
        assert!(wait(&rules(), &disk(MB - 1), Whose::User).is_some());
        let exact = Rules {
            min_free: Some(10 * MB),
            ..rules()
        };
        assert!(wait(&exact, &disk(10 * MB - 1), Whose::User).is_some());
        assert_eq!(wait(&exact, &disk(10 * MB), Whose::User), None);
    }
}
