//! The records in a page of a database, as far as they can be read. Nothing here trusts the bytes:
//! the checksum chain decides which records are valid.

use super::image::{Image, big_endian};
use rusqlite::types::Value;

/// No event, blob or draft is larger.
const MAX_RECORD: usize = 64 * 1024 * 1024;
const MAX_COLUMNS: usize = 64;

/// What kind of tree a record was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree {
    Table,
    /// An index, or a table without row numbers.
    Index,
}

#[derive(Debug)]
pub struct Record {
    pub tree: Tree,
    /// Zero in an index.
    pub row: i64,
    pub values: Vec<Value>,
}

/// Which version of an overflow page is read, if a record continues there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Committed,
    Newest,
}

/// The records of one page; empty if the page holds none.
pub fn records(image: &Image, number: u32, page: &[u8], version: Version) -> Vec<Record> {
    // The first page begins with the file's own header.
    let header = if number == 1 { 100 } else { 0 };
    let (tree, cells_at, skip) = match page.get(header) {
        Some(0x0d) => (Tree::Table, header + 8, 0),
        Some(0x0a) => (Tree::Index, header + 8, 0),
        // Index entries are also stored in inner pages, after the number of a child page.
        Some(0x02) => (Tree::Index, header + 12, 4),
        _ => return Vec::new(),
    };
    let count = big_endian(page, header + 3, 2) as usize;
    let reader = Reader {
        image,
        version,
        page,
        tree,
    };
    (0..count.min(page.len() / 2))
        .map(|index| big_endian(page, cells_at + index * 2, 2) as usize + skip)
        .filter_map(|at| reader.cell(at))
        .collect()
}

struct Reader<'a> {
    image: &'a Image,
    version: Version,
    page: &'a [u8],
    tree: Tree,
}

impl Reader<'_> {
    fn cell(&self, mut at: usize) -> Option<Record> {
        let length = usize::try_from(varint(self.page, &mut at)?).ok()?;
        let row = match self.tree {
            Tree::Table => varint(self.page, &mut at)?,
            Tree::Index => 0,
        };
        let payload = self.payload(at, length)?;
        Some(Record {
            tree: self.tree,
            row,
            values: values(&payload)?,
        })
    }

    /// The contents of a record: the part in this page, and the overflow pages.
    fn payload(&self, at: usize, length: usize) -> Option<Vec<u8>> {
        if length > MAX_RECORD {
            return None;
        }
        let usable = self.image.page_size;
        let most = match self.tree {
            Tree::Table => usable - 35,
            Tree::Index => (usable - 12) * 64 / 255 - 23,
        };
        if length <= most {
            return Some(self.page.get(at..at + length)?.to_vec());
        }
        let least = (usable - 12) * 32 / 255 - 23;
        let fitting = least + (length - least) % (usable - 4);
        let local = if fitting <= most { fitting } else { least };
        let mut payload = self.page.get(at..at + local)?.to_vec();
        let mut next = big_endian(self.page, at + local, 4) as u32;
        while payload.len() < length {
            let page = match self.version {
                Version::Committed => self.image.page(next),
                Version::Newest => self.image.newest(next),
            };
            let page = page.ok().flatten().filter(|_| next > 0)?;
            let wanted = (length - payload.len()).min(usable - 4);
            payload.extend(page.get(4..4 + wanted)?);
            next = big_endian(&page, 0, 4) as u32;
        }
        Some(payload)
    }
}

fn values(payload: &[u8]) -> Option<Vec<Value>> {
    let mut at = 0;
    let header = usize::try_from(varint(payload, &mut at)?).ok()?;
    let mut body = header;
    let mut values = Vec::new();
    while at < header {
        if values.len() == MAX_COLUMNS {
            return None;
        }
        let kind = varint(payload, &mut at)?;
        values.push(value(payload, &mut body, kind)?);
    }
    (at == header).then_some(values)
}

fn value(payload: &[u8], at: &mut usize, kind: i64) -> Option<Value> {
    let length = match kind {
        0 | 8 | 9 => 0,
        1..=4 => usize::try_from(kind).ok()?,
        5 => 6,
        6 | 7 => 8,
        12.. => usize::try_from((kind - 12) / 2).ok()?,
        _ => return None,
    };
    let bytes = payload.get(*at..at.checked_add(length)?)?;
    *at += length;
    Some(match kind {
        0 => Value::Null,
        7 => Value::Real(f64::from_bits(big_endian(bytes, 0, 8))),
        8 => Value::Integer(0),
        9 => Value::Integer(1),
        1..=6 => {
            // Extends the sign, which is in the first byte.
            let unused = 64 - 8 * length as u32;
            Value::Integer((big_endian(bytes, 0, length) as i64) << unused >> unused)
        }
        _ if kind % 2 == 0 => Value::Blob(bytes.to_vec()),
        _ => Value::Text(String::from_utf8(bytes.to_vec()).ok()?),
    })
}

/// A number of one to nine bytes.
fn varint(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let mut number: u64 = 0;
    for index in 0..9 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if index == 8 {
            return Some(((number << 8) | u64::from(byte)) as i64);
        }
        number = (number << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number as i64)
}
