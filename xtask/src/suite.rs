//! The suites of `cargo xtask test`: what each runs, and its time budget.

use std::num::NonZero;
use std::path::Path;
use std::process::Command;

use crate::closing::Runner;
use crate::tree;

/// The names, in the order the suites run.
pub const NAMES: [&str; 8] = [
    "format", "clippy", "audit", "tests", "lab", "siege", "doctests", "docs",
];

pub struct Suite {
    pub name: &'static str,
    /// A suite that takes longer is stopped and fails.
    pub budget_minutes: u32,
    /// The arguments of `cargo`.
    pub args: Vec<&'static str>,
    pub env: Vec<(&'static str, String)>,
    /// The runner whose closing line ends its output.
    pub runner: Option<Runner>,
}

/// What the choice of suites depends on.
pub struct Setting {
    /// Also run the parts of tests that take long.
    pub long: bool,
    /// `cargo nextest` is installed.
    pub nextest: bool,
}

/// All suites. Cargo always gets `--workspace`: with `-p` it would resolve features differently, and build
/// everything again.
pub fn all(setting: &Setting) -> Vec<Suite> {
    let plain = |name, budget_minutes, args: &[&'static str]| Suite {
        name,
        budget_minutes,
        args: args.to_vec(),
        env: Vec::new(),
        runner: None,
    };
    vec![
        plain("format", 1, &["fmt", "--all", "--check"]),
        plain(
            "clippy",
            5,
            &[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ],
        ),
        plain("audit", 1, &["xtask", "audit", "--if-installed"]),
        tests(setting),
        // After the tests, which have built what it runs.
        plain("lab", 8, &["xtask", "lab", "--quick", "--injected-bugs"]),
        plain("siege", 4, &["xtask", "lab", "--siege"]),
        Suite {
            runner: Some(Runner::CargoTest),
            ..plain("doctests", 1, &["test", "--workspace", "--doc"])
        },
        Suite {
            env: vec![("RUSTDOCFLAGS", "-D warnings".to_owned())],
            ..plain("docs", 3, &["doc", "--workspace", "--no-deps"])
        },
    ]
}

/// The suites of `cargo xtask check`: what can be checked within a minute after a change.
pub fn quick(nextest: bool) -> Vec<Suite> {
    let setting = Setting {
        long: false,
        nextest,
    };
    let mut suites = all(&setting);
    suites.retain(|suite| ["format", "clippy"].contains(&suite.name));
    let mut unit = tests(&setting);
    unit.args.retain(|arg| *arg != "--tests");
    // The unit tests, and the rules of the code base.
    unit.args.extend(["--lib", "--bins", "--test", "tidy"]);
    suites.push(Suite {
        name: "unit",
        budget_minutes: 7,
        ..unit
    });
    suites
}

fn tests(setting: &Setting) -> Suite {
    let (mut args, runner) = if setting.nextest {
        (vec!["nextest", "run", "--workspace"], Runner::Nextest)
    } else {
        // `--tests` is every target with tests; the doctests have their own suite.
        (
            vec!["test", "--workspace", "--tests", "--no-fail-fast"],
            Runner::CargoTest,
        )
    };
    // A truncated log keeps its end: the message of a failed test, not a long backtrace.
    let mut env = vec![("RUST_BACKTRACE", "0".to_owned())];
    if setting.nextest {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        env.push(("NEXTEST_TEST_THREADS", threads(cores).to_string()));
    }
    if setting.long {
        env.push(("AGENTD_TEST_LONG", "1".to_owned()));
        if setting.nextest {
            args.extend(["--profile", "long"]);
        }
    }
    Suite {
        name: "tests",
        budget_minutes: if setting.long { 90 } else { 26 },
        args,
        env,
        runner: Some(runner),
    }
}

/// How many tests run at once. They wait for processes and disks longer than they compute.
const fn threads(cores: usize) -> usize {
    cores + cores.div_ceil(2)
}

impl Suite {
    pub fn command(&self, root: &Path) -> Command {
        let mut command = tree::cargo(root);
        command.args(&self.args);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The command as a user would type it.
    pub fn shown(&self) -> String {
        let mut words: Vec<String> = self
            .env
            .iter()
            .map(|(name, value)| format!("{name}='{value}'"))
            .collect();
        words.push("cargo".into());
        words.extend(self.args.iter().map(ToString::to_string));
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Setting = Setting {
        long: false,
        nextest: true,
    };

    #[test]
    fn the_names_are_those_of_the_suites() {
        let names: Vec<&str> = all(&SHORT).iter().map(|suite| suite.name).collect();
        assert_eq!(names, NAMES);
    }

    #[test]
    fn a_check_runs_no_end_to_end_test() {
        for nextest in [true, false] {
            let suites = quick(nextest);
            let names: Vec<&str> = suites.iter().map(|suite| suite.name).collect();
            assert_eq!(names, ["format", "clippy", "unit"]);
            assert!(!suites[2].args.contains(&"--tests"));
            assert!(
                suites[2]
                    .args
                    .ends_with(&["--lib", "--bins", "--test", "tidy"])
            );
        }
    }

    #[test]
    fn a_whole_run_stays_under_fifty_minutes() {
        let sum: u32 = all(&SHORT).iter().map(|suite| suite.budget_minutes).sum();
        assert!(sum < 50, "the budgets add up to {sum} minutes");
    }

    #[test]
    fn a_long_run_tells_the_tests_so() {
        let long = Setting {
            long: true,
            nextest: true,
        };
        let shown = tests(&long).shown();
        assert!(shown.starts_with("RUST_BACKTRACE='0' NEXTEST_TEST_THREADS='"));
        let end = "AGENTD_TEST_LONG='1' cargo nextest run --workspace --profile long";
        assert!(shown.ends_with(end), "{shown}");
    }

    #[test]
    fn more_tests_run_at_once_than_there_are_cores() {
        assert_eq!([1, 2, 3, 4].map(threads), [2, 3, 5, 6]);
    }

    #[test]
    fn without_nextest_cargo_runs_the_tests() {
        let suite = tests(&Setting {
            long: false,
            nextest: false,
        });
        assert!(matches!(suite.runner, Some(Runner::CargoTest)));
        assert!(
            suite
                .shown()
                .starts_with("RUST_BACKTRACE='0' cargo test --workspace")
        );
    }
}
