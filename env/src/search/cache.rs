//! The postings of a catalog in a file, so that they are built once.
//!
//! A [`CachedPostings`] is one file in a cache folder. Its name is a digest of the documents and of whatever
//! turns them into postings, so a changed catalog has another file; modification times are not read. The file
//! begins with a digest of the rest; a file that does not match is ignored. Two runs write equal bytes.
//!
//! Nothing depends on the cache: what cannot be read is built again, and what cannot be written is not
//! cached. Files of other catalogs stay until they are removed, which is safe at any time.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tantivy::directory::{Directory, RamDirectory};
use tantivy::index::SegmentId;
use webshop_products::hex;

/// Changes when equal documents make other postings.
const VERSION: &str = "webshop-postings-2";

const META: &str = "meta.json";

/// The folder where programs keep the indexes of catalog folders unless told otherwise: `$WEBSHOP_CACHE`, else
/// `$XDG_CACHE_HOME/webshop`, else `$HOME/.cache/webshop`. Empty variables count as unset; `None` if all are.
pub fn user_index_cache() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_user = || folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    folder("WEBSHOP_CACHE").or_else(|| Some(of_user()?.join("webshop")))
}

/// The cache file for the postings of some documents.
pub(crate) struct CachedPostings {
    file: PathBuf,
}

impl CachedPostings {
    /// The file in `folder` for the postings of `documents`.
    pub(crate) fn of(folder: &Path, documents: impl Iterator<Item = String>) -> Self {
        let mut hasher = Sha256::new_with_prefix(VERSION);
        hasher.update(tantivy::version_string());
        for contents in documents {
            hasher.update((contents.len() as u64).to_le_bytes());
            hasher.update(contents);
        }
        let digest = hex(&hasher.finalize());
        Self { file: folder.join(format!("{VERSION}-{digest}")) }
    }

    /// The postings, if the file exists and is intact.
    pub(crate) fn load(&self) -> Option<RamDirectory> {
        let bytes = fs::read(&self.file).ok()?;
        let (digest, mut rest) = bytes.split_at_checked(Sha256::output_size())?;
        if Sha256::digest(rest).as_slice() != digest {
            return None;
        }
        let directory = RamDirectory::create();
        while !rest.is_empty() {
            let name = take(&mut rest)?;
            let contents = take(&mut rest)?;
            directory.atomic_write(Path::new(std::str::from_utf8(name).ok()?), contents).ok()?;
        }
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
        fs::create_dir_all(self.folder())?;
        // tantivy names a segment by a random number, in two spellings. A constant one makes equal bytes.
        let same = SegmentId::from_uuid_string(&"0".repeat(32)).map_err(io::Error::other)?;
        let [random, constant] =
            [segment, same].map(|id| (id.uuid_string(), serde_json::json!(id).to_string()));
        let rename = |text: &str| text.replace(&random.0, &constant.0).replace(&random.1, &constant.1);
        let mut body = Vec::new();
        for path in files.into_iter().chain([PathBuf::from(META)]) {
            // A list of files may name some that were only there while the segment was made.
            let Ok(contents) = directory.atomic_read(&path) else { continue };
            let name = path.to_string_lossy();
            put(&mut body, rename(&name).as_bytes());
            match name == META {
                true => put(&mut body, rename(&String::from_utf8_lossy(&contents)).as_bytes()),
                false => put(&mut body, &contents),
            }
        }
        let partial = self.file.with_extension(format!("{}.partial", std::process::id()));
        let written = fs::File::create(&partial).and_then(|mut out| {
            out.write_all(&Sha256::digest(&body))?;
            out.write_all(&body)?;
            out.sync_all()?;
            fs::rename(&partial, &self.file)
        });
        if written.is_err() {
            // The first error is the one to report.
            let _ = fs::remove_file(&partial);
        }
        written
    }

    /// The folder that holds the file.
    pub(crate) fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("."))
    }
}

/// Appends the length of `bytes`, then `bytes`.
fn put(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend((bytes.len() as u64).to_le_bytes());
    body.extend(bytes);
}

/// Removes from the front what [`put`] appended.
fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, behind) = rest.split_first_chunk()?;
    let (bytes, behind) = behind.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *rest = behind;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use crate::search::index::SearchIndex;
    use std::fs;
    use std::path::{Path, PathBuf};
    use webshop_products::ProductId;

    const TITLES: [&str; 3] = ["oak lamp", "oak desk lamp", "wool rug"];

    fn index(titles: &[&str], cache: Option<&Path>) -> SearchIndex {
        let id = |at: usize| ProductId::new(&format!("B{at}")).expect("a short name");
        let ids = (0..titles.len()).map(id).collect();
        SearchIndex::new(ids, titles.iter().map(ToString::to_string), cache).expect("three short documents")
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
