//! What a package contains besides the program: manual pages and completions, which the program itself writes.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::output_of;

/// The shells, and the names under which they look for completions. The manifest of the program names the same files.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "agentd.bash"),
    ("zsh", "_agentd"),
    ("fish", "agentd.fish"),
];

/// zsh runs the file as a function when the first completion is asked for. The script itself only registers another
/// function for the next ones.
const FIRST_IN_ZSH: &str = "
if [[ \"${funcstack[1]}\" == _agentd ]]; then
    _clap_dynamic_completer_agentd \"$@\"
fi
";

/// Writes `man/` and `completions/` below `dir`, from scratch: an old page of a removed command would be packaged too.
pub fn write(program: &Path, dir: &Path) -> Result<()> {
    let (man, completions) = (dir.join("man"), dir.join("completions"));
    for old in [&man, &completions] {
        if old.exists() {
            fs::remove_dir_all(old).with_context(|| format!("cannot remove {}", old.display()))?;
        }
        fs::create_dir_all(old).with_context(|| format!("cannot create {}", old.display()))?;
    }
    output_of(Command::new(program).arg("man").arg(&man))?;
    for (shell, file) in COMPLETIONS {
        let mut script = output_of(Command::new(program).args(["completions", shell]))?;
        if shell == "zsh" {
            script.push_str(FIRST_IN_ZSH);
        }
        let path = completions.join(file);
        fs::write(&path, script).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `write` depends on names that are chosen elsewhere.
    #[test]
    fn the_names_are_those_of_the_manifest_and_of_the_script() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
        let manifest = read("crates/agentd/Cargo.toml");
        for (_, file) in COMPLETIONS {
            assert!(manifest.contains(&format!("target/dist/completions/{file}")));
        }
        assert!(manifest.contains("target/dist/man/*.1"));
        let script = read("crates/agentd/tests/golden/completions/agentd.zsh");
        assert!(script.starts_with("#compdef agentd\n"));
        assert!(script.contains("function _clap_dynamic_completer_agentd()"));
    }
}
