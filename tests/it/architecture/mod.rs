//! The layout of the repository: the direction of crates, cycles of files, lengths of files and functions, unsafe code,
//! the math library, vocabulary, and the commands of the README.

mod crates;
mod cycles;
mod math;
mod sizes;
mod source;
mod words;

use std::fs;
use std::path::Path;

/// A crate of the workspace.
#[derive(Clone, Copy)]
struct Crate {
    name: &'static str,
    folder: &'static str,
    /// The crates of the workspace that its own code may use.
    uses: &'static [&'static str],
}

/// The crates from the ground up. Each may use those before it at most, in tests and benches too.
const CRATES: [Crate; 13] = [
    Crate { name: "webshop-pycompat", folder: "products/pycompat", uses: &[] },
    Crate { name: "webshop-products", folder: "products/catalog", uses: &["webshop-pycompat"] },
    Crate { name: "webshop-env", folder: "env", uses: &["webshop-pycompat", "webshop-products"] },
    Crate { name: "webshop-kernels", folder: "agent/kernels", uses: &["webshop-products"] },
    Crate {
        name: "webshop-lm",
        folder: "agent/lm",
        uses: &["webshop-pycompat", "webshop-products", "webshop-kernels"],
    },
    Crate {
        name: "webshop-agent",
        folder: "agent/policy",
        uses: &["webshop-pycompat", "webshop-products", "webshop-env", "webshop-lm"],
    },
    Crate {
        name: "webshop-remote",
        folder: "agent/remote",
        uses: &["webshop-pycompat", "webshop-products", "webshop-env", "webshop-lm", "webshop-agent"],
    },
    Crate {
        name: "webshop-serve",
        folder: "serve",
        uses: &["webshop-pycompat", "webshop-products", "webshop-env", "webshop-lm", "webshop-agent"],
    },
    Crate {
        name: "webshop-evaluation",
        folder: "training/evaluation",
        uses: &["webshop-pycompat", "webshop-products", "webshop-env", "webshop-lm", "webshop-agent"],
    },
    Crate {
        name: "webshop-training",
        folder: "training/learning",
        uses: &[
            "webshop-products",
            "webshop-env",
            "webshop-kernels",
            "webshop-lm",
            "webshop-agent",
            "webshop-evaluation",
        ],
    },
    Crate {
        name: "webshop-report",
        folder: "training/report",
        uses: &[
            "webshop-products",
            "webshop-env",
            "webshop-lm",
            "webshop-agent",
            "webshop-evaluation",
            "webshop-training",
        ],
    },
    Crate {
        name: "webshop",
        folder: ".",
        uses: &[
            "webshop-pycompat",
            "webshop-products",
            "webshop-env",
            "webshop-lm",
            "webshop-agent",
            "webshop-remote",
            "webshop-serve",
            "webshop-evaluation",
            "webshop-training",
            "webshop-report",
        ],
    },
    Crate {
        name: "webshop-python",
        folder: "python",
        uses: &[
            "webshop-products",
            "webshop-env",
            "webshop-agent",
            "webshop-evaluation",
            "webshop-training",
            "webshop",
        ],
    },
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_readme_tests_as_ci_does() {
    let script = read(".ci/run");
    let mut commands = script.lines().filter_map(|line| line.find("cargo test").map(|at| &line[at..]));
    let command = commands.next().expect("the script runs the tests");
    assert_eq!(commands.next(), None, "and does so once");
    let readme = read("README.md");
    assert!(readme.lines().any(|line| line.trim() == command), "the README does not say `{command}`");
}
