//! The user's editor: $VISUAL, $EDITOR or vi.

use crate::error::{Error, Exit};
use crate::home;
use agentd_files::own;
use agentd_process::{Ownership, Start};
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use tempfile::NamedTempFile;

/// Writes the text to a file in the home, which other users cannot read: it may be private.
pub fn write(text: &str) -> Result<NamedTempFile, Error> {
    let dir = home::dir()?.join("run");
    let made = tempfile::Builder::new()
        .prefix("edit-")
        .suffix(".md")
        .tempfile_in(&dir)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.flush()?;
            Ok(file)
        });
    made.map_err(|error| {
        let what = format!("cannot create a temporary file in {}", dir.display());
        Error::new(Exit::Unavailable, what).because(error)
    })
}

/// The text as the user left it in the editor, and the file that has it.
pub fn edit(text: &str) -> Result<(String, NamedTempFile), Error> {
    let file = write(text)?;
    open(file.path())?;
    let mut edited = match own::read_to_string(file.path()) {
        Ok(edited) => edited,
        Err(error) => {
            let what = "the edited prompt is not text in UTF-8";
            return Err(kept(
                Some(file),
                Error::new(Exit::Usage, what).because(error),
            ));
        }
    };
    // Editors end a file with a line break.
    if !text.ends_with('\n') && edited.ends_with('\n') {
        edited.pop();
    }
    Ok((edited, file))
}

/// Keeps what was typed in the editor after an error, and adds its path to the error.
pub fn kept(file: Option<NamedTempFile>, error: Error) -> Error {
    match file.map(NamedTempFile::keep) {
        Some(Ok((_, path))) => error.next(format!("your text is in {}", path.display())),
        _ => error,
    }
}

/// Opens the file in the editor, and returns when the editor has exited.
pub fn open(path: &Path) -> Result<(), Error> {
    let editor = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
        .unwrap_or_else(|| OsString::from("vi"));
    let cannot = |why: String| {
        let what = format!("the editor `{}` failed", editor.to_string_lossy());
        Error::new(Exit::Unavailable, what)
            .because(why)
            .next("set EDITOR to an editor that is installed")
    };
    // Through the shell, because the variable may contain arguments: `code --wait`.
    let mut start = Start::new("/bin/sh");
    let mut script = editor.clone();
    script.push(" \"$@\"");
    start.args = vec!["-c".into(), script, editor.clone(), path.into()];
    start.env = std::env::vars_os().collect();
    start.stdin = Stdio::inherit();
    start.stdout = Stdio::inherit();
    start.stderr = Stdio::inherit();
    start.own = Ownership::Nothing;
    let mut child = start.spawn().map_err(|error| cannot(error.to_string()))?;
    match child.wait().map_err(|error| cannot(error.to_string()))? {
        agentd_process::Exit::Code(0) => Ok(()),
        agentd_process::Exit::Code(code) => Err(cannot(format!("exit code {code}"))),
        agentd_process::Exit::Signal(signal) => Err(cannot(format!("ended by signal {signal}"))),
    }
}
