//! What a user without a provider's key can do: one line for each way.

use crate::local;
use agentd_core::catalog::{Catalog, ProviderEntry};

/// Under `next: ` of an error.
const INDENT: &str = "\n        ";

/// Everything that would choose a provider.
pub fn next(catalog: &Catalog) -> String {
    let mut ways: Vec<(String, String)> = catalog.by_precedence().filter_map(by_key).collect();
    if let Some(address) = local::ollama(catalog) {
        let how = "--provider ollama --model NAME".to_owned();
        ways.push((how, format!("a server answers at {address}")));
    }
    let demo = "built in: needs no key and no network";
    ways.push(("--provider demo".to_owned(), demo.to_owned()));
    let width = ways.iter().map(|(how, _)| how.len()).max().unwrap_or(0);
    let lines = ways
        .iter()
        .map(|(how, what)| format!("{INDENT}{how:width$}  {what}"));
    let lines: String = lines.collect();
    format!(
        "one of these:{lines}{INDENT}`agentd secret set NAME` stores a key for later, and `agentd init` asks what to use"
    )
}

fn by_key(entry: &ProviderEntry) -> Option<(String, String)> {
    let (first, others) = entry.key_env.split_first()?;
    let model = match &entry.default_model {
        Some(model) => model.clone(),
        None => "with --model NAME".to_owned(),
    };
    let others: String = others.iter().map(|name| format!(", or {name}")).collect();
    let name = &entry.name;
    Some((
        format!("export {first}=…"),
        format!("{name}: {model}{others}"),
    ))
}
