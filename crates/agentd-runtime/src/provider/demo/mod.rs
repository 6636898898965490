//! The built-in model: no key, no network, and the same reply to the same request.
//!
//! It parses the newest prompt as a list of steps and really uses the tools that the request offers. It knows only the
//! request: the results in it show which steps are done. So it continues after a crash, a restart or an interrupt like
//! any other model, and can be used to try them. [`HELP`] lists what it understands.

mod steps;
mod talk;

#[cfg(test)]
mod tests;

use agentd_core::draft::{Change, Delta};
use agentd_core::event::StopReason;
use agentd_core::id::CallId;
use agentd_core::request::Request;
use agentd_core::usage::Usage;
use agentd_core::wire;
use agentd_core::wire::stream::End;
use std::time::Duration;
use talk::Piece;

/// The prompts that the model understands; for `--help`.
pub const HELP: &str = "\
The demo model is built in and needs no key and no network. It understands:
  run `COMMAND`       runs the command with the shell tool and quotes the end of its output
  write PATH: TEXT    writes a file
  read PATH           reads a file and quotes its beginning
  ask KIND: PROMPT    gives the prompt to a subagent of that kind and quotes its answer
  list the files here
  count the lines of the largest
  count to N          counts, one line about every 30 ms; useful for trying an interrupt
  A; then B           does the steps in order, with one request to the model for each; `and` also works
  continue            continues the previous prompt where it stopped
For any other prompt it lists the files here and repeats the prompt.";

/// The pause between two lines when it counts, as a multiple of `pause`: 30 ms by default.
const COUNT_PAUSES: u32 = 6;
/// The approximate size of a piece of text.
const PIECE: usize = 12;
/// How many bytes count as one token.
const BYTES_PER_TOKEN: usize = 4;

/// The model's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demo {
    /// The pause between two pieces of text.
    pub pause: Duration,
}

impl Default for Demo {
    fn default() -> Self {
        Self {
            pause: Duration::from_millis(5),
        }
    }
}

impl Demo {
    pub async fn stream(&self, request: &Request, on_delta: impl FnMut(Delta) + Send) -> End {
        let limit = request
            .context
            .max_output_tokens
            .saturating_mul(BYTES_PER_TOKEN as u64);
        let mut pen = Pen {
            on_delta,
            part: 0,
            written: 0,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        };
        let stop = self.say(request, &mut pen).await;
        let tokens = |bytes: usize| bytes.div_ceil(BYTES_PER_TOKEN) as u64;
        End {
            stop,
            usage: Some(Usage {
                input_tokens: tokens(wire::body(request).len()),
                output_tokens: tokens(pen.written),
                ..Usage::default()
            }),
            provider_request: None,
        }
    }

    async fn say<F: FnMut(Delta) + Send>(&self, request: &Request, pen: &mut Pen<F>) -> StopReason {
        let mut stop = StopReason::EndTurn;
        for piece in talk::answer(request) {
            match piece {
                Piece::Text(text) => {
                    for text in pieces(&text) {
                        wait(self.pause).await;
                        if !pen.text(text) {
                            return StopReason::MaxTokens;
                        }
                    }
                }
                Piece::Counted(line) => {
                    wait(self.pause * COUNT_PAUSES).await;
                    if !pen.text(&line) {
                        return StopReason::MaxTokens;
                    }
                }
                Piece::Call {
                    id,
                    name,
                    arguments,
                } => {
                    let json = serde_json::Value::Object(arguments).to_string();
                    if !pen.call(id, name) {
                        return StopReason::MaxTokens;
                    }
                    for json in pieces(&json) {
                        wait(self.pause).await;
                        if !pen.arguments(json) {
                            return StopReason::MaxTokens;
                        }
                    }
                    stop = StopReason::ToolUse;
                }
            }
        }
        stop
    }
}

/// A zero pause takes no time at all, not a tick of the timer.
async fn wait(pause: Duration) {
    if pause.is_zero() {
        tokio::task::yield_now().await;
    } else {
        tokio::time::sleep(pause).await;
    }
}

/// Writes deltas, up to the output limit of the request.
struct Pen<F> {
    on_delta: F,
    part: usize,
    written: usize,
    limit: usize,
}

/// Each method returns false if the limit was reached; the part that fits is written.
impl<F: FnMut(Delta)> Pen<F> {
    fn text(&mut self, text: &str) -> bool {
        let (fits, whole) = self.cut(text);
        let text = fits.to_owned();
        self.write(Change::Text { text });
        whole
    }

    /// In a separate part, after the text.
    fn call(&mut self, id: CallId, name: &'static str) -> bool {
        self.part += usize::from(self.written > 0);
        let (_, whole) = self.cut(name);
        let name = name.to_owned();
        self.write(Change::Call { id, name });
        whole
    }

    fn arguments(&mut self, json: &str) -> bool {
        let (fits, whole) = self.cut(json);
        let json = fits.to_owned();
        self.write(Change::Arguments { json });
        whole
    }

    fn write(&mut self, change: Change) {
        let part = self.part;
        (self.on_delta)(Delta { part, change });
    }

    fn cut<'t>(&mut self, text: &'t str) -> (&'t str, bool) {
        let end = text.floor_char_boundary(self.limit.saturating_sub(self.written));
        let fits = text.get(..end).unwrap_or_default();
        self.written += fits.len();
        (fits, fits.len() == text.len())
    }
}

/// Splits a text into pieces of a word or two.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let from = rest.ceil_char_boundary(PIECE.min(rest.len()));
        let word = rest.get(from..)?.find(char::is_whitespace);
        // A text without spaces is split too.
        let end = match word {
            Some(at) if at <= PIECE => from + at + 1,
            _ => from,
        };
        let (piece, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
