//! Files that the user attaches to a prompt: `--attach FILE`, and `@path` in the chat.

use crate::at_path;
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::providers;
use agentd_client::api::{Agent, NewAttachment};
use agentd_core::attachment::{self, MAX_FILES, MAX_STORED_BYTES};
use agentd_core::message::{AttachedFile, Block, FileKind};
use agentd_files::foreign::{self, Links};
use rustix::fs::{CWD, Mode, OFlags, openat};
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

/// Says which of the files the agent's model does not accept.
pub fn tell_omitted(given: &[NewAttachment], agent: &Agent, out: &mut Output) -> Result<(), Error> {
    for warning in omitted(given, agent)? {
        out.aside(warning)?;
    }
    Ok(())
}

/// A warning for each of the files that the agent's model does not accept: the model gets only their names.
pub fn omitted(given: &[NewAttachment], agent: &Agent) -> Result<Vec<String>, Error> {
    let catalog = providers::catalog()?;
    let choice = catalog.resolve(agent.provider.as_deref(), agent.model.as_deref());
    let omits = choice.map(|choice| choice.omits()).unwrap_or_default();
    if omits.is_empty() {
        return Ok(Vec::new());
    }
    // What cannot be accepted is refused by the daemon.
    let blocks = attachment::accept(given.to_vec()).unwrap_or_default();
    let mut warnings = Vec::new();
    for file in blocks.iter().filter_map(Block::as_attachment) {
        let (kind, what) = match &file.file {
            AttachedFile::Image { .. } => (FileKind::Image, "images"),
            AttachedFile::Pdf { .. } => (FileKind::Pdf, "PDFs"),
            AttachedFile::Text { .. } => continue,
        };
        if omits.contains(&kind) {
            let model = agent.model.as_deref().unwrap_or("the model");
            warnings.push(format!(
                "warning: {model} accepts no {what}: {} is not included, the model gets only its name",
                file.name
            ));
        }
    }
    Ok(warnings)
}

/// The files that the words of a prompt name: `@src/lib.rs`, `@"my notes.txt"`. Only regular files below the agent's directory count, and
/// no symbolic link is followed: a tool could let one lead to a file that tools cannot read. A word that names no such file
/// is only text. A file elsewhere counts if it is among those that the user chose with `/attach`.
pub fn mentioned(cwd: &Path, text: &str, chosen: &[String]) -> Result<Mentioned, Error> {
    let mut budget = Budget::default();
    let mut found: BTreeSet<&str> = BTreeSet::new();
    let mut mentioned = Mentioned::default();
    for word in at_path::words(text)
        .into_iter()
        .filter_map(at_path::of_word)
    {
        let open = |path: &str| match chosen.iter().any(|it| it == path) {
            true => below(cwd, path).or_else(|| elsewhere(path)),
            false => below(cwd, path),
        };
        let short = word.trim_end_matches(PUNCTUATION);
        let whole = open(word).map(|file| (word, file));
        let Some((path, file)) = whole.or_else(|| open(short).map(|file| (short, file))) else {
            if looks_like_path(short) && !cwd.join(short).is_dir() {
                mentioned.missing.push(short.to_owned());
            }
            continue;
        };
        if found.insert(path) {
            let name = match Path::new(path).is_absolute() {
                true => path.rsplit('/').next().unwrap_or(path),
                false => path,
            };
            mentioned.attachments.push(budget.read(name, file)?);
        }
    }
    Ok(mentioned)
}

/// What the `@path` words of a prompt name.
#[derive(Debug, Default)]
pub struct Mentioned {
    pub attachments: Vec<NewAttachment>,
    /// Words that look like paths and name no file that can be attached.
    pub missing: Vec<String>,
}

/// `src/lib.rs` and `notes.txt` look like paths. `alice` does not, nor does `server:uri`, a resource of an MCP server.
fn looks_like_path(word: &str) -> bool {
    let has_ending = word.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty() && ending.starts_with(|c: char| c.is_ascii_alphanumeric())
    });
    !word.contains(':') && (word.contains('/') || has_ending)
}

/// The file that the user chose with `/attach`, as it stands in the prompt: relative to the agent's directory if it is below that,
/// otherwise absolute. `home` stands for `~`.
pub fn locate(cwd: &Path, home: Option<&Path>, typed: &str) -> Result<String, Error> {
    let typed = typed.trim();
    let quoted = typed.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let typed = quoted.unwrap_or(typed);
    let what = || format!("`{typed}` cannot be attached");
    let path = match (typed.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => cwd.join(typed),
    };
    let cannot = |error: io::Error| Error::of_file(what(), &error);
    let about = path.metadata().map_err(cannot)?;
    if about.is_dir() {
        return Err(
            Error::new(Exit::Usage, format!("{}: it is a directory", what()))
                .next("attach its files"),
        );
    }
    let not_a_file = || {
        Error::new(Exit::Usage, what())
            .because("it is no regular file, or a symbolic link in the agent's directory")
            .next("attach the file itself")
    };
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(not_a_file());
    };
    // A tool could let a symbolic link of the project lead anywhere, so what is below the directory is opened without them.
    let parent = parent.canonicalize().map_err(cannot)?;
    let inside = cwd.canonicalize().ok().and_then(|cwd| {
        let dir = parent.strip_prefix(cwd).ok()?;
        Some(dir.join(name))
    });
    let is_inside = inside.is_some();
    let found = inside.unwrap_or_else(|| parent.join(name));
    let Some(found) = found.to_str().filter(|it| !it.contains(['"', '\n'])) else {
        return Err(Error::new(Exit::Usage, what())
            .because("the prompt cannot contain its path")
            .next("rename or copy it"));
    };
    let file = match is_inside {
        true => below(cwd, found),
        false => elsewhere(found),
    };
    match file {
        Some(_) => Ok(found.to_owned()),
        None => Err(not_a_file()),
    }
}

/// The regular file at an absolute path.
fn elsewhere(path: &str) -> Option<File> {
    if !path.starts_with('/') || path.contains('\0') {
        return None;
    }
    foreign::open(Path::new(path), Links::Follow).ok()
}

/// The regular file at this path below the directory.
pub fn below(dir: &Path, path: &str) -> Option<File> {
    if path.is_empty() || path.contains('\0') {
        return None;
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = openat(CWD, dir, flags, Mode::empty()).ok()?;
    foreign::open_at(dir, Path::new(path), Links::Refuse).ok()
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
        let found = mentioned(dir, text, &[]).unwrap();
        let files = found.attachments.into_iter();
        files.map(|file| file.name).collect()
    }

    #[test]
    fn a_chosen_file_may_be_anywhere_and_a_word_without_a_file_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (project, home) = (root.join("project"), root.join("home"));
        std::fs::create_dir_all(project.join("src")).unwrap();
        std::fs::create_dir_all(home.join("Pictures")).unwrap();
        std::fs::write(project.join("my notes.txt"), "x").unwrap();
        std::fs::write(home.join("Pictures/my pic.txt"), "x").unwrap();
        symlink(home.join("Pictures/my pic.txt"), project.join("trap")).unwrap();
        let find = |typed: &str| locate(&project, Some(&home), typed);
        let picture = home.join("Pictures/my pic.txt");
        let picture = picture.to_str().unwrap().to_owned();
        assert_eq!(find("~/Pictures/my pic.txt").unwrap(), picture);
        assert_eq!(find("../home/Pictures/my pic.txt").unwrap(), picture);
        assert_eq!(find("\"my notes.txt\"").unwrap(), "my notes.txt");
        for wrong in ["trap", "src", "nothing.txt", "/dev/null"] {
            assert!(find(wrong).is_err(), "{wrong}");
        }
        let text = format!(
            "see {}and @src/lib.rs, @src @alice @web:page",
            at_path::written(&picture, "")
        );
        let chosen = mentioned(&project, &text, std::slice::from_ref(&picture)).unwrap();
        assert_eq!(chosen.attachments[0].name, "my pic.txt");
        assert_eq!(chosen.missing, ["src/lib.rs"]);
        // Without a choice, a path elsewhere is only text.
        let typed = mentioned(&project, &text, &[]).unwrap();
        assert!(typed.attachments.is_empty());
        assert_eq!(typed.missing, [picture.as_str(), "src/lib.rs"]);
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
            rustix::fs::FileType::Fifo,
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
