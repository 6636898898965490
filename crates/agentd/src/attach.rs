//! Files that the user attaches to a prompt: `--attach FILE`, and `@path` in the chat.

use crate::at_path;
use crate::error::{Error, Exit};
use agentd_client::api::NewAttachment;
use agentd_core::attachment::{self, MAX_FILES, MAX_STORED_BYTES};
use agentd_core::message::Block;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The bytes of all files of a prompt. Base64 has four characters for three bytes.
const MAX_BYTES: usize = MAX_STORED_BYTES / 4 * 3;
/// Characters that often follow a path in a sentence.
const PUNCTUATION: [char; 9] = ['.', ',', ';', ':', '!', '?', ')', ']', '"'];

#[derive(Clone, Debug, Default, clap::Args)]
pub struct AttachArgs {
    /// Attach a file to the prompt: text, an image or a PDF (may be repeated)
    #[arg(long = "attach", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,
}

impl AttachArgs {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The files with their contents. The user named them, so they may be anywhere.
    pub fn read(&self) -> Result<Vec<NewAttachment>, Error> {
        let mut budget = Budget::default();
        let read = self.files.iter().map(|path| {
            let shown = path.display();
            let cannot =
                |error: &io::Error| Error::of_file(format!("`{shown}` cannot be attached"), error);
            let file = File::open(path).map_err(|error| cannot(&error))?;
            if file.metadata().is_ok_and(|about| about.is_dir()) {
                let what = format!("`{shown}` cannot be attached: it is a directory");
                return Err(Error::new(Exit::Usage, what).next("attach its files"));
            }
            let name = path.file_name().unwrap_or(path.as_os_str());
            budget.read(&name.to_string_lossy(), file)
        });
        read.collect()
    }

    /// The files as the blocks of a prompt.
    pub fn blocks(&self) -> Result<Vec<Block>, Error> {
        attachment::accept(self.read()?).map_err(|refused| {
            let exit = match refused.is_too_large() {
                true => Exit::Refused,
                false => Exit::Usage,
            };
            Error::new(exit, refused.to_string()).next(refused.next())
        })
    }
}

/// The files that the words of a prompt name: `@src/lib.rs`, `@"my notes.txt"`. Only regular files below the agent's directory count, and
/// no symbolic link is followed: a tool could let one lead to a file that tools cannot read. A word that names no such file
/// is only text.
pub fn mentioned(cwd: &Path, text: &str) -> Result<Vec<NewAttachment>, Error> {
    let mut budget = Budget::default();
    let mut found: BTreeSet<&str> = BTreeSet::new();
    let mut attachments = Vec::new();
    for path in at_path::words(text)
        .into_iter()
        .filter_map(at_path::of_word)
    {
        let whole = below(cwd, path).map(|file| (path, file));
        let Some((path, file)) = whole.or_else(|| {
            let path = path.trim_end_matches(PUNCTUATION);
            below(cwd, path).map(|file| (path, file))
        }) else {
            continue;
        };
        if found.insert(path) {
            attachments.push(budget.read(path, file)?);
        }
    }
    Ok(attachments)
}

/// The regular file at this path below the directory.
fn below(dir: &Path, path: &str) -> Option<File> {
    if path.is_empty() || path.contains('\0') {
        return None;
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = openat(CWD, dir, flags, Mode::empty()).ok()?;
    // Opening a pipe would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let file = openat2(&dir, path, flags, Mode::empty(), within).ok()?;
    let about = fstat(&file).ok()?;
    let is_file = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
    is_file.then(|| File::from(file))
}

/// What a prompt may still hold. It is checked here too, so that a huge file is not read to its end.
#[derive(Default)]
struct Budget {
    files: usize,
    bytes: usize,
}

impl Budget {
    fn read(&mut self, name: &str, file: File) -> Result<NewAttachment, Error> {
        self.files += 1;
        if self.files > MAX_FILES {
            let what = format!("a prompt may have at most {MAX_FILES} attachments");
            return Err(Error::new(Exit::Refused, what).next("send several prompts"));
        }
        let room = MAX_BYTES.saturating_sub(self.bytes);
        let mut bytes = Vec::new();
        let read = file.take(room as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| Error::of_file(format!("`{name}` cannot be attached"), &error))?;
        if bytes.len() > room {
            let what = format!("the attachments have more than {MAX_BYTES} bytes");
            let error = Error::new(Exit::Refused, what).because(format!("`{name}` is too large"));
            return Err(error.next("attach fewer or smaller files, or name the path in the prompt"));
        }
        self.bytes += bytes.len();
        Ok(NewAttachment::of_bytes(name, &bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(dir: &Path, text: &str) -> Vec<String> {
        let found = mentioned(dir, text).unwrap();
        found.into_iter().map(|file| file.name).collect()
    }

    #[test]
    fn words_that_name_files_below_the_directory_are_attached_once() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        };
        write("project/src/lib.rs");
        write("project/a.b.");
        write("project/my notes.txt");
        write("outside");
        let project = dir.path().join("project");
        symlink("../outside", project.join("out")).unwrap();
        symlink("src/lib.rs", project.join("in")).unwrap();
        symlink("/etc/passwd", project.join("passwd")).unwrap();
        rustix::fs::mknodat(
            CWD,
            project.join("pipe"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        assert_eq!(
            names(&project, "see @src/lib.rs, and @src/lib.rs (@in)"),
            ["src/lib.rs"]
        );
        assert_eq!(names(&project, "@a.b."), ["a.b."]);
        let quoted = "see @\"my notes.txt\", @my";
        assert_eq!(names(&project, quoted), ["my notes.txt"]);
        let none = "@in @out @passwd @pipe @src @nothing @../outside @/etc/passwd me@in @";
        assert_eq!(names(&project, none), [""; 0]);
    }

    #[test]
    fn a_directory_cannot_be_attached() {
        let dir = tempfile::tempdir().unwrap();
        let args = AttachArgs {
            files: vec![dir.path().to_owned()],
        };
        assert!(args.read().unwrap_err().to_string().contains("directory"));
    }
}
