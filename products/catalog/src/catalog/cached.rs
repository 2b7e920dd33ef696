//! An opened catalog as a file, which is read several times sooner than the JSON that it was made of.
//!
//! The first block holds the number of products and the instructions; each of the others holds some products, in the
//! form of [`crate::catalog::codec`].

use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::cache::CacheFile;
use crate::catalog::Catalog;
use crate::catalog::codec::{Decoder, Encoder};
use crate::catalog::product::ProductIdx;
use crate::catalog::source_config::SourceConfig;
use crate::digest::hex;
use crate::error::DataError;
use crate::raw::{RawData, digest_files};

/// Changes when equal files make other products or instructions, or another cache file.
const VERSION: &str = "webshop-catalog-1";

/// Bytes of products that make a block.
const BLOCK: usize = 1 << 20;

/// The cached form of a catalog folder.
pub(crate) struct CachedCatalog {
    file: CacheFile,
    /// [`Catalog::source_digest`].
    products: String,
}

impl CachedCatalog {
    /// The file in `folder` for the catalog in `dir`, opened with `config`. Reads the three files of the catalog.
    pub(crate) fn of(folder: &Path, dir: &Path, config: SourceConfig) -> Result<Self, DataError> {
        let SourceConfig { limit, skips_bad, goals, seed } = config;
        let [items, instructions, human] = digest_files(dir, limit)?;
        let digest = |of: String| hex(&Sha256::digest(of));
        let products = digest(format!("{VERSION} {} {limit:?} {skips_bad}", hex(&items)));
        let instructions = [hex(&instructions), hex(&human)];
        let whole = digest(format!("{products} {instructions:?} {goals:?} {seed:?}"));
        Ok(Self { file: CacheFile::new(folder, &format!("{VERSION}-{whole}")), products })
    }

    /// The catalog and the instructions of its goals, if the file exists and is intact.
    pub(crate) fn read(&self) -> Option<(Catalog, RawData)> {
        let mut catalog = self.named(Catalog::default());
        let mut instructions = None;
        let mut texts = Vec::new();
        self.file.read(|block| {
            let mut decoder = Decoder { bytes: &block, texts: &mut texts };
            if instructions.is_none() {
                let n_products = decoder.length()?;
                // The number may be damaged.
                catalog.products.try_reserve_exact(n_products).ok()?;
                catalog.positions.try_reserve(n_products).ok()?;
                instructions = Some(serde_json::from_slice(decoder.bytes).ok()?);
                return Some(());
            }
            while !decoder.bytes.is_empty() {
                let product = decoder.product()?;
                let position = ProductIdx(catalog.products.len() as u32);
                catalog.positions.insert(product.id.clone(), position);
                catalog.products.push(product);
            }
            Some(())
        })?;
        Some((catalog, instructions?))
    }

    /// Stores an opened catalog with the instructions of its goals.
    pub(crate) fn write(&self, catalog: &Catalog, instructions: &RawData) -> io::Result<()> {
        self.file.write(|writer| {
            let mut encoder = Encoder::default();
            encoder.number(catalog.len() as u64);
            serde_json::to_writer(&mut encoder.bytes, instructions)?;
            writer.block(&encoder.bytes)?;
            encoder.bytes.clear();
            for product in catalog.products() {
                encoder.product(product);
                if encoder.bytes.len() >= BLOCK {
                    writer.block(&encoder.bytes)?;
                    encoder.bytes.clear();
                }
            }
            writer.block(&encoder.bytes)
        })
    }

    /// The catalog, which knows its source from now on.
    pub(crate) fn named(&self, catalog: Catalog) -> Catalog {
        Catalog { source_digest: Some(self.products.clone()), ..catalog }
    }

    /// The folder that holds the file.
    pub(crate) fn folder(&self) -> &Path {
        self.file.folder()
    }
}

#[cfg(test)]
mod tests;
