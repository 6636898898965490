//! Bugs that the product can inject into itself, in the lab only: they prove that the lab can fail. Each has a
//! run that shows it, and the promise that it violates.

use super::spec::Spec;

#[derive(Clone, Copy, Debug)]
pub struct InjectedBug {
    pub name: &'static str,
    pub about: &'static str,
    /// The run that shows it, without the bug's own name.
    run: &'static str,
    /// The promise whose check detects it; others may detect it as well.
    pub promise: &'static str,
}

pub const ALL: [InjectedBug; 21] = [
    InjectedBug {
        name: "acknowledged_early",
        about: "an acknowledgement before the commit",
        run: "accepted,seed=1,fault=daemon@before-commit.prompt_queued=KILL",
        promise: "P1",
    },
    InjectedBug {
        name: "result_not_kept",
        about: "a result that is not persisted",
        run: "leftovers,seed=1",
        promise: "P4",
    },
    InjectedBug {
        name: "no_fence",
        about: "no fence check on appends",
        run: "accepted,seed=1,fault=runtime@after-send.append#5=KILL",
        promise: "P3",
    },
    InjectedBug {
        name: "tool_run_again",
        about: "a started tool that is run again",
        run: "leftovers,seed=1,fault=runtime@before-result=KILL",
        promise: "P4",
    },
    InjectedBug {
        name: "notice_twice",
        about: "a notice that is written twice",
        run: "interrupt,seed=1",
        promise: "P11",
    },
    InjectedBug {
        name: "kill_misses_group",
        about: "a kill that misses the group",
        // A sandbox ends with all its processes, whichever is killed.
        run: "leftovers,seed=1,full-access",
        promise: "P9",
    },
    InjectedBug {
        name: "draft_not_flushed",
        about: "a draft that is shown and not flushed",
        run: "interrupt,seed=1,fault=runtime@after-draft#2=KILL",
        promise: "P5",
    },
    InjectedBug {
        name: "claim_not_taken",
        about: "a claim that recovery does not take",
        run: "leftovers,seed=1,fault=runtime@after-hand=KILL",
        promise: "P4",
    },
    InjectedBug {
        name: "reset_in_two",
        about: "a reset that is not one transaction",
        run: "resets,seed=1,fault=daemon@after-commit.conversation_sealed=KILL",
        promise: "P12",
    },
    InjectedBug {
        name: "hook_twice",
        about: "a hook that runs twice for one event",
        run: "hooks,seed=1,fault=runtime@before-turn_started=KILL",
        promise: "P13",
    },
    InjectedBug {
        name: "told_twice_of_child",
        about: "the end of a subagent, reported twice",
        run: "subagents,seed=1",
        promise: "P14",
    },
    InjectedBug {
        name: "restore_in_place",
        about: "a restore that writes files in place",
        run: "restore,seed=1,full-access,fault=tool@before-rename.restore=KILL",
        promise: "P15",
    },
    InjectedBug {
        name: "kept_after_start",
        about: "what a call changes is kept only after its start",
        run: "files,seed=1",
        promise: "P15",
    },
    InjectedBug {
        name: "firing_in_two",
        about: "a due time that is handled only after its prompt was accepted",
        run: "schedule,seed=1,fault=daemon@before-schedule_handled#2=KILL",
        promise: "P16",
    },
    InjectedBug {
        name: "position_before_send",
        about: "a position that is stored before the message is accepted",
        run: "webhooks,seed=1,fault=daemon@before-binding.send=KILL",
        promise: "P17",
    },
    InjectedBug {
        name: "notice_position_before_send",
        about: "a position that is stored before the notification is accepted",
        run: "webhooks,seed=1,fault=daemon@before-notice.send=KILL",
        promise: "P17",
    },
    InjectedBug {
        name: "backup_removed_early",
        about: "a backup that is deleted before another replaces it",
        // The fourth backup replaces the second.
        run: "backup,seed=1,fault=daemon@in-backup#4=KILL",
        promise: "P18",
    },
    InjectedBug {
        name: "panic_unnoticed",
        about: "a task that panics without cleanup",
        run: "accepted,seed=1,fault=daemon@on-receive.append#3=PANIC",
        promise: "stuck",
    },
    InjectedBug {
        name: "log_panics",
        about: "a log line on a full disk that panics",
        // Harmless alone: a task that panics is noticed.
        run: "disk-full,seed=1,bug=panic_unnoticed",
        promise: "stuck",
    },
    InjectedBug {
        name: "copy_unnoticed",
        about: "a copied home that runs like the original",
        run: "home-copied,seed=1",
        promise: "stuck",
    },
    InjectedBug {
        name: "loss_unnoticed",
        about: "a deleted home that the daemon ignores",
        run: "home-lost,seed=1",
        promise: "stuck",
    },
];

impl InjectedBug {
    /// The run that shows it.
    pub fn spec(&self) -> Result<Spec, String> {
        let mut spec: Spec = self.run.parse()?;
        spec.injected_bugs.push(self.name.to_owned());
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use crate::lab::scenario;

    #[test]
    fn each_has_a_run_of_a_scenario_that_there_is() {
        for injected_bug in ALL {
            let spec = injected_bug.spec().unwrap();
            assert!(scenario::names().contains(&&*spec.scenario), "{spec}");
            assert!(
                spec.injected_bugs
                    .iter()
                    .any(|name| name == injected_bug.name)
            );
        }
    }
}
