//! The kept inputs of the fuzz targets, each checked once more. `make fuzz` finds new ones.

#[path = "../fuzz/properties/mod.rs"]
mod properties;

use std::fs;
use std::path::Path;

/// Checks every input of a corpus; the name of a failing one is printed.
fn replay(corpus: &str, check: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpora").join(corpus);
    let mut inputs: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    assert!(!inputs.is_empty());
    for input in inputs {
        println!("{}", input.display());
        check(&fs::read(input).unwrap());
    }
}

macro_rules! replays {
    ($($target:ident),* $(,)?) => {$(
        #[test]
        fn $target() {
            replay(stringify!($target), properties::$target::check);
        }
    )*};
}

replays!(answer, conninfo, end_point, frames, job, server_error, session, startup, workload);
