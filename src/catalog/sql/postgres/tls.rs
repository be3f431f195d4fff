//! What a server's certificate must prove, by `sslmode`.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{self, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::target::{Target, Tls};
use crate::catalog::CatalogError;

/// What encrypts connections to a server.
pub(super) fn connector(target: &Target) -> Result<MakeRustlsConnect, CatalogError> {
    let failed = |reason: String| CatalogError::Configuration {
        catalog: target.shown(),
        reason,
    };
    let provider = Arc::new(crypto::ring::default_provider());
    let chain = match target.tls {
        Tls::Disable | Tls::Prefer | Tls::Require => None,
        Tls::VerifyCa | Tls::VerifyFull => {
            let trusted = trusted(target).map_err(failed)?;
            let verifier = WebPkiServerVerifier::builder_with_provider(
                Arc::new(trusted),
                Arc::clone(&provider),
            );
            Some(
                verifier
                    .build()
                    .map_err(|error| failed(error.to_string()))?,
            )
        }
    };
    let verifier = Verifier {
        chain,
        any_name: target.tls == Tls::VerifyCa,
        provider: Arc::clone(&provider),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// The certificates that `sslrootcert` names, else those of the system.
fn trusted(target: &Target) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    let Some(path) = &target.trusted else {
        let found = rustls_native_certs::load_native_certs();
        store.add_parsable_certificates(found.certs);
        return if store.is_empty() {
            Err("this machine trusts no certificates (name some with sslrootcert)".to_owned())
        } else {
            Ok(store)
        };
    };
    let broken = |reason: String| format!("{}: {reason}", path.display());
    for certificate in
        CertificateDer::pem_file_iter(path).map_err(|error| broken(error.to_string()))?
    {
        let certificate = certificate.map_err(|error| broken(error.to_string()))?;
        store
            .add(certificate)
            .map_err(|error| broken(error.to_string()))?;
    }
    if store.is_empty() {
        return Err(broken("holds no certificate".to_owned()));
    }
    Ok(store)
}

/// Checks as much of a certificate as `sslmode` asks for.
#[derive(Debug)]
struct Verifier {
    /// `None`: anything is taken.
    chain: Option<Arc<WebPkiServerVerifier>>,
    any_name: bool,
    provider: Arc<CryptoProvider>,
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
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        // The chain is checked before the name.
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
