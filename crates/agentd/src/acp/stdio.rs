//! Stdin and stdout as lines. A thread reads and a thread writes, so a slow editor never stops the program; nothing but
//! frames of the protocol is written to stdout.

use agent_client_protocol::Lines;
use futures_util::sink::{self, Sink};
use futures_util::stream::{self, Stream};
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::thread;
use tokio::sync::{mpsc, oneshot};

/// Lines that were read and wait to be handled.
const QUEUE: usize = 64;
/// The longest line: the attachments of a prompt, in base64, and its text.
const LONGEST: u64 = 64 * 1024 * 1024;

type Written = (String, oneshot::Sender<io::Result<()>>);

pub fn transport() -> io::Result<
    Lines<
        impl Sink<String, Error = io::Error> + Send + 'static,
        impl Stream<Item = io::Result<String>> + Send + 'static,
    >,
> {
    Ok(Lines::new(writer()?, reader()?))
}

fn reader() -> io::Result<impl Stream<Item = io::Result<String>> + Send + 'static> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    thread::Builder::new()
        .name("acp-stdin".to_owned())
        .spawn(move || {
            let mut stdin = io::stdin().lock();
            loop {
                let line = line(&mut stdin);
                let is_last = !matches!(line, Ok(Some(_)));
                if let Some(line) = line.transpose()
                    && sender.blocking_send(line).is_err()
                {
                    return;
                }
                if is_last {
                    return;
                }
            }
        })?;
    Ok(stream::unfold(receiver, |mut receiver| async move {
        Some((receiver.recv().await?, receiver))
    }))
}

/// The next line without its end; none at the end of the input.
fn line(input: &mut impl io::BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let mut limited = input.take(LONGEST);
    if limited.read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    } else if bytes.len() as u64 == LONGEST {
        let what = format!("a message has more than {LONGEST} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    // Text that is not UTF-8 is not JSON either: the protocol crate answers with a parse error.
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn writer() -> io::Result<impl Sink<String, Error = io::Error> + Send + 'static> {
    let (sender, mut receiver) = mpsc::channel::<Written>(1);
    thread::Builder::new()
        .name("acp-stdout".to_owned())
        .spawn(move || {
            while let Some((mut line, written)) = receiver.blocking_recv() {
                line.push('\n');
                let mut stdout = io::stdout().lock();
                let result = stdout
                    .write_all(line.as_bytes())
                    .and_then(|()| stdout.flush());
                let is_over = result.is_err();
                let _gone = written.send(result);
                if is_over {
                    return;
                }
            }
        })?;
    let closed = || {
        io::Error::new(
            io::ErrorKind::BrokenPipe,
            "the editor closed the connection",
        )
    };
    Ok(sink::unfold(
        sender,
        move |sender, line: String| async move {
            let (written, result) = oneshot::channel();
            sender.send((line, written)).await.map_err(|_| closed())?;
            result.await.map_err(|_| closed())??;
            Ok(sender)
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_the_input() {
        let mut input: &[u8] = b"{\"a\":1}\n\n{\"b\"";
        let mut next = || line(&mut input).unwrap();
        assert_eq!(next().as_deref(), Some("{\"a\":1}"));
        assert_eq!(next().as_deref(), Some(""));
        assert_eq!(next().as_deref(), Some("{\"b\""));
        assert_eq!(next(), None);
    }
}
