//! The skills of an agent: those of its user, and those of its project that the user has trusted.

use super::trusted;
use crate::layout::Layout;
use agentd_core::hook::digest;
use agentd_core::skill::{Skill, parse};
use std::fs;
use std::path::{Path, PathBuf};

/// Where skills are, in a project and in the user's home directory. Each has a directory of its own.
const DIRS: [&str; 2] = [".agents/skills", ".claude/skills"];
const FILE: &str = "SKILL.md";
/// How many skills an agent has.
const MOST: usize = 64;

/// The skills of an agent.
#[derive(Debug, Default)]
pub struct Skills {
    pub skills: Vec<Skill>,
    /// The directories of skills outside the agent's directory, which its tools must be able to read.
    pub readable: Vec<PathBuf>,
}

/// The skills of a project come before those of the user, and the nearest come first. Of two skills with the same
/// name, the first counts.
pub fn of(layout: &Layout, cwd: &Path, home: Option<&Path>) -> Skills {
    let mut found = Skills::default();
    let Ok(cwd) = fs::canonicalize(cwd) else {
        return found;
    };
    for project in super::dirs(&cwd) {
        for below in files(project) {
            let path = project.join(&below);
            match super::read(project, &below) {
                Ok(bytes) if trusted::is_trusted(layout, &path, &digest(&[&bytes])) => {
                    let is_added = found.add(&path, &bytes);
                    found.readable.extend(
                        path.parent()
                            .filter(|dir| is_added && !dir.starts_with(&cwd))
                            // A link would lead elsewhere.
                            .filter(|dir| fs::canonicalize(dir).is_ok_and(|real| real == *dir))
                            .map(Path::to_owned),
                    );
                }
                Ok(_) => tracing::info!(path = %path.display(), "skill ignored: not trusted"),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "skill ignored: not readable");
                }
            }
        }
    }
    for dir in home.into_iter().flat_map(dirs_of_user) {
        let path = dir.join(FILE);
        match super::read(&dir, Path::new(FILE)) {
            Ok(bytes) => {
                if found.add(&path, &bytes) {
                    found.readable.push(dir);
                }
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "skill ignored: not readable");
            }
        }
    }
    found
}

/// Of these skills, given by the paths of their files, those that may not be used: the file is gone, or it is a project's and
/// not trusted with its present content.
pub fn unusable(layout: &Layout, cwd: &Path, paths: &[String]) -> Vec<String> {
    let cwd = fs::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
    let projects = super::dirs(&cwd);
    let is_usable = |path: &Path| {
        let of_project = projects.iter().find_map(|project| {
            let below = path.strip_prefix(project).ok()?;
            is_file(below).then_some((*project, below))
        });
        match of_project {
            Some((project, below)) => super::read(project, below)
                .is_ok_and(|bytes| trusted::is_trusted(layout, path, &digest(&[&bytes]))),
            None => path.symlink_metadata().is_ok(),
        }
    };
    let unusable = paths.iter().filter(|path| !is_usable(Path::new(path)));
    unusable.cloned().collect()
}

impl Skills {
    /// Whether the agent has this skill now.
    fn add(&mut self, path: &Path, bytes: &[u8]) -> bool {
        let dir = path.parent().and_then(Path::file_name);
        let dir = dir.unwrap_or_default().to_string_lossy();
        let text = String::from_utf8_lossy(bytes);
        let skill = match parse(&text, &dir, path.display().to_string()) {
            Ok(skill) => skill,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "skill ignored: not valid");
                return false;
            }
        };
        let is_new = !self.skills.iter().any(|known| known.name == skill.name);
        let is_added = is_new && self.skills.len() < MOST;
        if is_added {
            self.skills.push(skill);
        }
        is_added
    }
}

/// Whether a path relative to a project is that of a skill's file, whether it exists or not.
pub fn is_file(below: &Path) -> bool {
    let is_in = |dir: &str| {
        below
            .strip_prefix(dir)
            .is_ok_and(|it| it.iter().count() == 2)
    };
    DIRS.iter().any(|dir| is_in(dir)) && below.ends_with(FILE)
}

/// The files of a project's skills, relative to the project.
pub fn files(project: &Path) -> Vec<PathBuf> {
    let dirs = DIRS.iter().map(Path::new);
    let mut files: Vec<PathBuf> = dirs
        .flat_map(|dir| {
            names(&project.join(dir))
                .into_iter()
                .map(move |name| dir.join(name))
        })
        .map(|dir| dir.join(FILE))
        .filter(|below| project.join(below).symlink_metadata().is_ok())
        .collect();
    files.sort();
    files
}

/// The directories of the user's own skills. Such a directory may be reached through a link, as dotfiles often are. One
/// that contains the home directory is left out: tools can read the directories of skills.
fn dirs_of_user(home: &Path) -> Vec<PathBuf> {
    let real_home = fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
    let dirs = DIRS.iter().map(|dir| home.join(dir));
    let mut found: Vec<PathBuf> = dirs
        .flat_map(|dir| names(&dir).into_iter().map(move |name| dir.join(name)))
        .filter(|dir| dir.join(FILE).symlink_metadata().is_ok())
        .filter_map(|dir| fs::canonicalize(dir).ok())
        .filter(|dir| !real_home.starts_with(dir))
        .collect();
    found.sort();
    found
}

fn names(dir: &Path) -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name())
        .take(super::MOST)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project;
    use std::os::unix::fs::symlink;

    fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
        let path = dir.join(name).join(FILE);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn names_of(skills: &Skills) -> Vec<&str> {
        skills
            .skills
            .iter()
            .map(|skill| skill.name.as_str())
            .collect()
    }

    #[test]
    fn a_project_s_skills_count_once_they_are_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let layout = Layout::new(root.join("state"));
        fs::create_dir_all(root.join("state")).unwrap();
        let work = root.join("work");
        fs::create_dir_all(work.join(".git")).unwrap();
        fs::create_dir_all(work.join("below")).unwrap();
        let path = write(
            &work.join(".claude/skills"),
            "release",
            "---\ndescription: Releases.\n---\n",
        );
        let at = work.join("below");
        assert_eq!(names_of(&of(&layout, &at, None)), [""; 0]);
        let all = project::files(&work).unwrap();
        let trust = all.iter().map(|file| {
            (
                work.join(&file.below).display().to_string(),
                file.hash.clone(),
            )
        });
        trusted::write(&layout, &trust.collect()).unwrap();
        let found = of(&layout, &at, None);
        assert_eq!(names_of(&found), ["release"]);
        assert_eq!(found.skills[0].path, path.display().to_string());
        // The agent works below: without this, its tools could not read the skill.
        assert_eq!(found.readable, [path.parent().unwrap()]);
        assert_eq!(
            of(&layout, &work, None).readable,
            [""; 0].map(PathBuf::from)
        );
        // Another text needs another decision, and a link is not followed.
        let mine = root.join("home/.claude/skills/mine/SKILL.md");
        fs::create_dir_all(mine.parent().unwrap()).unwrap();
        fs::write(&mine, "---\ndescription: Mine.\n---\n").unwrap();
        let known = [&path, &mine].map(|path| path.display().to_string());
        assert_eq!(unusable(&layout, &at, &known), [""; 0]);
        fs::write(&path, "---\ndescription: Deletes everything.\n---\n").unwrap();
        assert_eq!(names_of(&of(&layout, &at, None)), [""; 0]);
        assert_eq!(unusable(&layout, &at, &known), known[..1]);
        fs::remove_file(&path).unwrap();
        symlink("/etc/passwd", &path).unwrap();
        assert_eq!(names_of(&of(&layout, &at, None)), [""; 0]);
    }

    #[test]
    fn the_user_s_own_skills_need_no_trust_and_are_readable() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let layout = Layout::new(root.join("state"));
        let home = root.join("home");
        let dotfiles = root.join("dotfiles");
        write(
            &dotfiles,
            "linked",
            "---\nname: own\ndescription: Linked.\n---\n",
        );
        write(&home.join(".claude/skills"), "no-skill", "Text.");
        write(
            &home.join(".claude/skills"),
            "second",
            "---\nname: own\ndescription: Second.\n---\n",
        );
        fs::create_dir_all(home.join(".agents/skills")).unwrap();
        symlink(dotfiles.join("linked"), home.join(".agents/skills/linked")).unwrap();
        let found = of(&layout, &root, Some(&home));
        assert_eq!(names_of(&found), ["own"]);
        assert_eq!(found.skills[0].description, "Linked.");
        assert_eq!(found.readable, [dotfiles.join("linked")]);
    }

    /// Tools can read the directory of a skill: a link must not make it a larger one.
    #[test]
    fn a_link_in_a_skill_opens_no_other_directory() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let layout = Layout::new(root.join("state"));
        let home = root.join("home");
        let skills = home.join(".claude/skills");
        let text = "---\ndescription: Planted.\n---\n";
        fs::create_dir_all(skills.join("file")).unwrap();
        fs::write(home.join("notes.md"), text).unwrap();
        symlink(home.join("notes.md"), skills.join("file").join(FILE)).unwrap();
        fs::write(home.join(FILE), text).unwrap();
        symlink(&home, skills.join("home")).unwrap();
        fs::write(root.join(FILE), text).unwrap();
        symlink(&root, skills.join("above")).unwrap();
        let found = of(&layout, &root, Some(&home));
        assert_eq!((names_of(&found), found.readable.len()), (vec![], 0));
    }
}
