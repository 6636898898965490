//! The pages of a damaged database, read from its file and its write-ahead log without SQLite.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The page size that `connect` sets, for files that do not name one.
const PAGE: usize = 8192;
const LOG_HEADER: u64 = 32;
const FRAME_HEADER: usize = 24;

pub struct Image {
    pub page_size: usize,
    file: Option<File>,
    /// Pages of the file, including a last one that may be truncated.
    pages: u32,
    log: Option<File>,
    /// The position in the log of the newest committed version of each page.
    committed: HashMap<u32, u64>,
    /// Frames after the last commit that SQLite sees: of transactions that never ended, or of transactions that an
    /// earlier damaged frame hides.
    hidden: Vec<(u32, u64)>,
}

impl Image {
    /// A file that does not exist has no pages.
    pub fn open(file: &Path, log: &Path) -> io::Result<Self> {
        let (file, log) = (existing(file)?, existing(log)?);
        let size = file.as_ref().map_or(Ok(0), size)?;
        let mut image = Self {
            page_size: PAGE,
            file,
            pages: 0,
            log,
            committed: HashMap::new(),
            hidden: Vec::new(),
        };
        image.page_size = image.find_page_size()?;
        image.pages = u32::try_from(size.div_ceil(image.page_size as u64)).unwrap_or(u32::MAX);
        image.read_log()?;
        Ok(image)
    }

    /// The highest page number.
    pub fn last_page(&self) -> u32 {
        let committed = self.committed.keys().copied().max().unwrap_or_default();
        self.pages.max(committed)
    }

    /// A page as SQLite would see it. None after the end.
    pub fn page(&self, number: u32) -> io::Result<Option<Vec<u8>>> {
        if let (Some(log), Some(at)) = (&self.log, self.committed.get(&number)) {
            return read(log, *at, self.page_size).map(Some);
        }
        match &self.file {
            Some(file) if number > 0 && number <= self.pages => {
                let at = u64::from(number - 1) * self.page_size as u64;
                read(file, at, self.page_size).map(Some)
            }
            _ => Ok(None),
        }
    }

    pub fn hidden(&self) -> impl Iterator<Item = io::Result<(u32, Vec<u8>)>> {
        self.hidden.iter().map(|(number, at)| {
            let log = self.log.as_ref().ok_or(io::ErrorKind::NotFound)?;
            Ok((*number, read(log, *at, self.page_size)?))
        })
    }

    /// The newest version of a page, hidden frames included.
    pub fn newest(&self, number: u32) -> io::Result<Option<Vec<u8>>> {
        let hidden = self.hidden.iter().rev();
        let mut hidden = hidden.filter(|(of, _)| *of == number);
        match (&self.log, hidden.next()) {
            (Some(log), Some((_, at))) => read(log, *at, self.page_size).map(Some),
            _ => self.page(number),
        }
    }

    fn find_page_size(&self) -> io::Result<usize> {
        let is_size = |size: usize| size.is_power_of_two() && (512..=65536).contains(&size);
        if let Some(file) = &self.file {
            let header = read(file, 0, 100)?;
            let size = big_endian(&header, 16, 2);
            let size = if size == 1 { 65536 } else { size as usize };
            if header.starts_with(b"SQLite format 3\0") && is_size(size) {
                return Ok(size);
            }
        }
        if let Some(log) = &self.log {
            let size = big_endian(&read(log, 0, LOG_HEADER as usize)?, 8, 4) as usize;
            if is_size(size) {
                return Ok(size);
            }
        }
        Ok(PAGE)
    }

    fn read_log(&mut self) -> io::Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let frame_size = FRAME_HEADER + self.page_size;
        let frames = size(log)?.saturating_sub(LOG_HEADER) / frame_size as u64;
        let header = read(log, 0, LOG_HEADER as usize)?;
        let mut sum = Sum::of_header(&header);
        let mut salt = sum.as_ref().map(|_| salt(&header, 16));
        let mut open: Vec<(u32, u64)> = Vec::new();
        for index in 0..frames {
            let at = LOG_HEADER + index * frame_size as u64;
            let frame = read(log, at, frame_size)?;
            let number = big_endian(&frame, 0, 4) as u32;
            // A frame with another salt is a leftover of an earlier log.
            if salt.get_or_insert_with(|| self::salt(&frame, 8)) != &self::salt(&frame, 8) {
                sum = None;
                continue;
            }
            open.push((number, at + FRAME_HEADER as u64));
            sum = sum.and_then(|sum| sum.followed_by(&frame));
            let is_commit = big_endian(&frame, 4, 4) > 0;
            if sum.is_some() && is_commit {
                self.committed.extend(open.drain(..));
            }
        }
        self.hidden = open;
        Ok(())
    }
}

/// The running checksum of a log.
struct Sum {
    is_big_endian: bool,
    at: (u32, u32),
}

impl Sum {
    /// None if the header itself is damaged.
    fn of_header(header: &[u8]) -> Option<Self> {
        let magic = big_endian(header, 0, 4);
        let sum = Self {
            is_big_endian: magic == 0x377f_0683,
            at: (0, 0),
        };
        let is_magic = sum.is_big_endian || magic == 0x377f_0682;
        let sum = sum.add(header.get(..24)?);
        (is_magic && sum.is(header, 24)).then_some(sum)
    }

    /// None if the frame does not match its checksum.
    fn followed_by(self, frame: &[u8]) -> Option<Self> {
        let sum = self.add(frame.get(..8)?).add(frame.get(FRAME_HEADER..)?);
        sum.is(frame, 16).then_some(sum)
    }

    fn is(&self, bytes: &[u8], at: usize) -> bool {
        let stored = (big_endian(bytes, at, 4), big_endian(bytes, at + 4, 4));
        stored == (u64::from(self.at.0), u64::from(self.at.1))
    }

    fn add(mut self, bytes: &[u8]) -> Self {
        let word = |bytes: &[u8]| {
            let word = big_endian(bytes, 0, 4) as u32;
            match self.is_big_endian {
                true => word,
                false => word.swap_bytes(),
            }
        };
        for pair in bytes.chunks_exact(8) {
            let (first, second) = pair.split_at(4);
            let one = self.at.0.wrapping_add(word(first));
            self.at.0 = one.wrapping_add(self.at.1);
            let two = self.at.1.wrapping_add(word(second));
            self.at.1 = two.wrapping_add(self.at.0);
        }
        self
    }
}

fn salt(bytes: &[u8], at: usize) -> u64 {
    big_endian(bytes, at, 8)
}

/// A number of the file format. Bytes after the end count as zero.
pub fn big_endian(bytes: &[u8], at: usize, length: usize) -> u64 {
    let byte = |index| u64::from(bytes.get(at + index).copied().unwrap_or_default());
    (0..length).fold(0, |number, index| (number << 8) | byte(index))
}

fn existing(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn size(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

/// Bytes after the end of the file, or in a sector that cannot be read, are zeros.
fn read(file: &File, at: u64, length: usize) -> io::Result<Vec<u8>> {
    const SECTOR: usize = 512;
    let mut bytes = vec![0; length];
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                done = (done / SECTOR + 1) * SECTOR;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}
