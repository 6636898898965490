//! The content that a change left: on disk, or as the recorded call wrote it.

use super::contents;
use super::sandbox::ToolSandbox;
use super::{carry_out, reach, worker};
use crate::daemon::AgentHandle;
use crate::error::Result;
use crate::spawn::blocking;
use agentd_core::digest::sha256;
use agentd_core::event::{Body, FileState, Kind};
use agentd_core::files::work::Work;
use agentd_core::files::{Change, ChangedBy};
use agentd_core::id::{CallId, Seq};
use agentd_core::message::{Arguments, Block};
use agentd_sandbox::Shared;
use agentd_store::ReadQuery;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// What is at paths now.
pub type OnDisk = BTreeMap<String, AtPath>;

/// What is at a path.
pub enum AtPath {
    /// With the content of a file.
    Known(FileState, Option<Vec<u8>>),
    /// A file of this size, which was not read.
    TooLarge(u64),
}

/// Larger files are not compared.
pub const LARGEST: u64 = 1024 * 1024;
/// Events that are read at once.
const PAGE: usize = 100;

/// Reads what is at these paths. If that is not possible, nothing is known about them.
pub async fn on_disk(
    handle: &AgentHandle,
    sandbox: &ToolSandbox,
    dir: &Path,
    paths: Vec<String>,
) -> OnDisk {
    let paths = match shown(sandbox, paths).await {
        Ok(paths) => paths,
        Err(error) => {
            tracing::warn!(agent = %handle.id, %error, "files not read");
            Vec::new()
        }
    };
    if paths.is_empty() {
        return OnDisk::new();
    }
    let (layout, owner, at) = (handle.daemon.layout.clone(), handle.id, dir.to_owned());
    let made = blocking(move || layout.make_owned_dir(&at, Some(owner))).await;
    let work = Work::Read {
        paths,
        largest: LARGEST,
        hashed: LARGEST,
    };
    let found = match made {
        Ok(()) => worker::read(sandbox, &dir.join("read"), &work).await,
        Err(error) => Err(contents::unwritable(&error)),
    };
    carry_out::remove(dir.to_owned()).await;
    let found = found.unwrap_or_else(|error| {
        tracing::warn!(agent = %handle.id, %error, "files not read");
        BTreeMap::new()
    });
    let known = found.into_iter().filter_map(|(path, found)| {
        if let Some(size) = found.size_not_read() {
            return Some((path, AtPath::TooLarge(size)));
        }
        let state = found.state()?.clone();
        let content = match found.not_kept() {
            Some(_) => None,
            None => {
                let parts = found.parts().iter().map(contents::bytes);
                parts
                    .collect::<Option<Vec<_>>>()
                    .map(|parts| parts.concat())
            }
        };
        Some((path, AtPath::Known(state, content)))
    });
    known.collect()
}

/// The paths at which the sandbox shows what the host has.
async fn shown(sandbox: &ToolSandbox, paths: Vec<String>) -> Result<Vec<String>> {
    if paths.is_empty() {
        return Ok(paths);
    }
    let shared = reach::of(sandbox, paths).await?.into_iter();
    let shown = shared.filter(|(_, shared)| *shared != Shared::No);
    Ok(shown.map(|(path, _)| path).collect())
}

/// The content with this hash that a call wrote, from its arguments. `before` is what it changed, if that is known.
pub async fn written(
    handle: &AgentHandle,
    change: &Change,
    hash: &str,
    before: Option<&[u8]>,
) -> Result<Option<Vec<u8>>> {
    let ChangedBy::Call(call) = &change.by else {
        return Ok(None);
    };
    let Some(arguments) = arguments(handle, change, call).await? else {
        return Ok(None);
    };
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let content = match (
        text("content"),
        text("old_string"),
        text("new_string"),
        before,
    ) {
        (Some(content), _, _, _) => Some(content.to_owned()),
        (None, Some(old), Some(new), Some(before)) => {
            let before = String::from_utf8_lossy(before);
            let is_all = arguments.get("replace_all").and_then(Value::as_bool);
            Some(match is_all.unwrap_or_default() {
                true => before.replace(old, new),
                false => before.replacen(old, new, 1),
            })
        }
        _ => None,
    };
    let content = content.map(String::into_bytes);
    Ok(content.filter(|content| sha256(content) == hash))
}

/// The arguments of a call, from the message before the change.
async fn arguments(
    handle: &AgentHandle,
    change: &Change,
    call: &CallId,
) -> Result<Option<Map<String, Value>>> {
    let mut found = None;
    let mut after = Seq::ZERO;
    loop {
        let query = ReadQuery {
            turn: change.turn,
            kinds: &[Kind::MessageAdded, Kind::CallRevised],
            ..ReadQuery::all(change.event.agent, after, PAGE)
        };
        let page = handle.daemon.store.read(query).await?;
        let events = page.events.into_iter();
        for event in events.filter(|event| event.seq <= change.event.seq) {
            match event.body {
                Body::MessageAdded(message) => {
                    for block in message.blocks {
                        if let Block::ToolCall(made) = block
                            && made.id == *call
                            && let Arguments::Object(arguments) = made.arguments
                        {
                            found = Some(arguments);
                        }
                    }
                }
                Body::CallRevised(revised) if revised.call == *call => {
                    found = Some(revised.arguments);
                }
                _ => {}
            }
        }
        match page.next {
            Some(next) if next < change.event.seq => after = next,
            _ => return Ok(found),
        }
    }
}
