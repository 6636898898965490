//! The user's services that an agent's tools may use by choice (`pass`): where their sockets and files are, and what is
//! missing.

use agentd_client::api::Env;
use agentd_core::environment::Lacking;
use agentd_core::spec::{AgentSpec, Pass};
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// What gpg needs to find keys; the private keys stay with the agent.
const PUBLIC_KEYS: &[&str] = &[
    "common.conf",
    "gpg.conf",
    "public-keys.d",
    "pubring.gpg",
    "pubring.kbx",
];

/// A service, as far as it is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Its sockets and files. A socket may not be there.
    pub paths: Vec<PathBuf>,
    /// A variable by which programs find it, if the caller's own variables do not say it.
    pub variable: Option<(&'static str, String)>,
    /// Why it is not available.
    pub missing: Option<String>,
}

impl Service {
    fn at(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            ..Self::default()
        }
    }

    /// A socket that may not be there yet: tools find it as soon as it is.
    fn of_socket(socket: PathBuf, files: impl Iterator<Item = PathBuf>) -> Self {
        let is_there = socket.is_dir() || is_socket(&socket);
        let missing = (!is_there).then(|| format!("there is no socket at {}", socket.display()));
        Self {
            missing,
            ..Self::at([socket].into_iter().chain(files).collect())
        }
    }

    fn missing(why: impl Into<String>) -> Self {
        Self {
            missing: Some(why.into()),
            ..Self::default()
        }
    }
}

/// The services that the settings name, with the variables of the caller and the user's home.
pub fn find(spec: &AgentSpec, env: &Env) -> Vec<(Pass, Service)> {
    let surroundings = Surroundings::new(env);
    let found = spec.pass.iter();
    found
        .map(|pass| (*pass, surroundings.service(*pass)))
        .collect()
}

/// Every service, for calls that the user approves to use one.
pub fn all(env: &Env) -> Vec<(Pass, Service)> {
    let surroundings = Surroundings::new(env);
    let all = Pass::ALL.into_iter();
    all.map(|pass| (pass, surroundings.service(pass))).collect()
}

/// What tools should have by the settings and lack.
pub fn lacking(spec: &AgentSpec, env: &Env) -> Lacking {
    let is_there = |name: &String| env.get(name).is_some_and(|value| !value.is_empty());
    let variables = spec.pass_env.iter().filter(|name| !is_there(name));
    let services = find(spec, env).into_iter();
    let services = services.filter(|(_, service)| service.missing.is_some());
    Lacking {
        variables: variables.cloned().collect(),
        services: services.map(|(pass, _)| pass.name().to_owned()).collect(),
    }
}

struct Surroundings<'a> {
    env: &'a Env,
    /// Without symlinks: the sandbox has the agent's own home there.
    home: Option<PathBuf>,
    /// The directory of the user's sockets.
    run: PathBuf,
}

impl<'a> Surroundings<'a> {
    fn new(env: &'a Env) -> Self {
        let user = rustix::process::getuid().as_raw();
        Self {
            home: env.get("HOME").and_then(|home| fs::canonicalize(home).ok()),
            run: PathBuf::from(format!("/run/user/{user}")),
            env,
        }
    }

    fn service(&self, pass: Pass) -> Service {
        match pass {
            Pass::SshAgent => self.ssh_agent(),
            Pass::GpgAgent => self.gpg_agent(),
            Pass::Docker => self.docker(),
            Pass::Kube => self.kube(),
            Pass::Gh => self.gh(),
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        let value = self.env.get(name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        let path = PathBuf::from(self.text(name)?);
        path.is_absolute().then_some(path)
    }

    fn in_home(&self, name: &str) -> Option<PathBuf> {
        Some(self.home.as_ref()?.join(name))
    }

    fn ssh_agent(&self) -> Service {
        let Some(socket) = self.path("SSH_AUTH_SOCK") else {
            return Service::missing("SSH_AUTH_SOCK is not set");
        };
        let hosts = [".ssh/known_hosts", ".ssh/known_hosts2"];
        let hosts = hosts.iter().filter_map(|name| self.in_home(name));
        Service::of_socket(socket, hosts.filter(|path| path.is_file()))
    }

    fn gpg_agent(&self) -> Service {
        let own = self.path("GNUPGHOME");
        let Some(home) = own.clone().or_else(|| self.in_home(".gnupg")) else {
            return Service::missing("HOME is not set");
        };
        let in_run = self.run.join("gnupg");
        // gpg uses the directory of the user's sockets only for its default home.
        let in_run = own.is_none().then_some(in_run);
        let in_run = in_run.filter(|dir| is_socket(&dir.join("S.gpg-agent")));
        let socket = match in_run {
            // The directory and not the socket: gpg requires that only its user can open the directory.
            Some(dir) => dir,
            None => home.join("S.gpg-agent"),
        };
        let keys = PUBLIC_KEYS.iter().map(|name| home.join(name));
        Service::of_socket(socket, keys.filter(|path| path.exists()))
    }

    fn docker(&self) -> Service {
        let named = self.text("DOCKER_HOST");
        let named_socket = named.and_then(|host| host.strip_prefix("unix://"));
        match (named, named_socket.map(PathBuf::from)) {
            (_, Some(socket)) => return Service::of_socket(socket, std::iter::empty()),
            // Another machine: the variable is enough.
            (Some(_), None) => return Service::default(),
            (None, None) => {}
        }
        let usual = PathBuf::from("/run/docker.sock");
        if is_socket(&usual) {
            return Service::at(vec![usual]);
        }
        let rootless = self.run.join("docker.sock");
        if is_socket(&rootless) {
            let host = format!("unix://{}", rootless.display());
            return Service {
                variable: Some(("DOCKER_HOST", host)),
                ..Service::at(vec![rootless])
            };
        }
        Service::missing(format!(
            "DOCKER_HOST is not set, and there is no socket at {}",
            usual.display()
        ))
    }

    fn kube(&self) -> Service {
        let files: Vec<PathBuf> = match self.text("KUBECONFIG") {
            Some(list) => list.split(':').map(PathBuf::from).collect(),
            None => self.in_home(".kube/config").into_iter().collect(),
        };
        let there = files.iter().filter(|path| path.is_absolute());
        let there: Vec<PathBuf> = there.filter(|path| path.is_file()).cloned().collect();
        match there.is_empty() {
            true => Service::missing("there is no kubeconfig file"),
            false => Service::at(there),
        }
    }

    fn gh(&self) -> Service {
        let dir = self.path("GH_CONFIG_DIR");
        let dir = dir.or_else(|| Some(self.path("XDG_CONFIG_HOME")?.join("gh")));
        let dir = dir.or_else(|| self.in_home(".config/gh"));
        let dir: Vec<PathBuf> = dir.into_iter().filter(|dir| dir.is_dir()).collect();
        let mut tokens = ["GH_TOKEN", "GITHUB_TOKEN"].into_iter();
        match dir.is_empty() && !tokens.any(|name| self.text(name).is_some()) {
            true => Service::missing("GH_TOKEN is not set, and gh has no settings"),
            false => Service::at(dir),
        }
    }
}

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn env(pairs: &[(&str, &Path)]) -> Env {
        let pairs = pairs.iter();
        pairs
            .map(|(name, path)| ((*name).to_owned(), path.display().to_string()))
            .collect()
    }

    fn one(pass: Pass, env: &Env) -> Service {
        let spec = AgentSpec {
            pass: vec![pass],
            ..AgentSpec::default()
        };
        find(&spec, env).remove(0).1
    }

    #[test]
    fn an_agent_is_its_socket_and_the_known_hosts() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        fs::create_dir(home.join(".ssh")).unwrap();
        fs::write(home.join(".ssh/known_hosts"), "").unwrap();
        fs::write(home.join(".ssh/id_ed25519"), "").unwrap();
        let socket = home.join("agent");
        let mut env = env(&[("HOME", &home)]);
        let missing = one(Pass::SshAgent, &env).missing.unwrap();
        assert!(missing.contains("SSH_AUTH_SOCK"), "{missing}");
        env.insert("SSH_AUTH_SOCK".to_owned(), socket.display().to_string());
        assert!(one(Pass::SshAgent, &env).missing.is_some());
        let _listener = UnixListener::bind(&socket).unwrap();
        let found = one(Pass::SshAgent, &env);
        assert_eq!(found.paths, [socket, home.join(".ssh/known_hosts")]);
        assert_eq!(found.missing, None);
    }

    #[test]
    fn the_keys_of_gpg_are_public_ones() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        fs::create_dir(home.join("private-keys-v1.d")).unwrap();
        fs::write(home.join("pubring.kbx"), "").unwrap();
        let env = env(&[("HOME", Path::new("/")), ("GNUPGHOME", &home)]);
        assert!(one(Pass::GpgAgent, &env).missing.is_some());
        let _listener = UnixListener::bind(home.join("S.gpg-agent")).unwrap();
        let found = one(Pass::GpgAgent, &env);
        assert_eq!(
            found.paths,
            [home.join("S.gpg-agent"), home.join("pubring.kbx")]
        );
    }

    #[test]
    fn docker_is_where_its_variable_says() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("docker.sock");
        let unix = format!("unix://{}", socket.display());
        let mut env = Env::new();
        env.insert("DOCKER_HOST".to_owned(), unix);
        assert!(one(Pass::Docker, &env).missing.is_some());
        let _listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(one(Pass::Docker, &env).paths, [socket]);
        env.insert("DOCKER_HOST".to_owned(), "tcp://10.0.0.1:2376".to_owned());
        assert_eq!(one(Pass::Docker, &env), Service::default());
    }

    #[test]
    fn files_are_found_by_their_variables_and_at_their_usual_paths() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let mut env = env(&[("HOME", &home)]);
        for pass in [Pass::Kube, Pass::Gh] {
            assert!(one(pass, &env).missing.is_some());
        }
        for name in [".kube", ".config/gh"] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        fs::write(home.join(".kube/config"), "").unwrap();
        assert_eq!(one(Pass::Kube, &env).paths, [home.join(".kube/config")]);
        assert_eq!(one(Pass::Gh, &env).paths, [home.join(".config/gh")]);
        let other = home.join("other");
        fs::write(&other, "").unwrap();
        let list = format!("{}:/missing", other.display());
        env.insert("KUBECONFIG".to_owned(), list);
        assert_eq!(one(Pass::Kube, &env).paths, [other]);
        env.insert("HOME".to_owned(), "/nowhere".to_owned());
        env.insert("GITHUB_TOKEN".to_owned(), "token".to_owned());
        assert_eq!(one(Pass::Gh, &env), Service::default());
    }

    #[test]
    fn what_is_lacking_has_its_name() {
        let spec = AgentSpec {
            pass_env: ["A", "B", "C"].map(str::to_owned).into(),
            pass: vec![Pass::SshAgent],
            ..AgentSpec::default()
        };
        let mut env = Env::new();
        env.insert("A".to_owned(), "1".to_owned());
        env.insert("B".to_owned(), String::new());
        let lacking = lacking(&spec, &env);
        assert_eq!(lacking.variables, ["B", "C"].map(str::to_owned).into());
        assert_eq!(lacking.services, ["ssh-agent".to_owned()].into());
    }
}
