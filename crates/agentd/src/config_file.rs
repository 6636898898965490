//! Changes to `config.toml` that keep its comments, its order and all other keys.

use crate::error::{Error, Exit};
use crate::home;
use agentd_core::catalog::Catalog;
use agentd_daemon::users_own;
use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

pub struct ConfigFile {
    /// The file itself, if the configuration is a symbolic link.
    path: PathBuf,
    document: DocumentMut,
}

impl ConfigFile {
    /// The user's file; an empty one if there is none.
    pub fn open() -> Result<Self, Error> {
        Self::at(&home::config()?)
    }

    fn at(path: &Path) -> Result<Self, Error> {
        let cannot =
            |error: &io::Error| Error::of_file(format!("{} cannot be read", path.display()), error);
        let text = match users_own::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(cannot(&error)),
        };
        let document = text.parse::<DocumentMut>().map_err(|error| {
            Error::new(Exit::Usage, "the configuration cannot be used").because(error)
        })?;
        Ok(Self {
            // A new file has no canonical path yet.
            path: path.canonicalize().unwrap_or_else(|_| path.to_owned()),
            document,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text of a key in `[agents]`.
    pub fn agents(&self, key: &str) -> Option<&str> {
        let agents = self.document.get("agents")?.as_table_like()?;
        agents.get(key)?.as_str()
    }

    /// Sets a key in `[agents]`. A comment beside its old value stays.
    pub fn set_agents(&mut self, key: &str, text: &str) {
        let new = || Item::Table(Table::new());
        let agents = self.document.entry("agents").or_insert_with(new);
        // The catalog has read this file, so that the section is a table.
        if let Some(agents) = agents.as_table_like_mut() {
            set(agents, key, text);
        }
    }

    /// Replaces the file, unless the new text would be refused.
    pub fn save(&self) -> Result<(), Error> {
        let text = self.document.to_string();
        let name = self.path.display().to_string();
        let what = format!("{name} cannot be written");
        let checked = Catalog::built_in().extend(&text, &name);
        checked.map_err(|error| Error::new(Exit::Refused, what.as_str()).because(error))?;
        self.write(&text)
            .map_err(|error| Error::new(Exit::Unavailable, what).because(error))
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let dir = self.path.parent().unwrap_or_else(|| Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let mut file = tempfile::Builder::new()
            .prefix("config-")
            .tempfile_in(dir)?;
        file.write_all(text.as_bytes())?;
        if let Ok(about) = fs::metadata(&self.path) {
            file.as_file().set_permissions(about.permissions())?;
        }
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }
}

/// Comments belong to a key or to its value, so that only the text of the value is replaced.
fn set(section: &mut dyn TableLike, key: &str, text: &str) {
    let mut value = Value::from(text);
    match section.get_mut(key) {
        Some(old) => {
            if let Some(old) = old.as_value() {
                *value.decor_mut() = old.decor().clone();
            }
            *old = Item::Value(value);
        }
        None => {
            section.insert(key, Item::Value(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn changed(before: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs::write(&path, before).unwrap();
        let mut file = ConfigFile::at(&path).unwrap();
        file.set_agents("provider", "openai");
        file.set_agents("approval", "never");
        file.save().unwrap();
        fs::read_to_string(&path).unwrap()
    }

    #[test]
    fn comments_order_and_other_keys_stay() {
        let before = "# mine\n[agents] # of all\n# how strict\napproval = \"always\" # careful\n\n[daemon]\nlog = \"debug\"\n";
        let after = "# mine\n[agents] # of all\n# how strict\napproval = \"never\" # careful\nprovider = \"openai\"\n\n\
                     [daemon]\nlog = \"debug\"\n";
        assert_eq!(changed(before), after);
        assert_eq!(
            changed("agents = { approval = \"always\" }\n"),
            "agents = { approval = \"never\" , provider = \"openai\" }\n"
        );
        assert_eq!(
            changed("[daemon]\nlog = \"debug\"\n"),
            "[daemon]\nlog = \"debug\"\n\n[agents]\nprovider = \"openai\"\napproval = \"never\"\n"
        );
    }

    #[test]
    fn a_link_and_the_permissions_of_its_file_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real.toml"), dir.path().join("config.toml"));
        fs::write(&real, "").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut file = ConfigFile::at(&link).unwrap();
        file.set_agents("provider", "demo");
        file.save().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::read_to_string(&real).unwrap().contains("demo"));
        let mode = fs::metadata(&real).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn what_the_program_would_refuse_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("below/config.toml");
        let mut file = ConfigFile::at(&path).unwrap();
        file.set_agents("provider", "unheard-of");
        assert_eq!(file.save().unwrap_err().exit(), Exit::Refused);
        assert!(!path.exists());
        file.set_agents("provider", "demo");
        file.save().unwrap();
        assert!(path.exists());
    }
}
