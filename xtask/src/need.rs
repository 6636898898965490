//! The programs that the suites need besides Rust, and how to install them.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tree;

pub struct Need {
    /// A program in `PATH`; if it exists, the need is met.
    pub program: &'static str,
    pub what_for: &'static str,
    /// The Debian packages that contain it.
    pub packages: &'static [&'static str],
}

const NEEDS: &[Need] = &[
    Need {
        program: "cc",
        what_for: "compiles the C code of SQLite and zstd",
        packages: &["gcc", "libc6-dev"],
    },
    Need {
        program: "git",
        what_for: "is used by agents and by attacks of the siege",
        packages: &["git"],
    },
    Need {
        program: "python3",
        what_for: "runs attacks of the siege",
        packages: &["python3"],
    },
    Need {
        program: "setpriv",
        what_for: "runs the siege as an unprivileged user",
        packages: &["util-linux"],
    },
];

/// Installs what the suites need.
pub fn install_missing() -> Result<()> {
    install(NEEDS)
}

/// Installs what is missing if permitted; otherwise the error says what to run.
pub fn install(needs: &[Need]) -> Result<()> {
    let missing: Vec<&Need> = needs
        .iter()
        .filter(|need| !tree::has_program(need.program))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    for need in &missing {
        println!("missing: {} ({})", need.program, need.what_for);
    }
    let packages = packages_of(&missing);
    let may_install = rustix::process::geteuid().is_root() && tree::has_program("apt-get");
    if !may_install {
        bail!("{}", advice(&packages));
    }
    apt_get(&["update"])?;
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(&packages);
    apt_get(&install)?;
    for need in missing {
        if !tree::has_program(need.program) {
            bail!(
                "installed {}, but `{}` is still not in PATH",
                need.packages.join(" "),
                need.program
            );
        }
    }
    Ok(())
}

fn packages_of(missing: &[&Need]) -> Vec<&'static str> {
    let mut packages: Vec<&str> = missing
        .iter()
        .flat_map(|need| need.packages.iter().copied())
        .collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

fn advice(packages: &[&str]) -> String {
    format!(
        "some needed programs are missing and this user cannot install them. Run:\n    \
         sudo apt-get update && sudo apt-get install -y {}\n\
         (or the equivalent on a system other than Debian), then start again",
        packages.join(" ")
    )
}

fn apt_get(args: &[&str]) -> Result<()> {
    println!("$ apt-get {}", args.join(" "));
    let status = Command::new("apt-get")
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .context("cannot start apt-get")?;
    if !status.success() {
        bail!("apt-get {} failed: {status}", args.join(" "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_names_each_package_once() {
        let a = Need {
            program: "a",
            what_for: "",
            packages: &["gcc", "make"],
        };
        let b = Need {
            program: "b",
            what_for: "",
            packages: &["gcc"],
        };
        let packages = packages_of(&[&a, &b]);
        assert_eq!(packages, ["gcc", "make"]);
        assert!(advice(&packages).contains("apt-get install -y gcc make"));
    }
}
