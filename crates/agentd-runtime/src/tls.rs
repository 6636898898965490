//! TLS for this crate's HTTP clients, with certificate authorities that are loaded lazily.
//!
//! The authorities are read when the first server presents its certificate, once per process, and from
//! one source. An agent whose provider has an `http://` address never reads them.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_native_certs::load_certs_from_paths;
use std::sync::{Arc, LazyLock, OnceLock};

/// One set of authorities for all clients of the process.
static VERIFIER: LazyLock<Arc<Verifier>> = LazyLock::new(|| Arc::new(Verifier::new(system_roots)));

/// For `reqwest`, which takes the ALPN protocols from here too.
pub fn config() -> Result<ClientConfig, Error> {
    config_with(Arc::clone(&VERIFIER))
}

fn config_with(verifier: Arc<Verifier>) -> Result<ClientConfig, Error> {
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&verifier.crypto))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Verifies as `WebPkiServerVerifier` does, which it creates on first use.
#[derive(Debug)]
struct Verifier {
    crypto: Arc<CryptoProvider>,
    read_roots: fn() -> RootCertStore,
    /// A failure to read the authorities is kept: a second attempt would fail too.
    inner: OnceLock<Result<Arc<WebPkiServerVerifier>, Error>>,
}

impl Verifier {
    fn new(read_roots: fn() -> RootCertStore) -> Self {
        Self {
            crypto: Arc::new(ring::default_provider()),
            read_roots,
            inner: OnceLock::new(),
        }
    }

    fn inner(&self) -> Result<&WebPkiServerVerifier, Error> {
        let inner = self.inner.get_or_init(|| {
            let roots = Arc::new((self.read_roots)());
            let crypto = Arc::clone(&self.crypto);
            let built = WebPkiServerVerifier::builder_with_provider(roots, crypto).build();
            built.map_err(|error| {
                let next = "install the package ca-certificates, or set SSL_CERT_FILE";
                Error::General(format!("no certificate authorities ({error}); {next}"))
            })
        });
        inner.as_deref().map_err(Clone::clone)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let inner = self.inner()?;
        inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.crypto.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.crypto.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.crypto.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// The bundle that `SSL_CERT_FILE` or the distribution names. The directories of single certificates are read only if
/// there is no bundle: both contain the same authorities.
fn system_roots() -> RootCertStore {
    let found = openssl_probe::probe();
    let mut roots = RootCertStore::empty();
    let bundle = found.cert_file.as_deref();
    roots.add_parsable_certificates(load_certs_from_paths(bundle, None).certs);
    for dir in &found.cert_dir {
        if roots.is_empty() {
            roots.add_parsable_certificates(load_certs_from_paths(None, Some(dir)).certs);
        }
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    static READS: AtomicU32 = AtomicU32::new(0);

    fn counted() -> RootCertStore {
        READS.fetch_add(1, Ordering::Relaxed);
        RootCertStore::empty()
    }

    #[test]
    fn authorities_are_read_once_and_only_for_a_server_certificate() {
        let verifier = Arc::new(Verifier::new(counted));
        let config = config_with(Arc::clone(&verifier)).unwrap();
        let client = reqwest::Client::builder().tls_backend_preconfigured(config);
        client.build().unwrap();
        assert_eq!(READS.load(Ordering::Relaxed), 0);
        let name = ServerName::try_from("localhost").unwrap();
        let certificate = CertificateDer::from(vec![0; 8]);
        for _ in 0..2 {
            let verified =
                verifier.verify_server_cert(&certificate, &[], &name, &[], UnixTime::now());
            let error = verified.unwrap_err().to_string();
            assert!(error.contains("ca-certificates"), "{error}");
        }
        assert_eq!(READS.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_systems_authorities_refuse_a_certificate_that_is_none() {
        let verifier = Verifier::new(system_roots);
        let name = ServerName::try_from("localhost").unwrap();
        let certificate = CertificateDer::from(vec![0; 8]);
        let verified = verifier.verify_server_cert(&certificate, &[], &name, &[], UnixTime::now());
        assert!(verified.is_err());
    }
}
