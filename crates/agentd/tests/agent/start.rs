//! What an agent does, and does not do, before its first request.

use super::test_agent::TestAgent;
use agentd_testkit::model::Format;
use rustix::fs::{CWD, Mode, mkfifoat};

/// Regression: each start read the whole bundle of certificates and 150 single files, for an address that needs none of
/// them. Here the bundle is a pipe, on which a reader would block.
#[test]
fn an_http_address_reads_no_certificate_authorities() {
    let harness = TestAgent::new(Format::Anthropic);
    let bundle = harness.path().join("bundle.pem");
    mkfifoat(CWD, &bundle, Mode::RUSR | Mode::WUSR).unwrap();
    let run = harness.run().env("SSL_CERT_FILE", &bundle);
    let ended = run.prompt("do: say hello").ended();
    assert_eq!(ended.statuses(), ["completed"], "{ended:#?}");
}
