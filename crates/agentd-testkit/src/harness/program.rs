//! The program, with a completely specified environment.

use agentd_client::Client;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SANDBOX: &str = "AGENTD_SANDBOX";

/// Which program is run, where, and with which variables.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    home: PathBuf,
    work: PathBuf,
    /// The whole environment: nothing is inherited.
    env: BTreeMap<OsString, OsString>,
}

impl Program {
    /// `home` is the state directory and also the user's home; tools run without a sandbox.
    pub fn new(
        path: impl Into<PathBuf>,
        home: impl Into<PathBuf>,
        work: impl Into<PathBuf>,
    ) -> Self {
        let home = home.into();
        let program = Self {
            path: path.into(),
            work: work.into(),
            env: BTreeMap::new(),
            home: home.clone(),
        };
        program
            .env("PATH", own_path())
            .env("HOME", &home)
            .env("AGENTD_HOME", home)
            .env(SANDBOX, "full-access")
    }

    /// The path of the `agentd` that was built together with the program that is running.
    pub fn beside_this_one() -> io::Result<PathBuf> {
        Ok(std::env::current_exe()?.with_file_name("agentd"))
    }

    /// With another variable, or another value for it.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let (name, value) = (name.as_ref().to_owned(), value.as_ref().to_owned());
        self.env.insert(name, value);
        self
    }

    pub fn envs(
        self,
        vars: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> Self {
        let vars = vars.into_iter();
        vars.fold(self, |program, (name, value)| program.env(name, value))
    }

    pub fn env_remove(mut self, name: &str) -> Self {
        self.env.remove(OsStr::new(name));
        self
    }

    /// Tools run in the sandbox of their agent.
    pub fn sandboxed(self) -> Self {
        self.env_remove(SANDBOX)
    }

    /// Another copy of the program.
    pub fn with_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = path.into();
        self
    }

    /// With another working directory.
    pub fn with_work(mut self, work: impl Into<PathBuf>) -> Self {
        self.work = work.into();
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The state directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The working directory.
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// A run of the program, as a user starts it.
    pub fn command(&self) -> Command {
        self.command_of(&self.path)
    }

    /// Another program in the same environment.
    pub fn command_of(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = clean_command(program);
        command.env_clear().envs(&self.env);
        command.current_dir(&self.work);
        command
    }

    /// Makes a command run a daemon. Its output is appended to the log.
    pub fn daemon_by(&self, mut command: Command) -> io::Result<Command> {
        let mut options = File::options();
        let log = options.create(true).append(true).open(self.log_file())?;
        command.args(["daemon", "run"]);
        command.stdout(log.try_clone()?).stderr(log);
        Ok(command)
    }

    /// Beside the state directory, which has the log of daemons that a client starts.
    fn log_file(&self) -> PathBuf {
        self.home.with_file_name("daemon.log")
    }

    /// What the daemons of this harness have logged so far.
    pub fn log(&self) -> String {
        let log = fs::read(self.log_file()).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// A client of the daemon in this state directory.
    pub fn client(&self) -> Client {
        Client::new(self.home.join("run/api.sock"))
    }

    /// The variables that a caller sends with its requests: those of its shell, and [`model_env`].
    pub fn caller_env(&self, key: &str, base_url: &str) -> BTreeMap<String, String> {
        let shell = ["PATH", "HOME"].into_iter().map(|name| {
            let value = self.env.get(OsStr::new(name)).cloned().unwrap_or_default();
            (name.to_owned(), value.to_string_lossy().into_owned())
        });
        let model = model_env(key, base_url).map(|(name, value)| (name.to_owned(), value));
        shell.chain(model).collect()
    }
}

/// A program with no variables but `PATH`, and no input.
pub fn clean_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", own_path());
    command.stdin(Stdio::null());
    command
}

/// The key for a fake model of the provider `anthropic`, and its address.
pub fn model_env(key: &str, base_url: &str) -> [(&'static str, String); 2] {
    [
        ("ANTHROPIC_API_KEY", key.to_owned()),
        ("ANTHROPIC_BASE_URL", base_url.to_owned()),
    ]
}

fn own_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(command: &Command) -> BTreeMap<String, String> {
        let text = |text: &OsStr| text.to_str().unwrap().to_owned();
        let vars = command.get_envs();
        vars.map(|(name, value)| (text(name), text(value.unwrap())))
            .collect()
    }

    #[test]
    fn the_environment_is_completely_specified() {
        let program = Program::new("/bin/agentd", "/t/home", "/t/work")
            .env("HOME", "/t")
            .envs(model_env("key", "http://127.0.0.1:1"));
        let command = program.command();
        assert_eq!(command.get_program(), "/bin/agentd");
        assert_eq!(command.get_current_dir(), Some(Path::new("/t/work")));
        let expected = [
            ("AGENTD_HOME", "/t/home"),
            ("AGENTD_SANDBOX", "full-access"),
            ("ANTHROPIC_API_KEY", "key"),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1"),
            ("HOME", "/t"),
            ("PATH", &std::env::var("PATH").unwrap()),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(vars(&command), BTreeMap::from(expected));
        let mut env = program.sandboxed().command_of("env");
        let output = env.current_dir("/").output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert_eq!(shown.lines().count(), 5, "{shown}");
    }

    #[test]
    fn a_caller_has_the_variables_of_its_shell_and_of_the_model() {
        let program = Program::new("/bin/agentd", "/t/home", "/t/work").env("PATH", "/bin");
        let env = program.caller_env("key", "http://127.0.0.1:1");
        let expected = [
            ("ANTHROPIC_API_KEY", "key"),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1"),
            ("HOME", "/t/home"),
            ("PATH", "/bin"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(env, BTreeMap::from(expected));
    }
}
