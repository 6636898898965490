//! The Debian package. Its test installs it on a clean root, walks through the tutorial there as an ordinary user, and
//! removes it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::namespaces::{self, SYSTEM};
use super::{ALL_HOLD, Outcome, build, dir, output_of, run_to_end, staged};
use crate::need::{self, Need};
use crate::{page, tree};

const CARGO_DEB: &str = "cargo-deb@3.8.0";

/// For the build.
const BUILD: &[Need] = &[Need {
    program: "dpkg-shlibdeps",
    what_for: "finds the libraries that the package depends on",
    packages: &["dpkg-dev"],
}];
/// For the test.
const TEST: &[Need] = &[Need {
    program: "debootstrap",
    what_for: "creates a clean root from Debian packages",
    packages: &["debootstrap"],
}];

/// What the walk uses, and no more.
const USER: &str = "walker";
const USER_ENV: [(&str, &str); 2] = [
    ("HOME", "/home/walker"),
    ("AGENTD_HOME", "/home/walker/state"),
];

pub fn make(root: &Path, mirror: &str) -> Result<Outcome> {
    if let Err(error) = install_tools(root) {
        return Ok(Outcome::Skipped(format!("{error:#}")));
    }
    let program = build(root, None)?;
    staged::write(&program, &dir(root))?;
    let package = package(root)?;
    let clean = match CleanRoot::create(mirror) {
        Ok(clean) => clean,
        Err(why) => return Ok(Outcome::Untested(package, why)),
    };
    let version = output_of(Command::new(&program).arg("--version"))?;
    let tutorial = fs::read_to_string(root.join("docs/tutorial.md"))?;
    clean.test(&package, &version, &tutorial)?;
    Ok(Outcome::Tested(package))
}

fn install_tools(root: &Path) -> Result<()> {
    need::install(BUILD)?;
    if !tree::has_cargo_command(root, "deb") {
        run_to_end(tree::cargo(root).args(["install", "--locked", CARGO_DEB]))?;
    }
    Ok(())
}

fn package(root: &Path) -> Result<PathBuf> {
    let dir = dir(root).join("deb");
    if dir.exists() {
        fs::remove_dir_all(&dir).context("cannot remove the package of the last run")?;
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let mut command = tree::cargo(root);
    command.args(["deb", "-p", "agentd", "--locked", "--no-build", "--output"]);
    run_to_end(command.arg(&dir))?;
    let mut files = fs::read_dir(&dir)?.flatten().map(|entry| entry.path());
    let found = files.find(|path| path.extension().is_some_and(|end| end == "deb"));
    found.with_context(|| format!("no package in {}", dir.display()))
}

/// A small Debian system in a directory. Removed when it is dropped.
struct CleanRoot {
    dir: PathBuf,
}

impl CleanRoot {
    /// An error says why there can be none here.
    fn create(mirror: &str) -> Result<Self, String> {
        if let Some(why) = namespaces::missing() {
            return Err(why);
        }
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let suite =
            suite(&release).ok_or("this is not Debian, and the package needs its libraries")?;
        need::install(TEST).map_err(|error| format!("{error:#}"))?;
        let dir = PathBuf::from(format!("/tmp/agentd-dist-{}", std::process::id()));
        fs::create_dir(&dir)
            .map_err(|error| format!("cannot create {}: {error}", dir.display()))?;
        let clean = Self { dir };
        // It mounts file systems below the directory; a mount that an interrupt leaves behind stays in the namespace.
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--", "debootstrap"]);
        command.args(["--variant=minbase", &suite]);
        command.arg(&clean.dir).arg(mirror);
        println!("$ {}", super::shown(&command));
        // It is long, and only its end says what went wrong.
        output_of(&mut command).map_err(|error| {
            let text = format!("{error:#}");
            let last = text.lines().rfind(|line| !line.trim().is_empty());
            format!("no clean root: {}", last.unwrap_or_default())
        })?;
        Ok(clean)
    }

    fn test(&self, package: &Path, version: &str, tutorial: &str) -> Result<()> {
        let tested = self.try_test(package, version, tutorial);
        tested.with_context(|| format!("on the clean root {}", self.dir.display()))
    }

    fn try_test(&self, package: &Path, version: &str, tutorial: &str) -> Result<()> {
        fs::copy(package, self.dir.join("tmp/agentd.deb")).context("cannot copy the package")?;
        self.as_root("dpkg --install /tmp/agentd.deb")?;
        self.as_root(&format!("useradd --create-home --shell /bin/bash {USER}"))?;
        let installed = self.as_user("agentd --version")?;
        ensure!(installed == version, "{installed}is not {version}");
        self.as_root(FILES)?;
        let demo = self.as_user("agentd demo")?;
        ensure!(demo.contains(ALL_HOLD), "{demo}");
        println!("the demo: {}", demo.lines().last().unwrap_or_default());
        let steps = self.walk(tutorial)?;
        println!("the tutorial: {steps} commands did what the page says");
        self.as_root("dpkg --purge agentd")?;
        let left =
            self.as_root("find / -xdev -name '*agentd*' -not -path '/tmp/*' -not -path '/home/*'")?;
        ensure!(left.is_empty(), "after its removal there is still:\n{left}");
        Ok(())
    }

    /// Runs all commands of the page in one shell of the user.
    fn walk(&self, page: &str) -> Result<usize> {
        let steps = page::steps(page);
        ensure!(
            steps.len() > 20,
            "only {} commands on the page",
            steps.len()
        );
        let command = self.of_user(&["bash", "--noprofile", "--norc"]);
        let mut shell = page::Shell::start(command).context("cannot start a shell")?;
        shell.run("cd").context("the shell does not run")?;
        for step in &steps {
            if let Err(wrong) = shell.step(step) {
                bail!("{wrong}");
            }
        }
        Ok(steps.len())
    }

    fn as_root(&self, script: &str) -> Result<String> {
        println!("# {script}");
        let args = ["sh", "-ec", script];
        output_of(&mut namespaces::command(SYSTEM, &self.dir, &[], &args))
    }

    fn as_user(&self, script: &str) -> Result<String> {
        println!("$ {script}");
        output_of(&mut self.of_user(&["sh", "-ec", script]))
    }

    fn of_user(&self, args: &[&str]) -> Command {
        let user: &[&str] = &["setpriv", "--reuid", USER, "--regid", USER, "--init-groups"];
        let args = [user, args].concat();
        namespaces::command(SYSTEM, &self.dir, &USER_ENV, &args)
    }
}

impl Drop for CleanRoot {
    fn drop(&mut self) {
        // Its mounts were in namespaces that have ended.
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            println!("{} is left: {error}", self.dir.display());
        }
    }
}

/// What the package has besides the program, and that the shell can read its completions.
const FILES: &str = "\
for file in man/man1/agentd.1.gz man/man1/agentd-schedule-add.1.gz doc/agentd/copyright doc/agentd/changelog.gz \
    doc/agentd/examples/README.md bash-completion/completions/agentd zsh/vendor-completions/_agentd \
    fish/vendor_completions.d/agentd.fish; do
    test -s /usr/share/$file || { echo \"/usr/share/$file is missing\"; exit 1; }
done
bash -n /usr/share/bash-completion/completions/agentd";

/// The name of the Debian release that runs here. A package for it needs its C library or a newer one.
fn suite(release: &str) -> Option<String> {
    let value = |key: &str| {
        let mut lines = release.lines();
        let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(value.trim_matches('"').to_owned())
    };
    (value("ID")? == "debian").then(|| value("VERSION_CODENAME"))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_that_of_this_machine() {
        let debian =
            "PRETTY_NAME=\"Debian 12\"\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(suite(debian).as_deref(), Some("bookworm"));
        assert_eq!(suite("ID=ubuntu\nVERSION_CODENAME=noble\n"), None);
        assert_eq!(suite("ID=debian\n"), None);
        assert_eq!(suite(""), None);
    }
}
