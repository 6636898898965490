//! A message between the runtime and a process of the file tools: its length, then its bytes.

use std::io::{self, Read, Write};

/// The longest message: the contents of the files of one call, as JSON.
pub const LONGEST: usize = 256 * 1024 * 1024;

pub fn head(message: &[u8]) -> io::Result<[u8; 4]> {
    let length = u32::try_from(message.len()).ok();
    let length = length.filter(|_| message.len() <= LONGEST);
    let length = length.ok_or_else(|| io::Error::other("a message is too long"))?;
    Ok(length.to_le_bytes())
}

pub fn length(head: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(head) as usize;
    match length <= LONGEST {
        true => Ok(length),
        false => Err(io::Error::other("a message is too long")),
    }
}

/// The next message; `None` if there is no complete one any more.
pub fn read_frame(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; 4];
    if !filled(from, &mut head)? {
        return Ok(None);
    }
    let mut message = vec![0; length(head)?];
    Ok(filled(from, &mut message)?.then_some(message))
}

fn filled(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

pub fn write_frame(to: &mut impl Write, message: &[u8]) -> io::Result<()> {
    to.write_all(&head(message)?)?;
    to.write_all(message)?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written_and_an_incomplete_one_is_none() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, b"one").unwrap();
        write_frame(&mut bytes, b"").unwrap();
        write_frame(&mut bytes, b"three").unwrap();
        bytes.pop();
        let mut from = bytes.as_slice();
        assert_eq!(read_frame(&mut from).unwrap().unwrap(), b"one");
        assert_eq!(read_frame(&mut from).unwrap().unwrap(), b"");
        assert_eq!(read_frame(&mut from).unwrap(), None);
        assert!(read_frame(&mut [0xff; 8].as_slice()).is_err());
    }
}
