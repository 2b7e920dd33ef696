//! Writes the embedded catalogs anew: `cargo run --release -p webshop-products --example embed`.
//!
//! Needed after any change of the generator; a test fails until it has been run.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use webshop_products::{Seed, generate};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data");
    fs::create_dir_all(&folder)?;
    generate(Seed(0), 100).write_one(&mut File::create(folder.join("catalog-100.json"))?)?;
    let file = File::create(folder.join("catalog-1000.json.gz"))?;
    let mut out = GzEncoder::new(file, Compression::best());
    generate(Seed(0), 1_000).write_one(&mut out)?;
    out.finish()?;
    Ok(())
}
