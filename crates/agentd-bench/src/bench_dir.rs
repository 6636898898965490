//! The directory in which a benchmark writes, and its type of file system: on a file system in memory, durability
//! costs nothing, so the figures mean nothing.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

pub struct BenchDir {
    path: PathBuf,
    pub file_system: String,
}

impl BenchDir {
    /// `path`, or the system's directory for temporary files.
    pub fn new(path: Option<&Path>) -> Result<Self> {
        let path = path.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let path = path
            .canonicalize()
            .with_context(|| format!("cannot write to {}", path.display()))?;
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        Ok(Self {
            file_system: file_system(&mounts, &path).unwrap_or_else(|| "unknown".to_owned()),
            path,
        })
    }

    /// Prints the directory, and a warning if it is in memory.
    pub fn announce(&self) {
        eprintln!("In {} ({}).", self.path.display(), self.file_system);
        if self.is_in_memory() {
            eprintln!("That is memory, where durability is free: use --bench-dir DIR, on a disk.");
        }
    }

    fn is_in_memory(&self) -> bool {
        matches!(self.file_system.as_str(), "tmpfs" | "ramfs")
    }

    /// A new directory in it; deleted when it is dropped.
    pub fn fresh(&self) -> Result<TempDir> {
        tempfile::Builder::new()
            .prefix("agentd-bench-")
            .tempdir_in(&self.path)
            .with_context(|| format!("cannot create a directory in {}", self.path.display()))
    }
}

/// The type of the innermost mount that contains `path`. Of two mounts at one path, the later one counts.
fn file_system(mounts: &str, path: &Path) -> Option<String> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((Path::new(fields.next()?), fields.next()?))
        })
        .filter(|(mount, _)| path.starts_with(mount))
        .max_by_key(|(mount, _)| mount.components().count())
        .map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_counts() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nx /tmp/disk xfs rw 0 0\n";
        let of = |path: &str| file_system(mounts, Path::new(path));
        assert_eq!(of("/home/a").as_deref(), Some("ext4"));
        assert_eq!(of("/tmp/a").as_deref(), Some("tmpfs"));
        assert_eq!(of("/tmp/disk/a").as_deref(), Some("xfs"));
        assert_eq!(of("/tmpother").as_deref(), Some("ext4"));
    }
}
