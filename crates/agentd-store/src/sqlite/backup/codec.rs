//! Rows as bytes: a tag and a value for each column.

use crate::backup::MAX_PART;
use crate::error::{Error, Result};
use rusqlite::types::{Value, ValueRef};

const NULL: u8 = 0;
const INTEGER: u8 = 1;
const TEXT: u8 = 2;
const BLOB: u8 = 3;

/// Bytes of rows that are written as one part.
const PART: usize = 256 * 1024;
/// The number of the table, and the number of rows.
const HEAD: usize = 5;

/// Rows of one table that become one part.
pub struct Batch {
    table: u8,
    rows: u32,
    bytes: Vec<u8>,
}

impl Batch {
    pub const fn new(table: u8) -> Self {
        Self {
            table,
            rows: 0,
            bytes: Vec::new(),
        }
    }

    pub fn value(&mut self, value: ValueRef<'_>) -> Result<()> {
        match value {
            ValueRef::Null => self.bytes.push(NULL),
            ValueRef::Integer(number) => {
                self.bytes.push(INTEGER);
                self.bytes.extend(number.to_le_bytes());
            }
            ValueRef::Text(text) => self.long(TEXT, text)?,
            ValueRef::Blob(bytes) => self.long(BLOB, bytes)?,
            ValueRef::Real(_) => {
                return Err(bad("a column with a number that is not an integer"));
            }
        }
        Ok(())
    }

    fn long(&mut self, tag: u8, bytes: &[u8]) -> Result<()> {
        let length = u32::try_from(bytes.len()).map_err(|_| bad("a column that is too long"))?;
        self.bytes.push(tag);
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    pub const fn end_row(&mut self) {
        self.rows += 1;
    }

    pub const fn is_full(&self) -> bool {
        self.bytes.len() >= PART
    }

    /// The part, if there are rows in it.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let rows = std::mem::take(&mut self.rows);
        let bytes = std::mem::take(&mut self.bytes);
        if rows == 0 {
            return None;
        }
        let mut part = Vec::with_capacity(HEAD + bytes.len());
        part.push(self.table);
        part.extend(rows.to_le_bytes());
        part.extend(bytes);
        Some(part)
    }
}

/// Reads a part. It may come from a file that another program has changed.
pub struct Rows<'a> {
    pub table: u8,
    left: u32,
    bytes: &'a [u8],
}

impl<'a> Rows<'a> {
    pub fn of(part: &'a [u8]) -> Result<Self> {
        if part.len() > MAX_PART {
            return Err(bad("a part that is too long"));
        }
        let (table, rest) = part.split_first().ok_or_else(|| bad("an empty part"))?;
        let (rows, bytes) = rest
            .split_first_chunk::<4>()
            .ok_or_else(|| bad("a part without a number of rows"))?;
        Ok(Self {
            table: *table,
            left: u32::from_le_bytes(*rows),
            bytes,
        })
    }

    /// The next row; none after the last one.
    pub fn next(&mut self, columns: usize) -> Result<Option<Vec<Value>>> {
        if self.left == 0 {
            return match self.bytes.is_empty() {
                true => Ok(None),
                false => Err(bad("bytes after the last row")),
            };
        }
        self.left -= 1;
        let row = (0..columns).map(|_| self.value());
        row.collect::<Result<Vec<Value>>>().map(Some)
    }

    fn value(&mut self) -> Result<Value> {
        let tag = *self.bytes(1)?.first().unwrap_or(&NULL);
        match tag {
            NULL => Ok(Value::Null),
            INTEGER => {
                let bytes = self.bytes(8)?;
                let bytes: [u8; 8] = bytes.try_into().map_err(|_| bad("a short number"))?;
                Ok(Value::Integer(i64::from_le_bytes(bytes)))
            }
            TEXT => {
                let bytes = self.long()?.to_vec();
                let text = String::from_utf8(bytes);
                text.map(Value::Text)
                    .map_err(|_| bad("text that is not UTF-8"))
            }
            BLOB => Ok(Value::Blob(self.long()?.to_vec())),
            _ => Err(bad("a column of an unknown type")),
        }
    }

    fn long(&mut self) -> Result<&'a [u8]> {
        let length = self.bytes(4)?;
        let length: [u8; 4] = length.try_into().map_err(|_| bad("a short length"))?;
        self.bytes(u32::from_le_bytes(length) as usize)
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let cut = self.bytes.split_at_checked(count);
        let (taken, rest) = cut.ok_or_else(|| bad("a row that is cut off"))?;
        self.bytes = rest;
        Ok(taken)
    }
}

pub fn bad(what: &str) -> Error {
    Error::BadBackup(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part() -> Vec<u8> {
        let mut batch = Batch::new(3);
        for value in [
            ValueRef::Integer(-7),
            ValueRef::Text("ü".as_bytes()),
            ValueRef::Blob(&[0, 255]),
            ValueRef::Null,
        ] {
            batch.value(value).unwrap();
        }
        batch.end_row();
        batch.take().unwrap()
    }

    #[test]
    fn rows_come_back_as_they_were() {
        let part = part();
        let mut rows = Rows::of(&part).unwrap();
        assert_eq!(rows.table, 3);
        let row = rows.next(4).unwrap().unwrap();
        assert_eq!(
            row,
            [
                Value::Integer(-7),
                Value::Text("ü".to_owned()),
                Value::Blob(vec![0, 255]),
                Value::Null
            ]
        );
        assert_eq!(rows.next(4).unwrap(), None);
        assert_eq!(Batch::new(1).take(), None);
    }

    /// Each prefix of a part is refused, and so is one with more columns or fewer.
    #[test]
    fn a_part_that_is_cut_off_or_does_not_fit_is_refused() {
        let part = part();
        for end in 0..part.len() {
            let read = Rows::of(&part[..end]).and_then(|mut rows| rows.next(4));
            assert!(matches!(read, Err(Error::BadBackup(_))), "{end}");
        }
        for columns in [3, 5] {
            let mut rows = Rows::of(&part).unwrap();
            let read = rows.next(columns).and_then(|_| rows.next(columns));
            assert!(matches!(read, Err(Error::BadBackup(_))), "{columns}");
        }
    }

    #[test]
    fn a_length_that_lies_allocates_nothing() {
        let mut part = vec![0, 1, 0, 0, 0, BLOB];
        part.extend(u32::MAX.to_le_bytes());
        let read = Rows::of(&part).unwrap().next(1);
        assert!(matches!(read, Err(Error::BadBackup(_))));
    }
}
