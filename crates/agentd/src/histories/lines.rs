//! The lines of a file, one at a time. A line that is too long is passed over, so that no file fills the memory.

use agentd_core::import_history::Record;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

/// The bytes of one line.
const LONGEST: u64 = 64 * 1024 * 1024;

pub(super) fn each(path: &Path, each: &mut dyn FnMut(Record<'_>)) -> io::Result<()> {
    each_within(BufReader::new(File::open(path)?), LONGEST, each)
}

fn each_within(
    mut input: impl BufRead,
    longest: u64,
    each: &mut dyn FnMut(Record<'_>),
) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut input).take(longest).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let is_cut = read as u64 == longest && !line.ends_with(b"\n");
        if is_cut && !input.fill_buf()?.is_empty() {
            input.skip_until(b'\n')?;
            each(Record::TooLong);
            // One long line is no reason to keep its memory.
            line = Vec::new();
        } else {
            each(Record::Text(&line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let mut found = Vec::new();
        let text: &[u8] = b"{}\n0123456789\n{\"a\":1}\n{\"cut";
        each_within(text, 8, &mut |record| {
            found.push(match record {
                Record::Text(line) => String::from_utf8(line.to_vec()).unwrap(),
                Record::TooLong => "too long".to_owned(),
            });
        })
        .unwrap();
        assert_eq!(found, ["{}\n", "too long", "{\"a\":1}\n", "{\"cut"]);
    }
}
