//! TLS over a TCP connection, as in libpq: `SSLRequest`, an answer of one byte, handshake.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WantsClientCert, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, ConfigBuilder, DigitallySignedStruct, RootCertStore,
    SignatureScheme, StreamOwned,
};

use crate::conninfo::ConnInfo;
use crate::error::{Error, Result};
use crate::security::SslMode;
use crate::transport::Transport;

const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Requests TLS from the server and completes the handshake.
pub fn wrap(mut stream: TcpStream, info: &ConnInfo) -> Result<Transport> {
    let mut answer = [0];
    stream.write_all(&SSL_REQUEST).and_then(|()| stream.read_exact(&mut answer)).map_err(|error| {
        Error::new(format!("could not request TLS from {}", info.place())).detail(error.to_string())
    })?;
    match answer[0] {
        b'S' => {}
        // Before TLS the error's text cannot be trusted.
        b'E' => {
            return Err(Error::new(format!("{} answered the request for TLS with an error", info.place()))
                .hint("see the server's log; it may have failed to start a process"));
        }
        _ => {
            return Err(Error::new(format!("{} does not offer TLS", info.place()))
                .hint("set ssl = on in the server, or use sslmode=disable"));
        }
    }
    let name = ServerName::try_from(info.host.clone())
        .map_err(|_| Error::new(format!("\"{}\" is not a valid host name for a certificate", info.host)))?;
    let mut connection = ClientConnection::new(Arc::new(configuration(info)?), name)
        .map_err(|error| failed(info, &error.to_string()))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(|error| failed(info, &error.to_string()))?;
    }
    Ok(Transport::Tls(Box::new(StreamOwned::new(connection, stream))))
}

fn failed(info: &ConnInfo, why: &str) -> Error {
    Error::new(format!("could not establish TLS with {}", info.place())).detail(why)
}

fn configuration(info: &ConnInfo) -> Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(info, &error.to_string()))?;
    if info.ssl_mode == Some(SslMode::VerifyFull) {
        return with_certificate(builder.with_root_certificates(roots(info)?), info);
    }
    // With require, libpq ignores a missing root certificate file; here, a specified file is always used.
    let chain = if info.ssl_mode == Some(SslMode::VerifyCa) || info.ssl_root_cert.is_some() {
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots(info)?), provider.clone());
        Some(builder.build().map_err(|error| failed(info, &error.to_string()))?)
    } else {
        None
    };
    let verifier = Arc::new(AnyName { provider, chain });
    with_certificate(builder.dangerous().with_custom_certificate_verifier(verifier), info)
}

fn with_certificate(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    info: &ConnInfo,
) -> Result<ClientConfig> {
    let Some(files) = &info.ssl_certificate else { return Ok(builder.with_no_client_auth()) };
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| {
        Error::new(format!("could not read a key from \"{}\"", files.key.display()))
            .detail(error.to_string())
            .hint("the key must not be encrypted, and must be readable by the user that runs pgdyno-driver")
    })?;
    builder.with_client_auth_cert(certificates(&files.certificate)?, key).map_err(|error| {
        Error::new(format!("could not use the certificate in \"{}\"", files.certificate.display()))
            .detail(error.to_string())
    })
}

fn roots(info: &ConnInfo) -> Result<RootCertStore> {
    let file = info.ssl_root_cert.as_ref().ok_or_else(|| {
        Error::new("no root certificate to verify the server with")
            .hint("add sslrootcert=FILE, or use sslmode=require")
    })?;
    let mut store = RootCertStore::empty();
    for certificate in certificates(file)? {
        store.add(certificate).map_err(|error| unreadable(file, &error.to_string()))?;
    }
    Ok(store)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    read.map_err(|error| unreadable(file, &error.to_string()))
}

fn unreadable(file: &Path, why: &str) -> Error {
    Error::new(format!("could not read certificates from \"{}\"", file.display())).detail(why)
}

/// Accepts any host name (`verify-ca`, and `require` with a root certificate) and, without a chain to verify,
/// any certificate. Signatures are verified in both cases.
#[derive(Debug)]
struct AnyName {
    provider: Arc<CryptoProvider>,
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
