//! Channel binding `tls-server-end-point`: the hash of a server's certificate. Source: RFC 5929, section 4.1.

use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};

const OBJECT_IDENTIFIER: u8 = 6;
/// Object identifiers (contents only) of signature algorithms, and their hashes; SHA-256 replaces MD5 and
/// SHA-1.
const ALGORITHMS: [(&[u8], &Algorithm); 9] = [
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4], &SHA256), // md5WithRSAEncryption, RFC 8017
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5], &SHA256), // sha1WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11], &SHA256), // sha256WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12], &SHA384), // sha384WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13], &SHA512), // sha512WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1], &SHA256),          // ecdsa-with-SHA1, RFC 5758
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2], &SHA256),       // ecdsa-with-SHA256
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3], &SHA384),       // ecdsa-with-SHA384
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4], &SHA512),       // ecdsa-with-SHA512
];

/// The hash of a certificate (DER); `None` if its signature algorithm is unknown or has no single hash
/// (Ed25519).
pub fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (_, parts, _) = element(certificate)?;
    let (_, _signed, parts) = element(parts)?;
    let (_, algorithm, _) = element(parts)?;
    let (tag, identifier, _) = element(algorithm)?;
    let (_, hash) = ALGORITHMS.iter().find(|(known, _)| tag == OBJECT_IDENTIFIER && *known == identifier)?;
    Some(digest(hash, certificate).as_ref().to_vec())
}

/// Splits off one DER element (X.690, section 8.1): its tag, its content, and the rest.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = der.split_first_chunk::<2>()?;
    let digits = if first < 0x80 { 0 } else { usize::from(first & 0x7f) };
    let (length, rest) = rest.split_at_checked(digits)?;
    let length = match digits {
        0 => usize::from(first),
        1..=4 => length.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)),
        _ => return None,
    };
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn certificate(identifier: &[u8]) -> Vec<u8> {
        let algorithm = [&[OBJECT_IDENTIFIER, identifier.len() as u8], identifier].concat();
        let algorithm = [&[0x30, algorithm.len() as u8], &algorithm[..]].concat();
        // The signed part, with a long-form length; then the algorithm and an empty signature.
        let parts = [&[0x30, 0x81, 2, 5, 0], &algorithm[..], &[3, 1, 0]].concat();
        [&[0x30, 0x82, 0, parts.len() as u8], &parts[..]].concat()
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let sha384 = [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3];
        assert_eq!(end_point(&certificate(&sha384)).unwrap().len(), 48);
        let md5 = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4];
        assert_eq!(end_point(&certificate(&md5)).unwrap().len(), 32);
    }

    #[test]
    fn without_one_hash_there_is_nothing_to_bind_to() {
        let ed25519 = [0x2b, 0x65, 0x70];
        assert_eq!(end_point(&certificate(&ed25519)), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = end_point(&bytes);
        }
    }
}
