//! Reading the lines of a file of any size, with a limit on the bytes that are kept of each line.

use super::blocking::Stop;
use std::io::{self, BufRead};

/// How much of a file is read to detect its type.
pub(super) const SNIFFED: usize = 8 * 1024;

pub(super) struct Lines<'a, R> {
    from: R,
    stop: &'a Stop,
    /// The kept part of the line that was read last, without the newline.
    pub kept: Vec<u8>,
}

impl<'a, R: BufRead> Lines<'a, R> {
    pub const fn new(from: R, stop: &'a Stop) -> Self {
        Self {
            from,
            stop,
            kept: Vec::new(),
        }
    }

    /// Reads the next line and keeps at most `limit` bytes of it; returns its length, newline included.
    /// `None` at the end of the file.
    pub fn next(&mut self, limit: usize) -> io::Result<Option<u64>> {
        self.kept.clear();
        let mut length = 0;
        loop {
            self.stop.check()?;
            let buffer = self.from.fill_buf()?;
            if buffer.is_empty() {
                return Ok((length > 0).then_some(length));
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let line = &buffer[..end.unwrap_or(buffer.len())];
            let room = limit.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&line[..line.len().min(room)]);
            let used = end.map_or(buffer.len(), |end| end + 1);
            length += used as u64;
            self.from.consume(used);
            if end.is_some() {
                return Ok(Some(length));
            }
        }
    }
}

/// Whether the beginning of a file shows that it is not text.
pub(super) fn is_binary(beginning: &[u8]) -> bool {
    beginning.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::{Lines, Stop};
    use std::io::BufReader;

    #[test]
    fn long_lines_are_counted_and_not_kept() {
        let stop = Stop::default();
        let text = format!("a\n\n{}\r\nlast", "x".repeat(1000));
        for capacity in [1, 7, 4096] {
            let from = BufReader::with_capacity(capacity, text.as_bytes());
            let mut lines = Lines::new(from, &stop);
            let mut seen = Vec::new();
            while let Some(length) = lines.next(10).unwrap() {
                seen.push((length, String::from_utf8(lines.kept.clone()).unwrap()));
            }
            let expected = [(2, "a"), (1, ""), (1002, "xxxxxxxxxx"), (4, "last")];
            assert_eq!(seen, expected.map(|(n, text)| (n, text.to_owned())));
        }
    }
}
