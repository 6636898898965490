//! The identity of a home. A copy of a home contains the same agents with the same open turns and running commands: a
//! daemon that ran them would do everything a second time. So a home has an identity, in `home.json`, with the location
//! where it was created. In another location it is a suspected copy.

use crate::clock;
use crate::durable_file;
use crate::layout::Layout;
use agentd_core::id::BootId;
use agentd_core::time::Timestamp;
use agentd_files::own;
use rustix::fs::stat;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The file `home.json`. It is written once, and again only by `agentd adopt-copy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeIdentity {
    pub id: Uuid,
    /// The inode of the directory: a copy is another directory.
    inode: u64,
    /// None if the machine has no id; then it is not compared.
    machine: Option<String>,
    /// The home that this one is an adopted copy of. The outcome of calls that were open there is unknown here: see
    /// [`boot_of`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_from: Option<Uuid>,
    /// When it was restored or adopted. What came with it counts as used then: see `lifecycle/prune`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted_at: Option<Timestamp>,
}

impl HomeIdentity {
    /// The id of a home that is an adopted copy.
    pub fn of_copy(&self) -> Option<Uuid> {
        self.copied_from.map(|_| self.id)
    }
}

/// The file `run/device.json`. Device numbers can change with each boot, so a number is compared only during the boot
/// in which it was recorded. If the file is lost, the device is not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SeenDevice {
    boot: String,
    device: u64,
}

/// The location of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Location {
    inode: u64,
    device: u64,
    machine: Option<String>,
    boot: String,
}

/// Why a home is suspected to be a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suspicion {
    OtherDirectory {
        known: u64,
        found: u64,
    },
    OtherMachine,
    OtherDevice,
    /// Its `home.json` is damaged.
    Unreadable,
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherDirectory { known, found } => write!(
                f,
                "it was created in a directory with inode {known}, and now has inode {found}"
            ),
            Self::OtherMachine => write!(f, "it was created on another machine"),
            Self::OtherDevice => write!(f, "it was created on another file system"),
            Self::Unreadable => write!(f, "its home.json cannot be read"),
        }
    }
}

impl Location {
    fn of(home: &Path) -> io::Result<Self> {
        let stat = stat(home)?;
        Ok(Self {
            inode: stat.st_ino,
            device: stat.st_dev,
            machine: agentd_process::machine_id(),
            boot: agentd_process::boot_id().map_err(io::Error::other)?,
        })
    }
}

fn suspicion(known: &HomeIdentity, seen: Option<&SeenDevice>, now: &Location) -> Option<Suspicion> {
    if known.inode != now.inode {
        return Some(Suspicion::OtherDirectory {
            known: known.inode,
            found: now.inode,
        });
    }
    if let (Some(known), Some(now)) = (&known.machine, &now.machine)
        && known != now
    {
        return Some(Suspicion::OtherMachine);
    }
    let is_elsewhere = |seen: &&SeenDevice| seen.boot == now.boot && seen.device != now.device;
    seen.filter(is_elsewhere).map(|_| Suspicion::OtherDevice)
}

/// The identity of the home, and whether it is a suspected copy. A home without an identity gets one. Needs no sync: an
/// identity that is lost in a power cut is created again, and nothing else refers to it.
pub fn look(layout: &Layout) -> io::Result<(HomeIdentity, Option<Suspicion>)> {
    let now = Location::of(layout.home())?;
    let seen: Option<SeenDevice> = match read(&device_file(layout))? {
        Read::There(seen) => Some(seen),
        Read::Missing | Read::Damaged => None,
    };
    let identity = match read::<HomeIdentity>(&identity_file(layout))? {
        Read::There(known) => known,
        Read::Missing => {
            let made = new_identity(&now, None);
            write(&identity_file(layout), &made)?;
            made
        }
        Read::Damaged => return Ok((new_identity(&now, None), Some(Suspicion::Unreadable))),
    };
    let suspicion = suspicion(&identity, seen.as_ref(), &now);
    let here = SeenDevice {
        boot: now.boot,
        device: now.device,
    };
    if suspicion.is_none() && seen.as_ref() != Some(&here) {
        write(&device_file(layout), &here)?;
    }
    Ok((identity, suspicion))
}

/// Makes a suspected copy an independent home. No daemon may have it open meanwhile.
pub fn adopt(layout: &Layout) -> io::Result<HomeIdentity> {
    let before = match read::<HomeIdentity>(&identity_file(layout))? {
        Read::There(known) => known.id,
        Read::Missing | Read::Damaged => clock::new_id(),
    };
    adopt_copy_of(layout, layout.home(), before)
}

/// Gives a home an identity of its own. Its content comes from the home `before`. It is that of the directory `at`: the home
/// itself, or the directory that its content will be moved to.
pub fn adopt_copy_of(layout: &Layout, at: &Path, before: Uuid) -> io::Result<HomeIdentity> {
    let now = Location::of(at)?;
    let adopted = new_identity(&now, Some(before));
    let here = SeenDevice {
        boot: now.boot,
        device: now.device,
    };
    // The daemon that wrote it was that of the original.
    durable_file::remove(&layout.running_mark())?;
    write(&device_file(layout), &here)?;
    write(&identity_file(layout), &adopted)?;
    // Synced before anything runs here: after a power cut the copy must not have the original's identity again.
    File::open(identity_file(layout))?.sync_all()?;
    File::open(layout.home())?.sync_all()?;
    Ok(adopted)
}

/// The boot id that this home records with calls. An adopted copy derives a different one than its original, so calls
/// that the original started count as started in another boot, and their outcome as unknown.
pub fn boot_of(identity: &HomeIdentity) -> io::Result<BootId> {
    let boot = agentd_process::boot_id().map_err(io::Error::other)?;
    let boot: BootId = boot.trim().parse().map_err(io::Error::other)?;
    if identity.copied_from.is_none() {
        return Ok(boot);
    }
    let mut bytes = *boot.as_bytes();
    for (byte, own) in bytes.iter_mut().zip(identity.id.as_bytes()) {
        *byte ^= own;
    }
    Ok(BootId::from_bytes(bytes))
}

fn new_identity(now: &Location, copied_from: Option<Uuid>) -> HomeIdentity {
    HomeIdentity {
        id: clock::new_id(),
        inode: now.inode,
        machine: now.machine.clone(),
        copied_from,
        adopted_at: copied_from.map(|_| clock::now()),
    }
}

fn identity_file(layout: &Layout) -> PathBuf {
    layout.home().join("home.json")
}

fn device_file(layout: &Layout) -> PathBuf {
    layout.run().join("device.json")
}

enum Read<T> {
    There(T),
    /// There is no file, or it is empty or contains only zeros: a power cut happened before its content was on disk.
    Missing,
    Damaged,
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Read<T>> {
    let text = match own::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Read::Missing),
        Err(error) => return Err(error),
    };
    if text.iter().all(|byte| *byte == 0) {
        return Ok(Read::Missing);
    }
    Ok(serde_json::from_slice(&text).map_or(Read::Damaged, Read::There))
}

/// Replaces a file atomically: a reader sees all of the new content or the old content.
fn write<T: Serialize>(path: &Path, what: &T) -> io::Result<()> {
    let unready = path.with_extension("tmp");
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unready)?;
    file.write_all(&serde_json::to_vec(what)?)?;
    fs::rename(unready, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location() -> Location {
        Location {
            inode: 12,
            device: 34,
            machine: Some("m".to_owned()),
            boot: "b".to_owned(),
        }
    }

    fn seen() -> SeenDevice {
        SeenDevice {
            boot: "b".to_owned(),
            device: 34,
        }
    }

    #[test]
    fn another_directory_or_machine_is_a_copy() {
        let known = new_identity(&location(), None);
        assert_eq!(suspicion(&known, Some(&seen()), &location()), None);
        let elsewhere = Location {
            inode: 13,
            ..location()
        };
        let other = Suspicion::OtherDirectory {
            known: 12,
            found: 13,
        };
        assert_eq!(suspicion(&known, None, &elsewhere), Some(other));
        let machine = Some("n".to_owned());
        let elsewhere = Location {
            machine,
            ..location()
        };
        let other = Suspicion::OtherMachine;
        assert_eq!(suspicion(&known, None, &elsewhere), Some(other));
        let unnamed = Location {
            machine: None,
            ..location()
        };
        assert_eq!(suspicion(&known, None, &unnamed), None);
    }

    #[test]
    fn the_device_counts_under_the_same_boot_only() {
        let known = new_identity(&location(), None);
        let moved = Location {
            device: 35,
            ..location()
        };
        let other = Some(Suspicion::OtherDevice);
        assert_eq!(suspicion(&known, Some(&seen()), &moved), other);
        let rebooted = Location {
            boot: "c".to_owned(),
            ..moved.clone()
        };
        assert_eq!(suspicion(&known, Some(&seen()), &rebooted), None);
        assert_eq!(suspicion(&known, None, &moved), None);
    }

    #[test]
    fn an_adopted_copy_has_its_own_name_for_the_boot() {
        let original = new_identity(&location(), None);
        let copy = new_identity(&location(), Some(original.id));
        let real: BootId = agentd_process::boot_id().unwrap().parse().unwrap();
        assert_eq!(boot_of(&original).unwrap(), real);
        assert_ne!(boot_of(&copy).unwrap(), real);
        assert_eq!(boot_of(&copy).unwrap(), boot_of(&copy).unwrap());
    }

    #[test]
    fn a_home_that_is_copied_is_a_copy_until_it_is_adopted() {
        let root = tempfile::tempdir().unwrap();
        let homes = ["one", "two"].map(|name| Layout::new(root.path().join(name)));
        homes.iter().for_each(|layout| layout.make().unwrap());
        let (original, none) = look(&homes[0]).unwrap();
        assert_eq!(none, None);
        assert_eq!(look(&homes[0]).unwrap(), (original.clone(), None));
        fs::copy(identity_file(&homes[0]), identity_file(&homes[1])).unwrap();
        let (same, why) = look(&homes[1]).unwrap();
        assert_eq!(same, original);
        assert!(matches!(why, Some(Suspicion::OtherDirectory { .. })));
        let adopted = adopt(&homes[1]).unwrap();
        assert_eq!(adopted.copied_from, Some(original.id));
        assert!(adopted.adopted_at.is_some() && original.adopted_at.is_none());
        assert_eq!(look(&homes[1]).unwrap(), (adopted, None));
        assert_eq!(look(&homes[0]).unwrap(), (original, None));
    }

    #[test]
    fn a_damaged_identity_is_told_from_one_that_a_power_cut_took() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::new(root.path());
        layout.make().unwrap();
        fs::write(identity_file(&layout), "").unwrap();
        assert_eq!(look(&layout).unwrap().1, None);
        fs::write(identity_file(&layout), "{\"id\"").unwrap();
        assert_eq!(look(&layout).unwrap().1, Some(Suspicion::Unreadable));
    }
}
