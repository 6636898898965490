//! What files were before commands changed them: in the journal, or in git's index or newest commit. Git is asked once for
//! all files of a difference, in the sandbox of the tools.

use super::git::GitContents;
use super::sandbox::ToolSandbox;
use super::sides::{NOT_KEPT, PathChanges, Side, UNKNOWN_BEFORE, kept};
use super::{after, begin, carry_out, git, resolve};
use crate::clock;
use crate::daemon::AgentHandle;
use crate::error::Result;
use crate::spawn::blocking;
use agentd_core::event::Oid;
use agentd_core::files::{CannotRestore, Earlier, History, Target, before, is_link};
use agentd_core::id::OpId;
use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Of more files the contents are not compared.
const MOST: usize = 500;

const NOT_IN_GIT: &str = "git does not have its earlier content";
const NEW: &str = "git does not have it";
const TOO_MANY: &str = "commands changed too many files to compare them all";
const NO_ANSWER: &str = "git could not be asked for its earlier content";
const LATE: &str = "git could not be asked in time for its earlier content";
const ONLY_MODE: &str = "only its permissions were changed";
/// Git has the newest commit and what was staged; other lines may have been there.
pub const COMPARED_WITH_GIT: &str =
    "compared with git's copy: its content before the command is not known";

/// What is known of the paths whose first change in a range is one of a command.
#[derive(Default)]
pub struct BeforeCommand(BTreeMap<String, Known>);

enum Known {
    Journal(Target),
    Git(Found),
    Unknown(&'static str),
}

/// A content that git has.
struct Found {
    content: Content,
    /// The mode that git has.
    mode: u32,
    /// Whether the journal has its hash, or the file was clean: then it is certain that the path had it.
    is_certain: bool,
}

enum Content {
    File(Vec<u8>),
    Link(String),
    TooLarge,
}

impl BeforeCommand {
    /// Finds the contents.
    pub async fn find(
        handle: &AgentHandle,
        sandbox: &ToolSandbox,
        history: &History,
        paths: &[PathChanges<'_>],
    ) -> Result<Self> {
        let mut all = BTreeMap::new();
        let mut of_git: BTreeMap<String, Target> = BTreeMap::new();
        for path in paths {
            let Some(first) = path.changes.first() else {
                continue;
            };
            if !matches!(first.before, Earlier::Git(_)) {
                continue;
            }
            if all.len() + of_git.len() >= MOST {
                all.insert(path.path.to_owned(), Known::Unknown(TOO_MANY));
                continue;
            }
            let known = match before(history, first) {
                Ok(target @ Target::Git { .. }) => {
                    of_git.insert(path.path.to_owned(), target);
                    continue;
                }
                Ok(Target::Mode { .. }) => Known::Unknown(ONLY_MODE),
                Ok(target @ Target::Kept { .. }) => Known::Journal(target),
                Err(CannotRestore::NotInGit) if path.is_added() => Known::Unknown(NEW),
                Err(CannotRestore::NotInGit) => Known::Unknown(NOT_IN_GIT),
                Err(why) => Known::Unknown(why.text()),
            };
            all.insert(path.path.to_owned(), known);
        }
        if !of_git.is_empty() {
            all.extend(ask(handle, sandbox, of_git).await);
        }
        Ok(Self(all))
    }

    /// The content of a path before the range.
    pub async fn earlier(&self, handle: &AgentHandle, path: &PathChanges<'_>) -> Result<Side> {
        match path.changes.first().map(|first| &first.before) {
            Some(Earlier::Kept { at, state, size }) => kept(handle, *at, state, *size).await,
            Some(Earlier::NotKept(_)) => Ok(Side::Unknown(NOT_KEPT)),
            Some(Earlier::Git(_)) => self.side(handle, path.path).await,
            None => Ok(Side::Unknown(UNKNOWN_BEFORE)),
        }
    }

    async fn side(&self, handle: &AgentHandle, path: &str) -> Result<Side> {
        Ok(match self.0.get(path) {
            Some(Known::Journal(Target::Kept { at, state, size })) => {
                kept(handle, *at, state, *size).await?
            }
            Some(Known::Git(found)) => match &found.content {
                Content::File(bytes) => Side::Content {
                    bytes: bytes.clone(),
                    mode: Some(found.mode),
                },
                Content::Link(target) => Side::Link(target.clone()),
                Content::TooLarge => Side::TooLarge(None),
            },
            Some(Known::Unknown(why)) => Side::Unknown(why),
            Some(Known::Journal(_)) | None => Side::Unknown(NOT_IN_GIT),
        })
    }

    /// Whether the content is git's, and the path may have had another one.
    pub fn is_guess(&self, path: &str) -> bool {
        matches!(self.0.get(path), Some(Known::Git(found)) if !found.is_certain)
    }
}

/// Asks git for the contents of these paths.
async fn ask(
    handle: &AgentHandle,
    sandbox: &ToolSandbox,
    targets: BTreeMap<String, Target>,
) -> BTreeMap<String, Known> {
    let op = OpId::new(clock::new_id());
    let dir = handle.daemon.layout.restore_dir(handle.id, op);
    let objects = targets.iter().flat_map(|(path, target)| {
        let oids = resolve::oids(target).into_iter();
        oids.map(|oid| (oid, path.clone())).collect::<Vec<_>>()
    });
    let objects = objects.collect();
    let contents = match begin::make(handle, &dir).await {
        Ok(()) => {
            let at = dir.join("git");
            git::contents(sandbox, &at, objects, git::TIME_OF_DIFF).await
        }
        Err(error) => Err(error),
    };
    let contents = match contents {
        Ok(contents) => contents,
        Err(error) => {
            tracing::warn!(agent = %handle.id, %error, "git not asked for earlier contents");
            carry_out::remove(dir).await;
            let paths = targets.into_keys();
            return paths
                .map(|path| (path, Known::Unknown(NO_ANSWER)))
                .collect();
        }
    };
    let known = blocking(move || {
        let GitContents { files, late } = contents;
        let hashes = resolve::hashes(files.clone());
        let is_late = |path: &str| late.iter().any(|(_, of)| of == path);
        let targets = targets.into_iter();
        let known = targets.map(|(path, target)| {
            let known = match is_late(&path) {
                true => Known::Unknown(LATE),
                false => {
                    of_git(&path, &target, &files, &hashes).unwrap_or(Known::Unknown(NOT_IN_GIT))
                }
            };
            (path, known)
        });
        known.collect()
    })
    .await;
    carry_out::remove(dir).await;
    known
}

type Contents = BTreeMap<(Oid, String), PathBuf>;

fn of_git(
    path: &str,
    target: &Target,
    contents: &Contents,
    hashes: &BTreeMap<(Oid, String), String>,
) -> Option<Known> {
    let own = hashes.iter().filter(|((_, of), _)| of == path);
    let own = own.map(|((oid, _), hash)| (oid.clone(), hash.clone()));
    let (oid, mode, _) = target.object(&own.collect())?;
    let file = contents.get(&(oid, path.to_owned()))?;
    let content = match is_link(mode) {
        true => Content::Link(git::link_target(file).ok()?),
        false => content(file).ok()?,
    };
    let is_certain = target.is_certain();
    Some(Known::Git(Found {
        content,
        mode,
        is_certain,
    }))
}

fn content(file: &Path) -> io::Result<Content> {
    let mut content = Vec::new();
    let file = git::open(file)?;
    file.take(after::LARGEST + 1).read_to_end(&mut content)?;
    Ok(match content.len() as u64 > after::LARGEST {
        true => Content::TooLarge,
        false => Content::File(content),
    })
}
