//! Text for events: generated words, with a frequency like that of natural text, the same in every run.

/// The size of the vocabulary.
const WORDS: u64 = 4096;

pub struct Words {
    state: u64,
}

impl Words {
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Text of `bytes` bytes, or a few more.
    pub fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            if !text.is_empty() {
                text.push(' ');
            }
            // The product of two draws leans towards the small numbers.
            let word = (self.next() % WORDS) * (self.next() % WORDS) / WORDS;
            spell(word, &mut text);
        }
        text
    }

    /// SplitMix64: its whole state is one number.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Spells a number as syllables, a different word for each number.
fn spell(mut word: u64, out: &mut String) {
    const SYLLABLES: [&str; 16] = [
        "ba", "cer", "di", "fon", "gu", "han", "ji", "kel", "lo", "mar", "ni", "pos", "ra", "sen",
        "ti", "vu",
    ];
    loop {
        out.push_str(SYLLABLES[(word % 16) as usize]);
        word /= 16;
        if word == 0 {
            return;
        }
    }
}
