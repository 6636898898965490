//! The user that the daemon runs as.

use agentd_files::own;
use std::path::{Path, PathBuf};

/// An entry of the list of users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub home: PathBuf,
}

/// The account of a user id.
pub fn of_uid(uid: u32) -> Option<Account> {
    find(&passwd(), |entry| entry.uid == uid)
}

pub fn of_name(name: &str) -> Option<Account> {
    find(&passwd(), |entry| entry.name == name)
}

/// The user that runs this command.
pub fn own() -> Option<Account> {
    of_uid(rustix::process::getuid().as_raw())
}

/// Whether the processes of a user continue after the last session has ended, and start at boot.
pub fn lingers(account: &Account) -> bool {
    Path::new("/var/lib/systemd/linger")
        .join(&account.name)
        .exists()
}

struct Entry<'a> {
    name: &'a str,
    uid: u32,
    home: &'a str,
}

fn passwd() -> String {
    own::read_to_string("/etc/passwd").unwrap_or_default()
}

fn find(passwd: &str, is_it: impl Fn(&Entry<'_>) -> bool) -> Option<Account> {
    let mut entries = passwd.lines().filter_map(entry);
    let found = entries.find(|entry| is_it(entry))?;
    Some(Account {
        name: found.name.to_owned(),
        home: PathBuf::from(found.home),
    })
}

fn entry(line: &str) -> Option<Entry<'_>> {
    let mut fields = line.split(':');
    let (name, _, uid) = (fields.next()?, fields.next()?, fields.next()?);
    let home = fields.nth(2)?;
    Some(Entry {
        name,
        uid: uid.parse().ok()?,
        home,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_name_and_by_number() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\nbroken\nann:x:1000:1000:Ann:/home/ann:/bin/sh\n";
        let ann = Account {
            name: "ann".to_owned(),
            home: "/home/ann".into(),
        };
        assert_eq!(find(passwd, |entry| entry.uid == 1000), Some(ann.clone()));
        assert_eq!(find(passwd, |entry| entry.name == "ann"), Some(ann));
        assert_eq!(find(passwd, |entry| entry.uid == 7), None);
    }
}
