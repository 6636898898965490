//! Objects of the API with every field set.

use super::*;

pub fn agent_ref() -> AgentRef {
    AgentRef {
        id: AgentId::new(ID),
        name: Some("coder".to_owned()),
    }
}

pub fn text() -> String {
    "x".to_owned()
}

/// Each struct is constructed with all of its fields, so that the compiler reports a new field that is missing here.
pub fn agent() -> Agent {
    let at = Timestamp::from_millis(0);
    Agent {
        id: AgentId::new(ID),
        name: text(),
        aliases: vec![text()],
        mode: Mode::Persistent,
        phase: Phase::Idle,
        process: Process {
            state: ProcessState::Up,
            pid: Some(1),
        },
        generation: 1,
        head: Seq(1),
        conversation: Some(Current {
            id: ConversationId::new(ID),
            ordinal: 1,
            parent: None,
            turns: 1,
            usage: Usage::default(),
        }),
        title: Some(text()),
        model: Some(text()),
        provider: Some(text()),
        cwd: Some(text()),
        usage: Usage::default(),
        created_at: at,
        updated_at: at,
        started_at: Some(at),
        completed_at: Some(at),
        turn: Some(TurnId::new(ID)),
        last_turn: Some(LastTurn {
            id: TurnId::new(ID),
            conversation: ConversationId::new(ID),
            status: TurnStatus::Completed,
            limit: Some(LimitKind::TurnCost),
        }),
        summary: Some(text()),
        plan: Some(PlanSet::default()),
        error: Some(text()),
        paused: Some(PauseReason::Crash),
        queued: 1,
        approvals: vec![Approval {
            id: ApprovalId::new(ID),
            call: text(),
            asked_at: at,
            agent: Some(agent_ref()),
            why: Some(text()),
            what: Some(Call {
                tool: text(),
                input: json!({}),
                cwd: Some(text()),
                sandbox: Sandbox::default(),
                network: Network::default(),
                needs: vec![Need {
                    need: text(),
                    words: text(),
                    danger: Some(text()),
                }],
                hash: text(),
            }),
            question: Some(Question {
                server: text(),
                message: text(),
                form: Some(json!({})),
                url: Some(text()),
            }),
        }],
        tasks: vec![TaskId::new(ID)],
        schedules: vec![schedule()],
        parent: Some(agent_ref()),
        children: vec![Child {
            id: AgentId::new(ID),
            name: text(),
            kind: Some(text()),
            background: true,
            started_at: at,
            outcome: Some(SubagentOutcome::Completed),
        }],
        archived: false,
        held: true,
        stopped: false,
        displaced: Some(agent_ref()),
        untrusted_hooks: Some(text()),
        broken_hooks: Some(text()),
        no_tools: Some(text()),
        missing_env: vec![text()],
        missing_services: vec![text()],
        missing_keys: vec![agent_ref()],
    }
}

pub fn schedule() -> Schedule {
    let at = Timestamp::from_millis(0);
    Schedule {
        agent: agent_ref(),
        id: ScheduleId::new(ID),
        name: text(),
        when: When::Every { every_ms: 1000 },
        action: ScheduleAction::Fresh,
        prompt: Some(text()),
        missed: MissedPolicy::Once,
        overlap: OverlapPolicy::Skip,
        added_at: at,
        paused: Some(PausedBecause::User),
        waits: Some(ScheduleWaits::Stopped),
        next: vec![DueTime(at)],
        last: Some(LastFiring {
            due: Some(at),
            at,
            outcome: FiringOutcome::Skipped {
                why: SkippedBecause::Missed,
            },
        }),
    }
}

pub fn agent_approvals() -> Vec<Approval> {
    agent().approvals
}

pub fn held() -> Held {
    let at = Timestamp::from_millis(0);
    Held {
        agent: agent_ref(),
        reason: HoldReason::Imported,
        since: at,
        from: None,
        head: Seq(1),
        created_at: at,
        conversations: 1,
        turns: 1,
        queued: 1,
        queue: vec![HeldPrompt {
            prompt: PromptId::new(ID),
            at,
            text: Some(text()),
        }],
        turn: None,
        approvals: agent_approvals(),
        tasks: 0,
        settings: HeldSettings {
            provider: None,
            model: None,
            cwd: None,
            runtime: Runtime::Native,
            command: None,
            tools: None,
            allows: Vec::new(),
            approval: None,
            sandbox: None,
            network: None,
            writable: Vec::new(),
            readable: Vec::new(),
            pass: Vec::new(),
            env: Vec::new(),
            pass_env: Vec::new(),
            hooks: Vec::new(),
            mcp: BTreeMap::new(),
        },
        drops: Vec::new(),
    }
}

pub fn conversation() -> Conversation {
    Conversation {
        id: ConversationId::new(ID),
        ordinal: 1,
        parent: None,
        from: Some(origin()),
        source: BeginSource::Fork,
        began: Seq(1),
        began_at: Timestamp::from_millis(0),
        head: Seq(1),
        sealed: Some(SealReason::Reset),
        current: true,
        title: Some(text()),
        turns: 1,
        ended_turns: 1,
        compactions: 1,
        context_tokens: 1,
        usage: Usage::default(),
        labels: BTreeMap::new(),
        purged: false,
        last_request: Some(text()),
    }
}

pub fn origin() -> Origin {
    Origin {
        agent: agent_ref(),
        conversation: ConversationId::new(ID),
        seq: Seq(1),
    }
}
