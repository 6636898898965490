//! Errors of the store and refusals of core, as problems of the API.

use agentd_client::{Kind, Problem};
use agentd_core::begin::Refused;
use agentd_store::Error;

pub type Result<T> = std::result::Result<T, Problem>;

pub fn of_store(error: &Error) -> Problem {
    let kind = match error {
        Error::NoSuchAgent { .. } | Error::NoSuchConversation { .. } => Kind::NotFound,
        Error::NameTaken { .. }
        | Error::AgentExists { .. }
        | Error::OtherOp { .. }
        | Error::GenerationChanged { .. }
        | Error::PurgeCurrent { .. }
        | Error::PurgeNeeded { .. }
        | Error::OriginPurged { .. } => Kind::Conflict,
        Error::TooLarge { .. } | Error::ExportTooLarge { .. } => Kind::TooLarge,
        Error::ReadOnly { .. } => Kind::Refused,
        Error::BadExport(_)
        | Error::BadName { .. }
        | Error::NameIsId { .. }
        | Error::EmptyAppend
        | Error::WithoutWords => Kind::Invalid,
        Error::NotCommitted(_)
        | Error::Uncertain(_)
        | Error::Unavailable(_)
        | Error::NotScrubbed(_)
        | Error::Behind { .. }
        | Error::NoJournal { .. }
        | Error::RepairUnfinished
        | Error::StaleFence { .. }
        | Error::Closed => Kind::Unavailable,
        _ => Kind::Internal,
    };
    Problem::new(kind, error.to_string())
}

pub fn of_refusal(refused: &Refused) -> Problem {
    let kind = match refused {
        Refused::NoConversation | Refused::NotThere(_) | Refused::NoSuchConversation(_) => {
            Kind::NotFound
        }
        _ => Kind::Conflict,
    };
    let problem = Problem::new(kind, refused.to_string());
    match refused {
        Refused::OtherOp(_) => problem.next("omit --op, or use another op for each change"),
        _ => problem,
    }
}
