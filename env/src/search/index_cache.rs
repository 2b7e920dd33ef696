//! The postings of a catalog in a cache file, so that they are built once.
//!
//! The name of the file is a digest of the documents, or of the file of products that they were made of, and of whatever turns
//! them into postings.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use tantivy::directory::{Directory, RamDirectory};
use tantivy::index::SegmentId;
use webshop_products::{CacheFile, hex};

/// Changes when equal products make other documents, or equal documents other postings.
const VERSION: &str = "webshop-postings-3";

const META: &str = "meta.json";

/// The cache file for the postings of some documents.
pub(crate) struct CachedPostings(CacheFile);

impl CachedPostings {
    /// The file in `folder` for the postings of `documents`.
    pub(crate) fn of_documents(folder: &Path, documents: impl Iterator<Item = String>) -> Self {
        let mut hasher = Sha256::new();
        for contents in documents {
            hasher.update((contents.len() as u64).to_le_bytes());
            hasher.update(contents);
        }
        Self::named(folder, &hex(&hasher.finalize()))
    }

    /// The file in `folder` for the documents of a catalog with this [`webshop_products::Catalog::source_digest`].
    pub(crate) fn of_source(folder: &Path, source_digest: &str) -> Self {
        Self::named(folder, &format!("source {source_digest}"))
    }

    fn named(folder: &Path, contents: &str) -> Self {
        let digest = Sha256::digest(format!("{VERSION} {} {contents}", tantivy::version_string()));
        Self(CacheFile::new(folder, &format!("{VERSION}-{}", hex(&digest))))
    }

    /// The postings, if the file exists and is intact.
    pub(crate) fn load(&self) -> Option<RamDirectory> {
        let directory = RamDirectory::create();
        let mut name = None;
        self.0.read(|block| {
            match name.take() {
                None => name = Some(String::from_utf8(block).ok()?),
                Some(name) => directory.atomic_write(Path::new(&name), &block).ok()?,
            }
            Some(())
        })?;
        Some(directory)
    }

    /// Stores the files of `directory`, which hold one segment, for the next run.
    ///
    /// # Errors
    /// The error of the file system; the caller may continue without a cache.
    pub(crate) fn save(
        &self,
        directory: &RamDirectory,
        segment: SegmentId,
        files: BTreeSet<PathBuf>,
    ) -> io::Result<()> {
        // tantivy names a segment by a random number, in two spellings. A constant one makes equal bytes.
        let same = SegmentId::from_uuid_string(&"0".repeat(32)).map_err(io::Error::other)?;
        let [random, constant] =
            [segment, same].map(|id| (id.uuid_string(), serde_json::json!(id).to_string()));
        let rename = |text: &str| text.replace(&random.0, &constant.0).replace(&random.1, &constant.1);
        self.0.write(|writer| {
            for path in files.into_iter().chain([PathBuf::from(META)]) {
                // A list of files may name some that were only there while the segment was made.
                let Ok(contents) = directory.atomic_read(&path) else { continue };
                let name = path.to_string_lossy();
                writer.block(rename(&name).as_bytes())?;
                match name == META {
                    true => writer.block(rename(&String::from_utf8_lossy(&contents)).as_bytes())?,
                    false => writer.block(&contents)?,
                }
            }
            Ok(())
        })
    }

    /// The folder that holds the file.
    pub(crate) fn folder(&self) -> &Path {
        self.0.folder()
    }
}

#[cfg(test)]
mod tests {
    use super::CachedPostings;
    use crate::search::index::SearchIndex;
    use std::fs;
    use std::path::{Path, PathBuf};
    use webshop_products::ProductId;

    const TITLES: [&str; 3] = ["oak lamp", "oak desk lamp", "wool rug"];

    fn index(titles: &[&str], cache: Option<&Path>) -> SearchIndex {
        let id = |at: usize| ProductId::new(&format!("B{at}")).expect("a short name");
        let ids = (0..titles.len()).map(id).collect();
        let documents = titles.iter().map(ToString::to_string);
        let cache = cache.map(|folder| CachedPostings::of_documents(folder, documents.clone()));
        SearchIndex::new(ids, documents, cache).expect("three short documents")
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        files.sort();
        files
    }

    #[test]
    fn a_kept_index_answers_like_a_new_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let fresh = index(&TITLES, None);
        for round in ["built", "loaded"] {
            let kept = index(&TITLES, Some(folder.path()));
            for query in ["lamp", "oak desk", "wool rug lamp", "sofa"] {
                assert_eq!(kept.search(query), fresh.search(query), "{round}: {query}");
            }
            assert_eq!(files(folder.path()).len(), 1);
        }
    }

    #[test]
    fn two_runs_keep_equal_bytes_and_another_catalog_others() {
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a temporary folder"));
        let kept = folders.each_ref().map(|folder| {
            index(&TITLES, Some(folder.path()));
            let file = files(folder.path()).remove(0);
            (file.file_name().map(ToOwned::to_owned), fs::read(file).expect("a kept index"))
        });
        assert!(kept[0] == kept[1], "a run shows in the bytes");
        index(&["oak lamp", "oak desk lamp", "wool rugs"], Some(folders[0].path()));
        assert_eq!(files(folders[0].path()).len(), 2);
    }

    #[test]
    fn what_is_damaged_is_built_anew_and_what_cannot_be_kept_is_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        index(&TITLES, Some(folder.path()));
        let file = files(folder.path()).remove(0);
        let whole = fs::read(&file).expect("a kept index");
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        for damaged in [&whole[..whole.len() / 2], &[], &flipped] {
            fs::write(&file, damaged).expect("a written file");
            let rebuilt = index(&TITLES, Some(folder.path()));
            assert_eq!(rebuilt.search("lamp").map(|hits| hits.len()), Ok(2));
            assert!(fs::read(&file).expect("a kept index") == whole, "it was not kept again");
        }
        // A file in place of the folder, then a folder in place of the file.
        assert_eq!(index(&TITLES, Some(&file)).search("lamp").map(|hits| hits.len()), Ok(2));
        fs::remove_file(&file).expect("a file to remove");
        fs::create_dir(&file).expect("a new folder");
        assert_eq!(index(&TITLES, Some(folder.path())).search("lamp").map(|hits| hits.len()), Ok(2));
        assert_eq!(files(folder.path()), [file], "something half-written is left");
    }
}
