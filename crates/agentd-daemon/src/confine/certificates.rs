//! The certificates of private CAs that variables of the user name. Programs in the sandbox need them to reach hosts of a
//! company, or anything behind a proxy that inspects connections.

use super::AgentDirs;
use agentd_client::api::Env;
use agentd_core::environment::{CERTIFICATES, certificate_paths};
use std::fs;
use std::path::{Path, PathBuf};

/// The files and directories to be made readable, without links. One that contains the home, the working directory or the
/// state directory would expose more than certificates; one inside the state directory stays closed.
pub fn readable(dirs: &AgentDirs<'_>, closed: &Path) -> Vec<PathBuf> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let closed = real(closed);
    let mut inside: Vec<PathBuf> = dirs.home().iter().map(|home| real(home)).collect();
    inside.extend([real(dirs.cwd), closed.clone()]);
    let is_fine = |path: &PathBuf| {
        let is_around = inside.iter().any(|dir| dir.starts_with(path));
        !is_around && !path.starts_with(&closed)
    };
    let named = CERTIFICATES.iter().filter_map(|name| {
        let value = dirs.env.get(*name)?;
        Some(certificate_paths(name, value))
    });
    let paths = named.flatten().map(Path::new);
    let absolute = paths.filter(|path| path.is_absolute());
    absolute
        .flat_map(fs::canonicalize)
        .filter(is_fine)
        .collect()
}

/// The value of a variable with the real paths: a link in it may lead through a directory that the sandbox hides. `None` if it
/// is another variable, or a path does not exist.
pub fn real_value(name: &str, env: &Env) -> Option<String> {
    if !CERTIFICATES.contains(&name) {
        return None;
    }
    let paths = certificate_paths(name, env.get(name)?);
    let real = paths.into_iter().map(|path| {
        let real = fs::canonicalize(path).ok()?;
        real.to_str().map(str::to_owned)
    });
    let real: Vec<String> = real.collect::<Option<_>>()?;
    Some(real.join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Regression: tools did not get these variables, and could not read the files.
    #[test]
    fn what_variables_name_is_readable_unless_it_exposes_more() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for dir in ["home/work", "state/run", "certs", "more"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        let ca = root.join("certs/ca.pem");
        fs::write(&ca, "certificate").unwrap();
        symlink(&ca, root.join("link.pem")).unwrap();
        fs::write(root.join("state/run/ca.pem"), "").unwrap();
        let text = |below: &str| root.join(below).display().to_string();
        let env: Env = [
            ("HOME", text("home")),
            ("NODE_EXTRA_CA_CERTS", text("link.pem")),
            ("SSL_CERT_DIR", format!("{}:{}", text("more"), text("home"))),
            ("CURL_CA_BUNDLE", text("state/run/ca.pem")),
            ("GIT_SSL_CAINFO", text("missing")),
            ("REQUESTS_CA_BUNDLE", "relative.pem".to_owned()),
            ("EDITOR", text("more")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let (cwd, own, state) = (root.join("home/work"), root.join("own"), root.join("state"));
        let dirs = AgentDirs {
            cwd: &cwd,
            dir: &own,
            state: Some(&state),
            env: &env,
            default_level: None,
            socket_dir: None,
        };
        let mut found = readable(&dirs, &state);
        found.sort();
        assert_eq!(found, [ca.clone(), root.join("more")]);
        let real = real_value("NODE_EXTRA_CA_CERTS", &env);
        assert_eq!(real, Some(ca.display().to_string()));
        assert_eq!(real_value("GIT_SSL_CAINFO", &env), None);
        assert_eq!(real_value("EDITOR", &env), None);
    }
}
