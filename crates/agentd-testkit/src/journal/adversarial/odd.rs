//! Structural events without a matching context.

use super::{IDS, Writer};
use agentd_core::event::*;
use agentd_core::hook::{self, HookEvent, Layer};
use agentd_core::id::*;
use agentd_core::message::CallOutcome;
use agentd_core::time::Timestamp;

impl Writer {
    pub(super) fn odd(&mut self, which: usize) {
        let request = TryId {
            incarnation: Incarnation(1),
            n: which as u64,
        };
        let call = CallId::new(IDS[which % IDS.len()]);
        let grant = Grant::default();
        let (purpose, status) = (Purpose::Answer, TurnStatus::Completed);
        let body: Body = match which {
            0 => TurnStarted::default().into(),
            1 => TurnEnded::with(status).into(),
            2 => RequestSent {
                request,
                purpose,
                grant,
            }
            .into(),
            3 => RequestEnded {
                request,
                outcome: RequestOutcome::Lost,
                usage: Default::default(),
                estimated: true,
                cost: None,
                provider_request: None,
            }
            .into(),
            4 => ToolEnded {
                seen: vec![FileSeen {
                    file: call.to_string(),
                    content: "a hash".to_owned(),
                }],
                ..ToolEnded::new(call, CallOutcome::Ok)
            }
            .into(),
            5 => TurnContinued {}.into(),
            6 => AgentArchived {}.into(),
            7 => PromptsSetAside {
                prompts: self.prompts.clone(),
            }
            .into(),
            8 => PromptsRequeued {
                prompts: self.prompts.clone(),
            }
            .into(),
            9 => CheckpointSet {
                label: "x".into(),
                at: Some(Seq(u64::MAX)),
            }
            .into(),
            10 => Body::Gone(Kind::MessageAdded),
            11 => AgentStopped {}.into(),
            12 => AgentStarted {}.into(),
            13 => AgentFailed {
                cause: FailCause::CrashLoop,
            }
            .into(),
            14 => IncarnationEnded {
                incarnation: Incarnation(1),
            }
            .into(),
            15..=18 => self.odd_reset(which),
            20..=23 => self.odd_hook(which, call),
            24..=26 => self.odd_queue(which),
            27..=34 => self.odd_files(which, call),
            35..=40 => odd_schedule(which),
            _ => Body::Gone(Kind::Prompt),
        };
        self.push(body);
    }

    /// An event of a hook that was never started or has already ended, or of a call that does not exist.
    fn odd_hook(&self, which: usize, call: CallId) -> Body {
        let (hook, invocation) = (
            HookId::from_bytes([6; 16]),
            InvocationId::from_bytes([7; 16]),
        );
        match which {
            20 => HookStarted {
                hook,
                invocation,
                event: HookEvent::Stop,
                layer: Layer::User,
                handler: "h".into(),
                way: HookWay::Command,
                is_async: false,
                fails_closed: false,
                boot: None,
                op: None,
                call: Some(call),
            }
            .into(),
            21 => HookEnded {
                hook,
                invocation,
                outcome: HookOutcome::Unknown,
                exit: None,
                timed_out: false,
                decision: hook::Decision::Deny,
                has_words: true,
                duration_ms: 0,
            }
            .into(),
            22 => {
                let arguments = [("a".to_owned(), 1.into())].into_iter().collect();
                CallRevised { call, arguments }.into()
            }
            _ => PromptBlocked {
                prompt: self
                    .prompts
                    .last()
                    .copied()
                    .unwrap_or(PromptId::from_bytes([8; 16])),
            }
            .into(),
        }
    }

    /// A change of a prompt that may not be queued.
    fn odd_queue(&self, which: usize) -> Body {
        let unknown = PromptId::from_bytes([8; 16]);
        let prompt = self.prompts.last().copied().unwrap_or(unknown);
        match which {
            24 => PromptEdited { prompt }.into(),
            25 => {
                let before = self.prompts.first().copied();
                PromptMoved { prompt, before }.into()
            }
            _ => {
                let prompts = vec![prompt, unknown];
                PromptsRemoved { prompts }.into()
            }
        }
    }

    /// A step of a reset that may never have begun.
    fn odd_reset(&self, which: usize) -> Body {
        let op = OpId::from_bytes([5; 16]);
        let (old, new) = (self.current, self.current);
        match which {
            15 => ResetBegan {
                op,
                to: ResetTo::Undo,
                force: true,
                kill_background: true,
                keep_queue: true,
                clear_log: true,
                skip_hooks: true,
                grace_ms: u64::MAX,
                was_awake: true,
                source: ResetSource::User,
            }
            .into(),
            16 => ResetStepped {
                op,
                step: ResetStep::Switch,
            }
            .into(),
            17 => ResetWithdrawn {
                op,
                why: ResetRefusal::NoTarget,
            }
            .into(),
            _ => ResetEnded::new(op, old, new).into(),
        }
    }

    /// An event of the history of files that matches nothing.
    fn odd_files(&mut self, which: usize, call: CallId) -> Body {
        let op = OpId::from_bytes([9; 16]);
        let path = format!("/{}", self.source.word());
        match which {
            27 => FileKept {
                by: KeptBy::Call { call },
                path,
                before: FileBefore::Absent,
                part: 1,
                parts: 0,
            }
            .into(),
            28 => FilesScanned {
                turn: TurnId::from_bytes([3; 16]),
                found: Scan::Unknown {
                    why: ScanProblem::Failed,
                },
            }
            .into(),
            29 => FilesRestoreBegan {
                op,
                undo_of: Some(op),
                to: None,
                to_in: None,
                files: u64::MAX,
                kept_bytes: u64::MAX,
            }
            .into(),
            30 => FilesRestoreEnded {
                op,
                outcome: RestoreOutcome::Done,
                restored: 0,
                failed: 0,
            }
            .into(),
            31 => FilesRestored {
                op,
                files: vec![RestoredFile {
                    path,
                    outcome: RestoredOutcome::Restored,
                }],
            }
            .into(),
            32 => Purged {
                files: Some(FilesPurged {
                    through: Seq(u64::MAX),
                    bytes: u64::MAX,
                }),
                ..Purged::conversation(self.current, 0)
            }
            .into(),
            33 => Body::Gone(Kind::FilesScanned),
            _ => Body::Gone(Kind::FileKept),
        }
    }
}

/// An event of a schedule that may not exist, or that handles a due time again.
fn odd_schedule(which: usize) -> Body {
    let schedule = ScheduleId::from_bytes([6; 16]);
    let due = Timestamp::from_millis(2_000);
    let next = Some(due);
    match which {
        35 => ScheduleAdded {
            schedule,
            name: "odd".to_owned(),
            rule: ScheduleRule::Cron {
                expression: "never".to_owned(),
                zone: "nowhere".to_owned(),
            },
            action: ScheduleAction::Fresh,
            missed: MissedPolicy::All,
            overlap: OverlapPolicy::Skip,
            next,
        }
        .into(),
        36 => ScheduleMoved { schedule }.into(),
        37 => SchedulePaused {
            schedule,
            why: PausedBecause::CannotRun,
        }
        .into(),
        38 => ScheduleResumed { schedule, next }.into(),
        39 => ScheduleRemoved { schedule }.into(),
        _ => ScheduleFired {
            schedule,
            due: next,
            outcome: FiringOutcome::Fired {
                prompt: Some(PromptId::from_bytes([8; 16])),
                op: None,
            },
            missed: u64::MAX,
            next,
        }
        .into(),
    }
}
