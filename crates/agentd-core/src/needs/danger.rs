//! The needs that the user should look at twice.

use super::{At, Need};
use std::path::Path;

/// Why a need is marked in the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Danger {
    /// Keys, tokens, cookies or passwords.
    Credentials,
    /// Programs outside the sandbox run or read it: shell profiles, autostart, programs, git's configuration.
    Startup,
    /// A program behind a socket acts with the user's rights.
    Socket,
    /// The whole home, or a directory around it.
    Home,
    /// A directory of the system.
    System,
    Everything,
}

impl Danger {
    pub const fn words(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::Startup => "your shell, desktop or git runs what is there",
            Self::Socket => "a socket: the program behind it has all your rights",
            Self::Home => "the whole home, and what starts with your session",
            Self::System => "a directory of the system",
            Self::Everything => "no sandbox",
        }
    }
}

/// In the home. Browsers, password stores and mail keep secrets in them.
const CREDENTIALS: &[&str] = &[
    ".aws",
    ".azure",
    ".bash_history",
    ".cache/huggingface",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/google-chrome",
    ".config/microsoft-edge",
    ".config/op",
    ".config/rclone",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/fish/fish_history",
    ".local/share/keyrings",
    ".mozilla",
    ".my.cnf",
    ".mysql_history",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".psql_history",
    ".pypirc",
    ".python_history",
    ".ssh",
    ".terraform.d",
    ".thunderbird",
    ".vault-token",
    ".zsh_history",
    "snap/chromium",
    "snap/firefox",
];

/// In the home. Only writing them is dangerous.
const STARTUP: &[&str] = &[
    ".Xprofile",
    ".agents",
    ".asdf",
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".bun/bin",
    ".cargo/bin",
    ".cargo/config",
    ".cargo/config.toml",
    ".claude",
    ".codex",
    ".config/Code",
    ".config/autostart",
    ".config/direnv",
    ".config/emacs",
    ".config/environment.d",
    ".config/fish",
    ".config/git",
    ".config/hypr",
    ".config/i3",
    ".config/kitty",
    ".config/mise",
    ".config/nushell",
    ".config/nvim",
    ".config/opencode",
    ".config/sway",
    ".config/systemd",
    ".config/tmux",
    ".config/zed",
    ".cursor",
    ".deno/bin",
    ".direnvrc",
    ".emacs",
    ".emacs.d",
    ".gdbinit",
    ".gemini",
    ".gitconfig",
    ".gradle",
    ".inputrc",
    ".ipython",
    ".jupyter",
    ".lldbinit",
    ".local/bin",
    ".local/lib",
    ".local/share/applications",
    ".local/share/bash-completion",
    ".local/share/nvim",
    ".local/share/pipx",
    ".local/share/systemd",
    ".m2",
    ".nix-profile",
    ".npm-global",
    ".nvm",
    ".oh-my-zsh",
    ".profile",
    ".pyenv",
    ".pythonrc",
    ".rbenv",
    ".rustup",
    ".screenrc",
    ".sdkman",
    ".ssh",
    ".tmux.conf",
    ".vim",
    ".vimrc",
    ".volta",
    ".vscode",
    ".wezterm.lua",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "bin",
    "go/bin",
];

/// Of the system: password hashes, keys, and the data of its services. Reading them is dangerous as well.
const SYSTEM_CREDENTIALS: &[&str] = &[
    "/etc/NetworkManager/system-connections",
    "/etc/gshadow",
    "/etc/shadow",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/wireguard",
    "/root",
    "/var/backups",
    "/var/lib",
    "/var/mail",
    "/var/spool",
];

/// Sockets of other programs.
const SOCKETS: &[&str] = &["/run", "/var/run"];

impl Need {
    /// Why the user should look at it twice; none if there is no special reason.
    pub fn danger(&self, at: At, home: Option<&Path>) -> Option<Danger> {
        if at == At::Socket {
            return Some(Danger::Socket);
        }
        match self {
            Self::Everything => Some(Danger::Everything),
            Self::GitConfig => Some(Danger::Startup),
            Self::Service(_) => Some(Danger::Credentials),
            Self::Host(_) => None,
            Self::Write(path) => of_path(path, home),
            Self::Read(path) => of_path(path, home).filter(|danger| {
                // Reading the system's own programs and a profile gives nothing away.
                !matches!(danger, Danger::Startup | Danger::System)
            }),
        }
    }
}

fn of_path(path: &Path, home: Option<&Path>) -> Option<Danger> {
    let in_home = |names: &[&str]| {
        let Some(home) = home else { return false };
        let mut names = names.iter().map(|name| home.join(name));
        // What contains a marked directory below the home is marked as well.
        names.any(|name| path.starts_with(&name) || (path != home && name.starts_with(path)))
    };
    if home.is_some_and(|home| home.starts_with(path)) {
        return Some(Danger::Home);
    }
    let is_socket = path
        .extension()
        .is_some_and(|kind| kind == "sock" || kind == "socket");
    if is_socket || SOCKETS.iter().any(|dir| path.starts_with(dir)) {
        return Some(Danger::Socket);
    }
    if in_home(CREDENTIALS) {
        return Some(Danger::Credentials);
    }
    let is_in_home = home.is_some_and(|home| path.starts_with(home));
    let mut of_system = SYSTEM_CREDENTIALS.iter().map(Path::new);
    if !is_in_home && of_system.any(|dir| path.starts_with(dir) || dir.starts_with(path)) {
        return Some(Danger::Credentials);
    }
    if in_home(STARTUP) {
        return Some(Danger::Startup);
    }
    (!is_in_home && is_of_system(path)).then_some(Danger::System)
}

/// Directories that the system itself consists of.
fn is_of_system(path: &Path) -> bool {
    const DIRS: &[&str] = &[
        "/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/sbin", "/sys",
        "/usr", "/var",
    ];
    DIRS.iter().any(|dir| path.starts_with(dir))
}
