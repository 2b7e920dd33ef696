//! Opens text files, compressed or not.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::io_error;
use crate::error::DataError;

/// Bytes read at a time.
const BUFFER: usize = 1 << 16;

/// Opens a text file for reading, decompressed if its name ends in `.gz`.
pub fn open_text(path: &Path) -> Result<Box<dyn BufRead + Send>, DataError> {
    let file = File::open(path).map_err(io_error("open", path))?;
    let gzipped = path.extension().is_some_and(|extension| extension == "gz");
    let reader: Box<dyn Read + Send> =
        if gzipped { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    Ok(Box::new(BufReader::with_capacity(BUFFER, reader)))
}
