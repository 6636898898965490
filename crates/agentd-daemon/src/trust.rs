//! Trusts the files of a project with their present content, or withdraws the trust.

use crate::daemon::Daemon;
use crate::error::{Error, Kind, Result};
use crate::layout::Layout;
use crate::project::trusted::{Trusted, read, write};
use crate::project::{self, ProjectFile, claude, mcp, settings, skills};
use crate::spawn::blocking;
use agentd_client::api::{ProjectTrust, Trust, TrustedFile};
use agentd_core::hook::digest;
use agentd_core::mcp::file::Found;
use std::io;
use std::path::{Path, PathBuf};

/// The files of a project, and which of them are trusted with their present content.
pub async fn show(daemon: &Daemon, dir: String) -> Result<ProjectTrust> {
    let layout = daemon.layout.clone();
    let home = home(daemon);
    blocking(move || shown_now(&layout, &dir, home.as_deref())).await
}

/// Trusts all files of a project with their present content, or withdraws the trust, also for deleted files.
pub async fn set(daemon: &Daemon, ask: Trust) -> Result<ProjectTrust> {
    let layout = daemon.layout.clone();
    // One change of the list at a time.
    let _alone = daemon.trusted_file.lock().await;
    let home = home(daemon);
    blocking(move || change(&layout, &ask, home.as_deref())).await
}

/// The user's home directory, as the daemon knows it.
fn home(daemon: &Daemon) -> Option<PathBuf> {
    daemon.envs.own().get("HOME").map(PathBuf::from)
}

fn shown_now(layout: &Layout, dir: &str, home: Option<&Path>) -> Result<ProjectTrust> {
    let dir = canonical(dir)?;
    let files = files_of(&dir)?;
    let trusted = read(layout).map_err(|error| cannot_read(&error))?;
    Ok(shown(&dir, &files, &trusted, home))
}

fn change(layout: &Layout, ask: &Trust, home: Option<&Path>) -> Result<ProjectTrust> {
    let dir = canonical(&ask.dir)?;
    let mut trusted = read(layout).map_err(|error| cannot_read(&error))?;
    let of_project = |path: &String| project::is_file_of(&dir, Path::new(path));
    let was_trusted = trusted.keys().any(of_project);
    let before = trusted.clone();
    trusted.retain(|path, _| !of_project(path));
    let files = match (ask.trusted, files_of(&dir)) {
        // Trust can be withdrawn even if the files can no longer be read.
        (false, files) => files.unwrap_or_default(),
        (true, files) => files?,
    };
    if files.is_empty() && !was_trusted {
        let what = format!("{} has no files for agents", dir.display());
        let why = "such files are `.mcp.json`, everything in `.agentd/`, the `SKILL.md` of skills, \
                   `.claude/settings.json` and `.claude/agents/*.md`";
        return Err(Error::new(Kind::NotFound, what).because(why));
    }
    if ask.hash.as_ref().is_some_and(|seen| *seen != whole(&files)) {
        let what = "the files have changed since you saw them";
        return Err(Error::new(Kind::Conflict, what).next("review them again"));
    }
    if ask.trusted {
        check_settings(&dir, &files)?;
        check_foreign(&dir, &files)?;
        servers(&dir, &files)?;
        let new = files
            .iter()
            .map(|file| (name(&dir, file), file.hash.clone()));
        trusted.extend(new);
    }
    write(layout, &trusted).map_err(|error| {
        let what = "the list of trusted files cannot be written";
        Error::new(Kind::Unavailable, what).because(error)
    })?;
    Ok(ProjectTrust {
        new_skills: new_skills(&dir, &files, &before, &trusted),
        ..shown(&dir, &files, &trusted, home)
    })
}

/// The files of skills that are trusted now, and were not trusted before with any content.
fn new_skills(dir: &Path, files: &[ProjectFile], before: &Trusted, now: &Trusted) -> Vec<String> {
    let of_skills = files.iter().filter(|file| skills::is_file(&file.below));
    let paths = of_skills.map(|file| name(dir, file));
    paths
        .filter(|path| now.contains_key(path) && !before.contains_key(path))
        .collect()
}

/// Refuses to trust a file of settings that cannot be used: the user would believe that they apply.
fn check_settings(dir: &Path, files: &[ProjectFile]) -> Result<()> {
    if !files
        .iter()
        .any(|file| file.below == Path::new(settings::BELOW))
    {
        return Ok(());
    }
    let refused = |why: String| {
        let what = format!("the files of {} cannot be trusted", dir.display());
        Error::new(Kind::Refused, what).because(why)
    };
    let bytes = project::read(dir, Path::new(settings::BELOW))
        .map_err(|error| refused(error.to_string()))?;
    settings::parse(&bytes).map_err(|error| refused(error.to_string()))?;
    Ok(())
}

/// Refuses to trust settings of another program that cannot be read: the user would believe that their denials apply.
fn check_foreign(dir: &Path, files: &[ProjectFile]) -> Result<()> {
    let below = Path::new(claude::SETTINGS);
    if !files.iter().any(|file| file.below == below) {
        return Ok(());
    }
    let refused = |why: String| {
        let what = format!("the files of {} cannot be trusted", dir.display());
        Error::new(Kind::Refused, what).because(format!("{}: {why}", claude::SETTINGS))
    };
    let bytes = project::read(dir, below).map_err(|error| refused(error.to_string()))?;
    claude::parse(&bytes, dir, None).map_err(|error| refused(error.to_string()))?;
    Ok(())
}

/// The servers of `.mcp.json`. An entry that cannot be used is skipped, and does not stand in the way of the other files.
fn servers(dir: &Path, files: &[ProjectFile]) -> Result<Found> {
    if !files.iter().any(|file| file.below == Path::new(mcp::BELOW)) {
        return Ok(Found::default());
    }
    let refused = |why: String| {
        let what = format!("the files of {} cannot be trusted", dir.display());
        Error::new(Kind::Refused, what).because(format!("{}: {why}", mcp::BELOW))
    };
    let bytes =
        project::read(dir, Path::new(mcp::BELOW)).map_err(|error| refused(error.to_string()))?;
    mcp::parse(&bytes).map_err(refused)
}

/// The canonical path: one project has one name, even if it is reached through a symbolic link.
fn canonical(dir: &str) -> Result<PathBuf> {
    std::fs::canonicalize(dir)
        .map_err(|error| Error::new(Kind::NotFound, format!("no directory {dir}")).because(error))
}

fn files_of(dir: &Path) -> Result<Vec<ProjectFile>> {
    project::files(dir).map_err(|error| {
        let what = format!("the files of {} cannot be trusted", dir.display());
        Error::new(Kind::Refused, what).because(error)
    })
}

fn cannot_read(error: &io::Error) -> Error {
    let what = "the list of trusted files cannot be read";
    Error::new(Kind::Unavailable, what).because(error)
}

fn name(dir: &Path, file: &ProjectFile) -> String {
    dir.join(&file.below).to_string_lossy().into_owned()
}

/// A digest of all files together. A request that names it proves that its sender has seen them.
fn whole(files: &[ProjectFile]) -> String {
    let parts = files.iter().flat_map(|file| {
        let below = file.below.as_os_str().as_encoded_bytes();
        [below, file.hash.as_bytes()]
    });
    digest(&parts.collect::<Vec<_>>())
}

fn shown(
    dir: &Path,
    files: &[ProjectFile],
    trusted: &Trusted,
    home: Option<&Path>,
) -> ProjectTrust {
    let each = files.iter().map(|file| {
        let path = name(dir, file);
        TrustedFile {
            trusted: trusted.get(&path) == Some(&file.hash),
            path,
            hash: file.hash.clone(),
        }
    });
    ProjectTrust {
        dir: dir.display().to_string(),
        files: each.collect(),
        hash: whole(files),
        new_skills: Vec::new(),
        // A file that cannot be read has no entries; that it cannot is said when it is to be trusted.
        skipped_servers: servers(dir, files).map_or_else(|_| Vec::new(), |found| found.skipped),
        unused: claude::unused(dir, home),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn ask(dir: &Path, trusted: bool) -> Trust {
        Trust {
            dir: dir.display().to_string(),
            hash: None,
            trusted,
        }
    }

    /// Regression: such an entry made hooks and skills of the project untrustable too.
    #[test]
    fn an_unusable_server_is_skipped_and_everything_else_is_trusted() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::new(home.path());
        layout.make().unwrap();
        let project = home.path().join("project");
        fs::create_dir_all(project.join(".agentd")).unwrap();
        fs::write(project.join(".agentd/hooks.json"), "{}").unwrap();
        let entries = r#"{"mcpServers": {"old": {"type": "sse", "url": "https://x/sse"}, "new": {"command": "x"}}}"#;
        fs::write(project.join(".mcp.json"), entries).unwrap();
        let found = change(&layout, &ask(&project, true), None).unwrap();
        assert!(found.files.iter().all(|file| file.trusted), "{found:?}");
        assert_eq!(found.skipped_servers.len(), 1, "{found:?}");
        assert!(found.skipped_servers[0].contains("`mcpServers.old`: a legacy SSE server"));
        let all = mcp::servers(&layout, &project);
        assert_eq!(all.servers.keys().collect::<Vec<_>>(), ["new"]);
        assert_eq!(all.skipped.len(), 1);
        // A file that is not JSON is still refused: the user would believe that its servers are used.
        fs::write(project.join(".mcp.json"), "{").unwrap();
        change(&layout, &ask(&project, true), None).unwrap_err();
    }

    #[test]
    fn trust_in_a_project_does_not_change_that_of_a_project_below_it() {
        let home = tempfile::tempdir().unwrap();
        let layout = Layout::new(home.path());
        layout.make().unwrap();
        let outer = home.path().join("outer");
        let inner = outer.join("inner");
        for project in [&outer, &inner] {
            fs::create_dir_all(project.join(".agentd")).unwrap();
            fs::write(project.join(".agentd/hooks.json"), "{}").unwrap();
            fs::write(project.join(".mcp.json"), "{}").unwrap();
        }
        let are_trusted = |dir: &Path| {
            let shown = shown_now(&layout, &dir.display().to_string(), None).unwrap();
            let trusted: Vec<bool> = shown.files.iter().map(|file| file.trusted).collect();
            trusted
        };
        change(&layout, &ask(&inner, true), None).unwrap();
        change(&layout, &ask(&outer, true), None).unwrap();
        assert_eq!(are_trusted(&inner), [true, true]);
        assert_eq!(are_trusted(&outer), [true, true]);
        change(&layout, &ask(&outer, false), None).unwrap();
        assert_eq!(are_trusted(&inner), [true, true]);
        assert_eq!(are_trusted(&outer), [false, false]);
    }

    /// Files of the forms that public repositories have: settings that only allow and name plugins, settings with hooks for every
    /// event, settings with denials; servers with a placeholder of an editor, and entries that name no server.
    #[test]
    fn files_as_projects_have_them_can_be_trusted() {
        let plugins = r#"{"enabledPlugins": {"a@b": true}, "permissions": {"allow": ["Bash(npm:*)", "Read(//mnt/e/**)"]}}"#;
        let hooks = r#"{"statusLine": {"type": "command", "command": "x"}, "permissions": {"allow": ["Write"], "deny": []}, "hooks": {
            "PreToolUse": [{"matcher": "", "description": "d", "hooks": [{"type": "command", "command": "uv run .claude/hooks/a.py", "timeout": 5000}]}],
            "Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/hooks/on-stop.sh"}]}]}}"#;
        let denials = r#"{"permissions": {"deny": ["Read(./.env)", "Read(./.env.*)", "Bash(rm -rf *)", "Bash(sudo:*)", "WebFetch"],
            "ask": ["Bash(git push:*)"], "additionalDirectories": ["../docs"]}, "cleanupPeriodDays": 30}"#;
        let windows = r#"{"mcpServers": {"e": {"type": "stdio", "command": "cmd", "args": ["/c", "npx"], "env": {"KEY": "${KEY}"}}}}"#;
        let editor = r#"{"mcpServers": {"j": {"type": "http", "url": "http://j:8080/mcp", "headers": {"Authorization": "Basic ${input:auth}"}}}}"#;
        let wrong = r#"{"mcpServers": {"s": {"link": "https://x/mcp"}, "g": {"link": "https://x", "url": "https://y/mcp"}}}"#;
        let cases = [
            (
                plugins,
                windows,
                0,
                "not used: enabledPlugins, permissions.allow",
            ),
            (hooks, editor, 0, "not used: statusLine, permissions.allow"),
            (
                denials,
                wrong,
                2,
                "not used: cleanupPeriodDays, permissions.additionalDirectories, permissions.ask",
            ),
        ];
        for (settings, servers, skipped, unused) in cases {
            let home = tempfile::tempdir().unwrap();
            let layout = Layout::new(home.path());
            layout.make().unwrap();
            let project = home.path().join("project");
            fs::create_dir_all(project.join(".claude")).unwrap();
            fs::write(project.join(".claude/settings.json"), settings).unwrap();
            fs::write(project.join(".mcp.json"), servers).unwrap();
            let found = change(&layout, &ask(&project, true), None).unwrap();
            assert!(found.files.iter().all(|file| file.trusted), "{found:?}");
            assert_eq!(found.files.len(), 2, "{found:?}");
            assert_eq!(found.skipped_servers.len(), skipped, "{found:?}");
            assert_eq!(found.unused, [format!(".claude/settings.json: {unused}")]);
        }
    }
}
