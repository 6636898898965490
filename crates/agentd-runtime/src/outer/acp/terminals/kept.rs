//! The output of a terminal: its newest bytes.

pub struct Kept {
    /// How many bytes the child sees.
    limit: usize,
    /// The newest bytes, and more of them than the limit until they are cut.
    bytes: Vec<u8>,
    /// The beginning is missing.
    is_cut: bool,
}

impl Kept {
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            bytes: Vec::new(),
            is_cut: false,
        }
    }

    pub fn push(&mut self, more: &[u8]) {
        self.bytes.extend_from_slice(more);
        // Not with each piece: what stays is copied.
        if self.bytes.len() > self.limit.saturating_mul(2) {
            self.cut();
        }
    }

    /// There is no more output: keeps no more than is shown.
    pub fn finish(&mut self) {
        self.cut();
        self.bytes.shrink_to_fit();
    }

    fn cut(&mut self) {
        let old = self.bytes.len().saturating_sub(self.limit);
        if old > 0 {
            self.bytes.drain(..old);
            self.is_cut = true;
        }
    }

    /// The newest lines of the text, as many as fit. If the beginning is missing, so is the rest of its first line: a
    /// secret that is cut in two would not be recognised.
    pub fn lines(&self, most: usize) -> String {
        let (mut text, is_cut) = self.text();
        let old = text.len().saturating_sub(most);
        if !is_cut && old == 0 {
            return text;
        }
        let old = text.ceil_char_boundary(old);
        let rest = text.get(old..).unwrap_or_default();
        let begin = rest.find('\n').map_or(text.len(), |end| old + end + 1);
        text.drain(..begin);
        text
    }

    /// The text within the limit, and whether its beginning is missing. It begins with a whole character.
    pub fn text(&self) -> (String, bool) {
        let old = self.bytes.len().saturating_sub(self.limit);
        let newest = self.bytes.get(old..).unwrap_or_default();
        let is_cut = self.is_cut || old > 0;
        // At most three bytes of a character that is cut.
        let broken = newest
            .iter()
            .take(3)
            .take_while(|byte| **byte & 0xc0 == 0x80);
        let begin = match is_cut {
            true => broken.count(),
            false => 0,
        };
        let newest = newest.get(begin..).unwrap_or_default();
        let mut text = String::from_utf8_lossy(newest).into_owned();
        // A byte that is no text takes three bytes.
        if text.len() > self.limit {
            let begin = text.ceil_char_boundary(text.len() - self.limit);
            text.drain(..begin);
            return (text, true);
        }
        (text, is_cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_output_is_kept_in_whole_characters() {
        let mut kept = Kept::new(4);
        assert_eq!(kept.text(), (String::new(), false));
        kept.push(b"abcd");
        assert_eq!(kept.text(), ("abcd".to_owned(), false));
        kept.push(b"e");
        assert_eq!(kept.text(), ("bcde".to_owned(), true));
        kept.push("éé".as_bytes());
        assert_eq!(kept.text(), ("éé".to_owned(), true));
        kept.push(b"x");
        assert_eq!(kept.text(), ("éx".to_owned(), true));
        kept.push("😀y".as_bytes());
        assert_eq!(kept.text(), ("y".to_owned(), true));
    }

    #[test]
    fn a_flood_takes_no_more_room_than_twice_the_limit() {
        let mut kept = Kept::new(10);
        for n in 0..1000 {
            kept.push(format!("{n}\n").as_bytes());
            assert!(kept.bytes.len() <= 20);
        }
        assert_eq!(kept.text(), ("7\n998\n999\n".to_owned(), true));
        let mut none = Kept::new(0);
        none.push(b"abc");
        assert_eq!(none.text(), (String::new(), true));
    }

    #[test]
    fn lines_are_whole_if_the_beginning_is_missing() {
        let mut kept = Kept::new(12);
        kept.push("one\nzwé\nend".as_bytes());
        assert_eq!(kept.lines(12), "one\nzwé\nend");
        assert_eq!(kept.lines(11), "zwé\nend");
        // In the middle of a character.
        assert_eq!(kept.lines(5), "end");
        assert_eq!(kept.lines(3), "");
        kept.push(b"ed");
        assert_eq!(kept.text(), ("e\nzwé\nended".to_owned(), true));
        assert_eq!(kept.lines(100), "zwé\nended");
    }

    #[test]
    fn finished_output_takes_no_more_room_than_the_limit() {
        let mut kept = Kept::new(4);
        kept.push(b"abcdef");
        assert_eq!(kept.bytes.len(), 6);
        kept.finish();
        assert_eq!(kept.bytes, b"cdef");
        assert_eq!(kept.text(), ("cdef".to_owned(), true));
    }

    #[test]
    fn bytes_that_are_no_text_stay_within_the_limit() {
        let mut kept = Kept::new(6);
        kept.push(b"\xff\xfe\xfd\xfc");
        assert_eq!(kept.text(), ("\u{fffd}\u{fffd}".to_owned(), true));
    }
}
