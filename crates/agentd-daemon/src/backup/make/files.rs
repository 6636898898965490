//! Adds the files of a home to a backup.

use super::{Destination, Sink};
use crate::backup::archive::{CHUNK, KeptFile, Record, Stored, hex};
use crate::backup::home_file::{self, HomeFile};
use crate::backup::{Error, Result};
use crate::layout::Layout;
use agentd_core::catalog::without_addresses;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};

/// About as many bytes as a full backup reads.
pub fn total(layout: &Layout) -> u64 {
    let journal = std::fs::metadata(layout.home().join("journal.db"));
    let journal = journal.map_or(0, |about| about.len());
    let files = home_file::all(layout).unwrap_or_default();
    let sizes = files.iter().map(|file| file.size(layout));
    sizes.fold(journal, u64::saturating_add)
}

/// Writes the files of which the parent does not have the same content.
pub fn write(
    layout: &Layout,
    known: Vec<KeptFile>,
    sink: &Sink,
    destination: &Destination,
) -> Result<Vec<KeptFile>> {
    let known: BTreeMap<HomeFile, KeptFile> = known
        .into_iter()
        .map(|kept| (kept.file.clone(), kept))
        .collect();
    let mut all = Vec::new();
    for file in home_file::all(layout)? {
        if let Some(before) = known.get(&file)
            && is_same(layout, before)?
        {
            all.push(KeptFile {
                stored: Stored::Earlier,
                ..before.clone()
            });
            continue;
        }
        // It may be gone by now: a purge deletes files.
        let Some(content) = content(&file, layout)? else {
            continue;
        };
        let (size, sha256) = copy(&file, content, layout, sink, destination)?;
        all.push(KeptFile {
            file,
            size,
            sha256,
            stored: Stored::Here,
        });
    }
    Ok(all)
}

fn is_same(layout: &Layout, before: &KeptFile) -> Result<bool> {
    let Some(content) = content(&before.file, layout)? else {
        return Ok(false);
    };
    if content.size != before.size {
        return Ok(false);
    }
    let mut hash = Sha256::new();
    chunks(&before.file, content, layout, |bytes| {
        hash.update(&bytes);
        Ok(())
    })?;
    Ok(hex(&hash.finalize()) == before.sha256)
}

/// What a backup has of a file.
struct Content {
    size: u64,
    from: Box<dyn Read>,
}

/// The content of a file as it is now: what a running task adds meanwhile is not read. None if it is gone.
fn content(file: &HomeFile, layout: &Layout) -> Result<Option<Content>> {
    let Some(mut opened) = file.open(layout)? else {
        return Ok(None);
    };
    let path = file.path(layout);
    if *file != HomeFile::Config {
        let size = opened.metadata().map_err(Error::io(&path))?.len();
        let from = Box::new(opened);
        return Ok(Some(Content { size, from }));
    }
    let mut text = Vec::new();
    opened.read_to_end(&mut text).map_err(Error::io(&path))?;
    let text = String::from_utf8(text).ok();
    let Some(left) = text.and_then(|text| without_addresses(&text)) else {
        tracing::warn!(file = %path.display(), "settings not backed up: not valid TOML");
        return Ok(None);
    };
    let size = left.len() as u64;
    let from = Box::new(Cursor::new(left));
    Ok(Some(Content { size, from }))
}

fn copy(
    file: &HomeFile,
    content: Content,
    layout: &Layout,
    sink: &Sink,
    destination: &Destination,
) -> Result<(u64, String)> {
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::Interrupted => Error::Cancelled,
        _ => Error::io(&destination.file)(error),
    };
    sink.record(&Record::File(file.clone())).map_err(cannot)?;
    let (mut hash, mut size) = (Sha256::new(), 0);
    chunks(file, content, layout, |bytes| {
        hash.update(&bytes);
        size += bytes.len() as u64;
        sink.record(&Record::Data(bytes)).map_err(cannot)
    })?;
    Ok((size, hex(&hash.finalize())))
}

fn chunks(
    file: &HomeFile,
    content: Content,
    layout: &Layout,
    mut each: impl FnMut(Vec<u8>) -> Result<()>,
) -> Result<()> {
    let path = file.path(layout);
    let mut left = content.from.take(content.size);
    loop {
        let mut bytes = Vec::with_capacity(CHUNK);
        let mut chunk = left.by_ref().take(CHUNK as u64);
        let read = chunk.read_to_end(&mut bytes).map_err(Error::io(&path))?;
        if read == 0 {
            return Ok(());
        }
        each(bytes)?;
    }
}
