//! The user's services, for tool calls that the user approves to use one.

use agentd_client::api::Env;
use agentd_daemon::services;
use agentd_runtime::tools::{Service, Services};

pub fn all(env: &Env) -> Services {
    let all = services::all(env).into_iter();
    let all = all.map(|(pass, found)| {
        let variables = pass.variables().iter();
        let variables = variables.filter_map(|name| env.get_key_value(*name));
        let mut variables: std::collections::BTreeMap<String, String> = variables
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if let Some((name, value)) = found.variable {
            variables.entry(name.to_owned()).or_insert(value);
        }
        let service = Service {
            paths: found.paths,
            env: variables,
            missing: found.missing,
        };
        (pass, service)
    });
    all.collect()
}
