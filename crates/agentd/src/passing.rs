//! What new settings of an agent give to its tools, and notifications that would reach nothing: told once, when the user
//! makes the choice.

use crate::error::Error;
use crate::output::Output;
use crate::providers;
use agentd_core::catalog::Catalog;
use agentd_core::environment::is_secret;
use agentd_core::spec::AgentSpec;

/// Tells what these settings give to tools, and those before did not.
pub fn tell(
    spec: &AgentSpec,
    before: &AgentSpec,
    catalog: &Catalog,
    out: &mut Output,
) -> Result<(), Error> {
    for line in lines(spec, before, catalog) {
        out.aside(line)?;
    }
    Ok(())
}

fn lines(spec: &AgentSpec, before: &AgentSpec, catalog: &Catalog) -> Vec<String> {
    let services = spec.pass.iter().filter(|pass| !before.pass.contains(pass));
    let services = services.map(|pass| format!("pass {}: {}", pass.name(), pass.gives_away()));
    let names = spec.pass_env.iter();
    let names = names.filter(|name| !before.pass_env.contains(name));
    let names = names.filter_map(|name| {
        let users = providers::users_of(catalog, name);
        if !users.is_empty() {
            return Some(format!(
                "pass_env {name}: tools get the API key of {}, and can use it outside the limits of this agent",
                users.join(", ")
            ));
        }
        is_secret(name).then(|| {
            format!(
                "pass_env {name}: tools can read it, and send it to every host that they can reach; agentd redacts it \
                 in what they print"
            )
        })
    });
    let told = catalog.notify().unknown(&before.notify);
    let lost = catalog.notify().unknown(&spec.notify);
    let lost = lost.into_iter().filter(|name| !told.contains(name));
    let lost = lost.map(|name| {
        format!("notify.to {name}: config.toml has no destination of this name, so nothing is sent there")
    });
    services.chain(names).chain(lost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::spec::Pass;

    #[test]
    fn a_destination_that_does_not_exist_is_told_once() {
        let catalog = Catalog::built_in();
        let mut spec = AgentSpec::default();
        spec.notify.to = Some(vec!["nosuch".to_owned()]);
        let told = lines(&spec, &AgentSpec::default(), &catalog);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("nosuch"), "{told:?}");
        assert!(lines(&spec, &spec, &catalog).is_empty());
    }

    #[test]
    fn a_choice_is_told_once() {
        let catalog = Catalog::built_in();
        let names = ["ANTHROPIC_API_KEY", "NPM_TOKEN", "PLAIN"];
        let spec = AgentSpec {
            pass: vec![Pass::Docker],
            pass_env: names.map(str::to_owned).into(),
            ..AgentSpec::default()
        };
        let told = lines(&spec, &AgentSpec::default(), &catalog);
        assert_eq!(told.len(), 3, "{told:?}");
        for (line, part) in told.iter().zip(["docker", "key of anthropic", "NPM_TOKEN"]) {
            assert!(line.contains(part), "{line}");
        }
        assert_eq!(lines(&spec, &spec, &catalog), [""; 0]);
    }
}
