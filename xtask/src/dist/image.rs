//! The root of the container image: a static program and the certificates of this machine. Its test runs the program in a
//! `chroot` to that root, where no library, no shell and no other program exists.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::namespaces::{self, IMAGE};
use super::{Outcome, build, dir, output_of};
use crate::need::{self, Need};

const BUILD: &[Need] = &[Need {
    program: "musl-gcc",
    what_for: "compiles the C code of a static program",
    packages: &["musl-tools"],
}];
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";
/// The user of the image, and the directories that belong to it.
const USER: u32 = 1000;
const OWNED: [&str; 2] = ["var/lib/agentd", "work"];
/// As the Dockerfile sets them.
const ENV: [(&str, &str); 2] = [("AGENTD_HOME", "/var/lib/agentd"), ("HOME", "/")];

const PROMPT: &str = "write notes.txt: hello; then read notes.txt";
const ANSWER: &str =
    "I have written notes.txt.\nnotes.txt begins with:\n> hello\nAll 2 steps are done.\n";

pub fn make(root: &Path) -> Result<Outcome> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    if !is_installed(root, &target)? {
        let why = format!("the target is not installed: `rustup target add {target}`");
        return Ok(Outcome::Skipped(why));
    }
    if let Err(error) = need::install(BUILD) {
        return Ok(Outcome::Skipped(format!("{error:#}")));
    }
    let program = build(root, Some(&target))?;
    let context = dir(root).join("image");
    assemble(&program, &context)?;
    println!("the context of `docker build` is {}", context.display());
    if let Some(why) = namespaces::missing() {
        return Ok(Outcome::Untested(context, why));
    }
    let version = output_of(Command::new(&program).arg("--version"))?;
    test(&context, &version)?;
    Ok(Outcome::Tested(context))
}

/// Whether the compiler has the standard library of the target.
fn is_installed(root: &Path, target: &str) -> Result<bool> {
    let mut command = Command::new("rustc");
    command.args(["--print", "target-libdir", "--target", target]);
    let dir = output_of(command.current_dir(root))?;
    Ok(Path::new(dir.trim()).is_dir())
}

/// Writes what the Dockerfile copies: `root`, and the directories of the user in `owned`.
fn assemble(program: &Path, context: &Path) -> Result<()> {
    if context.exists() {
        fs::remove_dir_all(context).context("cannot remove the image of the last run")?;
    }
    let (root, owned) = (context.join("root"), context.join("owned"));
    for path in ["usr/bin", "etc/ssl/certs", "tmp"] {
        fs::create_dir_all(root.join(path)).with_context(|| format!("cannot create {path}"))?;
    }
    for path in OWNED {
        fs::create_dir_all(owned.join(path)).with_context(|| format!("cannot create {path}"))?;
    }
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777))?;
    fs::copy(program, root.join("usr/bin/agentd")).context("cannot copy the program")?;
    let certificates = Path::new("/").join(CERTIFICATES);
    if certificates.is_file() {
        fs::copy(&certificates, root.join(CERTIFICATES)).context("cannot copy certificates")?;
    } else {
        println!("no /{CERTIFICATES}: models cannot be reached over HTTPS");
    }
    Ok(())
}

/// The last run reads what the first has written, after all of its processes were killed.
fn test(context: &Path, version: &str) -> Result<()> {
    let root = ImageRoot::create(context)?;
    let found = root.run(&["--version"])?;
    ensure!(found == version, "{found}is not {version}");
    let answer = root.run(&["run", "--provider", "demo", "--cwd", "/work", PROMPT])?;
    ensure!(answer == ANSWER, "the answer is:\n{answer}");
    let written = fs::read_to_string(root.0.join("work/notes.txt"));
    ensure!(written.context("notes.txt is missing")? == "hello");
    let verified = root.run(&["verify"])?;
    ensure!(verified.contains("no damage"), "{verified}");
    Ok(())
}

/// A copy of the image's root, with the owners that the Dockerfile sets. Removed when it is dropped.
struct ImageRoot(PathBuf);

impl ImageRoot {
    fn create(context: &Path) -> Result<Self> {
        let dir = PathBuf::from(format!("/tmp/agentd-image-{}", std::process::id()));
        fs::create_dir(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let root = Self(dir);
        for part in ["root/.", "owned/."] {
            let mut copy = Command::new("cp");
            copy.arg("-a").arg(context.join(part)).arg(&root.0);
            output_of(&mut copy)?;
        }
        for path in OWNED {
            chown(root.0.join(path), Some(USER), Some(USER)).context("cannot change an owner")?;
        }
        Ok(root)
    }

    fn run(&self, args: &[&str]) -> Result<String> {
        println!("$ agentd {}", args.join(" "));
        let program: &[&str] = &["/usr/bin/agentd"];
        let args = [program, args].concat();
        output_of(&mut namespaces::command(IMAGE, &self.0, &ENV, &args))
    }
}

impl Drop for ImageRoot {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            println!("{} is left: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is tested is what the Dockerfile makes of it.
    #[test]
    fn the_dockerfile_copies_what_is_tested() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = fs::read_to_string(root.join("Dockerfile")).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        for line in [
            "FROM scratch".to_owned(),
            "COPY root/ /".to_owned(),
            format!("COPY --chown={USER}:{USER} owned/ /"),
            format!("USER {USER}:{USER}"),
            "ENTRYPOINT [\"/usr/bin/agentd\"]".to_owned(),
        ] {
            assert!(lines.contains(&line.as_str()), "{line}");
        }
        for (name, value) in ENV {
            assert!(text.contains(&format!("{name}={value}")), "{name}");
        }
        assert!(namespaces::IMAGE.contains(&format!("--userspec={USER}:{USER}")));
    }

    #[test]
    fn the_root_has_the_program_and_what_it_needs() {
        let dir = std::env::temp_dir().join(format!("xtask-image-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let program = dir.join("program");
        fs::write(&program, "x").unwrap();
        let context = dir.join("context");
        // The second time it replaces the first.
        for _ in 0..2 {
            assemble(&program, &context).unwrap();
            fs::write(context.join("root/old"), "").unwrap();
        }
        assemble(&program, &context).unwrap();
        assert!(!context.join("root/old").exists());
        assert!(context.join("root/usr/bin/agentd").is_file());
        let tmp = fs::metadata(context.join("root/tmp")).unwrap();
        assert_eq!(tmp.permissions().mode() & 0o7777, 0o1777);
        for path in OWNED {
            assert!(context.join("owned").join(path).is_dir());
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
