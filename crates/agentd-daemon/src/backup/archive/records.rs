//! The records of a backup: parts of the journal, and files in chunks.

use super::damaged;
use crate::backup::home_file::HomeFile;
use crate::backup::{Error, Result};
use agentd_store::MAX_PART;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, Read, Take};
use std::path::PathBuf;

const JOURNAL: u8 = b'J';
const FILE: u8 = b'F';
const DATA: u8 = b'D';
const END: u8 = b'E';

/// The bytes of a file in one record.
pub const CHUNK: usize = 64 * 1024;
const MAX_NAME: usize = 4096;

#[derive(Debug, PartialEq, Eq)]
pub enum Record {
    Journal(Vec<u8>),
    /// The data of this file follows.
    File(HomeFile),
    Data(Vec<u8>),
    End,
}

impl Record {
    pub(super) fn encode(&self) -> io::Result<(u8, Cow<'_, [u8]>)> {
        Ok(match self {
            Self::Journal(part) => (JOURNAL, part.into()),
            Self::File(file) => (FILE, serde_json::to_vec(file)?.into()),
            Self::Data(bytes) => (DATA, bytes.into()),
            Self::End => (END, Cow::Borrowed(&[])),
        })
    }
}

type Source = zstd::stream::read::Decoder<'static, BufReader<Take<BufReader<File>>>>;

/// Reads records. They may come from a file that another program has made: nothing is allocated because of a length alone.
pub struct Records {
    path: PathBuf,
    source: Source,
    is_over: bool,
}

impl Records {
    pub(super) fn new(path: PathBuf, file: Take<BufReader<File>>) -> Result<Self> {
        let source = zstd::stream::read::Decoder::new(file).map_err(Error::io(&path))?;
        Ok(Self {
            path,
            source,
            is_over: false,
        })
    }

    /// The next record; none after the end.
    pub fn next(&mut self) -> Result<Option<Record>> {
        if self.is_over {
            return Ok(None);
        }
        let tag = self.bytes(1)?.first().copied().unwrap_or_default();
        let length: [u8; 4] = match self.bytes(4)?.try_into() {
            Ok(length) => length,
            Err(_) => return Err(self.bad("a record is cut off")),
        };
        let length = u32::from_le_bytes(length) as usize;
        let most = match tag {
            JOURNAL => MAX_PART,
            FILE => MAX_NAME,
            DATA => CHUNK,
            END => 0,
            _ => return Err(self.bad("a record of an unknown kind")),
        };
        if length > most {
            return Err(self.bad("a record is too long"));
        }
        let bytes = self.bytes(length)?;
        Ok(Some(match tag {
            JOURNAL => Record::Journal(bytes),
            DATA => Record::Data(bytes),
            FILE => {
                let file = serde_json::from_slice(&bytes);
                Record::File(file.map_err(|error| self.bad(format!("a file's name: {error}")))?)
            }
            _ => {
                self.end()?;
                Record::End
            }
        }))
    }

    /// Nothing may follow the last record.
    fn end(&mut self) -> Result<()> {
        self.is_over = true;
        let mut more = [0];
        match self.source.read(&mut more) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.bad("data after the last record")),
            Err(error) => Err(self.cannot(error)),
        }
    }

    fn bytes(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(count.min(CHUNK));
        let read = self
            .source
            .by_ref()
            .take(count as u64)
            .read_to_end(&mut bytes);
        read.map_err(|error| self.cannot(error))?;
        match bytes.len() == count {
            true => Ok(bytes),
            false => Err(self.bad("it is cut off")),
        }
    }

    /// An error of the disk has a number; any other one comes from the content.
    fn cannot(&self, error: io::Error) -> Error {
        match error.raw_os_error() {
            Some(_) => Error::io(&self.path)(error),
            None => self.bad(format!("its content cannot be unpacked: {error}")),
        }
    }

    fn bad(&self, what: impl Into<String>) -> Error {
        damaged(&self.path, what)
    }
}
