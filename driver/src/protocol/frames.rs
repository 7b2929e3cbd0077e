//! Splits the server's byte stream into messages, independent of read boundaries.
//!
//! Bytes from the network are not trusted: any sequence gives messages or an error, never a panic, and uses
//! no more memory than one message of `MAX_MESSAGE_BYTES`.

use crate::error::{Error, Result};

/// Larger messages indicate a corrupt stream: no workload has such results.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// Size of a message's header: its type and its length.
pub const HEADER_BYTES: usize = 5;

/// Buffers the beginning of a message until its end arrives.
#[derive(Default)]
pub struct Frames {
    partial: Vec<u8>,
}

impl Frames {
    /// Passes every complete message in the buffer and `data` to `take(tag, body)`.
    pub fn feed(&mut self, data: &[u8], mut take: impl FnMut(u8, &[u8]) -> Result<()>) -> Result<()> {
        if self.partial.is_empty() {
            let used = each(data, &mut take)?;
            self.partial.extend_from_slice(&data[used..]);
            return Ok(());
        }
        self.partial.extend_from_slice(data);
        let whole = std::mem::take(&mut self.partial);
        let used = each(&whole, &mut take)?;
        self.partial = whole;
        self.partial.drain(..used);
        Ok(())
    }
}

/// Reads the length in a message's header: four bytes, included in the length.
pub fn check_length(tag: u8, bytes: &[u8]) -> Result<usize> {
    let length = bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    if (4..=MAX_MESSAGE_BYTES).contains(&length) {
        return Ok(length);
    }
    Err(Error::new(format!("the server sent a message with invalid length {length}"))
        .detail(format!("its type is byte {tag}"))
        .hint("check that this is a PostgreSQL server and that no proxy alters its messages"))
}

/// Passes every complete message to `take` and returns their total size.
fn each(data: &[u8], take: &mut impl FnMut(u8, &[u8]) -> Result<()>) -> Result<usize> {
    let mut at = 0;
    while let Some(header) = data.get(at..at + HEADER_BYTES) {
        let length = check_length(header[0], &header[1..])?;
        let Some(body) = data.get(at + HEADER_BYTES..=at + length) else { break };
        take(header[0], body)?;
        at += 1 + length;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn collect(chunks: &[&[u8]]) -> Result<Vec<(u8, Vec<u8>)>> {
        let mut frames = Frames::default();
        let mut found = Vec::new();
        for chunk in chunks {
            frames.feed(chunk, |tag, body| {
                found.push((tag, body.to_vec()));
                Ok(())
            })?;
        }
        Ok(found)
    }

    #[test]
    fn two_messages_in_one_read_are_two_messages() {
        let found = collect(&[b"C\0\0\0\x06OKZ\0\0\0\x05I"]).unwrap();
        assert_eq!(found, vec![(b'C', b"OK".to_vec()), (b'Z', b"I".to_vec())]);
    }

    #[test]
    fn a_length_below_four_is_refused_with_its_value() {
        let error = collect(&[b"C\0\0\0\x03"]).unwrap_err();
        assert_eq!(error.message, "the server sent a message with invalid length 3");
    }

    proptest! {
        #[test]
        fn no_sequence_of_bytes_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = collect(&[&bytes]);
        }

        #[test]
        fn messages_do_not_depend_on_where_reads_end(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..8),
            cut in 1usize..17,
        ) {
            let mut stream = Vec::new();
            for body in &bodies {
                stream.push(b'D');
                stream.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
                stream.extend_from_slice(body);
            }
            let chunks: Vec<&[u8]> = stream.chunks(cut).collect();
            let found = collect(&chunks).unwrap();
            let expected: Vec<(u8, Vec<u8>)> = bodies.into_iter().map(|body| (b'D', body)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
