//! Messages cut from a stream.

use std::iter::once;

use pgdyno_driver::error::Error;
use pgdyno_driver::protocol::frames::Frames;

use super::message;

type Found = (Vec<(u8, Vec<u8>)>, Option<Error>);

/// Messages do not depend on where reads end, and written again they are the stream's beginning.
pub fn check(data: &[u8]) {
    let Some((cut, stream)) = data.split_first() else { return };
    let whole = read(once(stream));
    assert_eq!(read(stream.chunks(usize::from(*cut).max(1))), whole);
    let written: Vec<u8> = whole.0.iter().flat_map(|(tag, body)| message(*tag, body)).collect();
    assert!(stream.starts_with(&written));
}

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Found {
    let mut frames = Frames::default();
    let mut found = Vec::new();
    for piece in pieces {
        let outcome = frames.feed(piece, |tag, body| {
            found.push((tag, body.to_vec()));
            Ok(())
        });
        if let Err(error) = outcome {
            return (found, Some(error));
        }
    }
    (found, None)
}
