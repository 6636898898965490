//! The environment variables of tool processes.

use agentd_core::environment::is_handed_on;
use agentd_failpoint as failpoint;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// The whole environment of tools: the caller's variables that may be passed on, and the variables that the spec adds
/// or replaces.
pub fn allowed_env(
    own: impl IntoIterator<Item = (OsString, OsString)>,
    spec: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let mut all = BTreeMap::new();
    for (name, value) in own {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str())
            && (is_handed_on(name) || failpoint::injected_bug("env_handed_on"))
        {
            all.insert(name.to_owned(), value.to_owned());
        }
    }
    all.extend(spec.clone());
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::allowed_env;
    use std::collections::BTreeMap;
    use std::ffi::OsString;

    #[test]
    fn only_what_is_on_the_list_is_handed_on() {
        let own = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("ANTHROPIC_API_KEY", "sk-1"),
            ("HOME", "/home/a"),
            ("LD_PRELOAD", "x.so"),
            ("PATHS", "/x"),
        ];
        let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let spec = [("HOME", "/tmp"), ("LD_LIBRARY_PATH", "/lib")];
        let spec: BTreeMap<String, String> =
            spec.map(|(name, value)| (name.into(), value.into())).into();
        let expected = [
            ("HOME", "/tmp"),
            ("LC_ALL", "C"),
            ("LD_LIBRARY_PATH", "/lib"),
            ("PATH", "/bin"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(allowed_env(own, &spec), expected);
    }
}
