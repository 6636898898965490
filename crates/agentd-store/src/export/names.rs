//! Checks names and labels in an export: control characters in them would act on every terminal that shows them.

use crate::error::{Error, Result};
use crate::stored::StoredEvent;
use agentd_core::event::{Body, Kind};
use agentd_core::plain::is_plain_line;

pub fn check(row: &StoredEvent) -> Result<()> {
    let kind = Kind::parse(&row.kind).filter(|kind| kind.has_names());
    let (Some(_), Some(body)) = (kind, &row.body) else {
        return Ok(());
    };
    if row.apart.is_some() {
        // Only strings longer than any name are stored separately.
        let what = format!("event {}: a name is too long", row.seq);
        return Err(Error::BadExport(what));
    }
    let body = Body::from_json(&row.kind, row.version, body);
    let body = body.map_err(|error| Error::BadExport(error.to_string()))?;
    let names = body.names();
    match names.into_iter().find(|name| !is_plain_line(name)) {
        Some(name) => Err(Error::BadName {
            seq: row.seq,
            name: name.to_owned(),
        }),
        None => Ok(()),
    }
}
