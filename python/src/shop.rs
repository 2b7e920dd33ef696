//! The shop as a Python class.

use crate::convert::{breakdown, from_json, value_error};
use crate::goals::{OtherSplits, goal_id};
use crate::open::Arguments;
use crate::pool;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;
use webshop_env::MAX_HITS;
use webshop_products::{EmbeddedCatalog, Product, Seed, Selection};

/// The products, goals, search and rewards of a shop.
///
/// catalog: "100" or "1000" for an embedded one, or a folder with the original's three JSON files, as a str or a path.
/// size: only the first so many products. goals: "both", "human" or "synthetic"; by default both, with
/// compat="original" synthetic. compat: "repaired" or "original". seed: of prices and price limits. nouns: a file of
/// JSON lines with name and nouns. skip_bad: skip malformed records. cache: keep a folder's products and search index.
///
/// Equal arguments share one index in a process, of the files as they were when it was opened; a shop pickles as its
/// arguments, with paths made absolute. Raises ValueError for an argument
/// that names nothing and for data that cannot be read.
#[pyclass(frozen, module = "webshop")]
pub(crate) struct Shop {
    pub(crate) inner: Arc<webshop_env::Shop>,
    arguments: Arguments,
    other_splits: OtherSplits,
}

/// The name of a catalog, or the size of an embedded one as a number.
#[derive(FromPyObject)]
enum CatalogName {
    #[pyo3(transparent, annotation = "str or os.PathLike")]
    Path(PathBuf),
    #[pyo3(transparent, annotation = "int")]
    Size(u64),
}

#[pymethods]
impl Shop {
    #[new]
    #[pyo3(signature = (catalog=CatalogName::Size(100), *, size=None, goals=None, compat="repaired".to_owned(), seed=0, nouns=None, skip_bad=false, cache=true))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        py: Python<'_>,
        catalog: CatalogName,
        size: Option<usize>,
        goals: Option<String>,
        compat: String,
        seed: u64,
        nouns: Option<PathBuf>,
        skip_bad: bool,
        cache: bool,
    ) -> PyResult<Self> {
        let catalog = match catalog {
            CatalogName::Path(path)
                if path.is_dir() && EmbeddedCatalog::named(&path.to_string_lossy()).is_none() =>
            {
                absolute(path)?
            }
            CatalogName::Path(path) => utf8(path)?,
            CatalogName::Size(size) => size.to_string(),
        };
        let nouns = nouns.map(absolute).transpose()?;
        let arguments = Arguments { catalog, size, goals, compat, seed, nouns, skip_bad, cache };
        let inner = py.detach(|| arguments.shop()).map_err(value_error)?;
        Ok(Shop { inner, arguments, other_splits: OtherSplits::default() })
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let Arguments { catalog, size, goals, compat, seed, nouns, skip_bad, cache } = &self.arguments;
        let keywords = PyDict::new(py);
        keywords.set_item("size", size)?;
        keywords.set_item("goals", goals)?;
        keywords.set_item("compat", compat)?;
        keywords.set_item("seed", seed)?;
        keywords.set_item("nouns", nouns)?;
        keywords.set_item("skip_bad", skip_bad)?;
        keywords.set_item("cache", cache)?;
        Ok((PyTuple::new(py, [catalog])?, keywords))
    }

    fn __repr__(&self) -> String {
        let products = self.inner.catalog().len();
        format!("<webshop.Shop {:?}: {products} products, {} goals>", self.arguments.catalog, self.n_goals())
    }

    /// The number of products.
    #[getter]
    fn n_products(&self) -> usize {
        self.inner.catalog().len()
    }

    /// The number of goals.
    #[getter]
    fn n_goals(&self) -> usize {
        self.inner.goals().goals().len()
    }

    /// Digests of catalog, prices, goals and splits, and the versions of the rules. Results are comparable only if
    /// all are equal.
    #[getter]
    fn fingerprint<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let fingerprint = py.detach(|| self.inner.fingerprint());
        from_json(py, fingerprint)
    }

    /// The numbers of a split's goals, ascending.
    ///
    /// split: "train", "validation", "test" or "all". split_rule: the rule that divides them, "by-family", "by-product",
    /// "paper" or "verl-agent". Raises ValueError for other names, and if the rule needs more goals.
    #[pyo3(signature = (split="all", split_rule="by-family"))]
    fn goals(&self, py: Python<'_>, split: &str, split_rule: &str) -> PyResult<Vec<u32>> {
        let ids =
            |goals: &webshop_products::GoalSet, split| goals.split(split).iter().map(|goal| goal.0).collect();
        py.detach(|| self.other_splits.with_split(&self.inner, split, split_rule, ids))
    }

    /// The number of the goal that a seed draws uniformly from a split, as a server does.
    ///
    /// Raises ValueError as `goals` does, and if the split is empty.
    #[pyo3(signature = (split, seed, split_rule="by-family"))]
    fn goal_for_seed(&self, py: Python<'_>, split: &str, seed: u64, split_rule: &str) -> PyResult<u32> {
        let draw = |goals: &webshop_products::GoalSet, split| goals.goal_for_seed(split, Seed(seed));
        let goal = py.detach(|| self.other_splits.with_split(&self.inner, split, split_rule, draw))?;
        goal.map(|goal| goal.0).ok_or_else(|| value_error(format!("the split `{split}` has no goals")))
    }

    /// A goal: its instruction and the criteria of its reward; the price limit in cents.
    ///
    /// Raises ValueError for a number that is not a goal's.
    fn goal<'py>(&self, py: Python<'py>, goal: i64) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, self.inner.goals().get(goal_id(&self.inner, goal)?))
    }

    /// The ids of all products, in the order of the catalog.
    #[getter]
    fn asins(&self) -> Vec<&str> {
        self.inner.catalog().products().iter().map(|product| product.id.as_str()).collect()
    }

    /// A product: its texts, attributes, options and price; amounts in cents.
    ///
    /// Raises ValueError for an id that is not a product's.
    fn product<'py>(&self, py: Python<'py>, asin: &str) -> PyResult<Bound<'py, PyAny>> {
        let product = self.inner.catalog().find(asin).ok_or_else(|| unknown_product(asin))?;
        from_json(py, self.inner.catalog().get(product))
    }

    /// At most k products for a query, best first, each with asin, title, price (dollars) and score (BM25); never more
    /// than 50.
    ///
    /// Raises ValueError for a query of more than 1024 distinct terms.
    #[pyo3(signature = (query, k=MAX_HITS))]
    fn search<'py>(&self, py: Python<'py>, query: &str, k: usize) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let hits = py.detach(|| self.inner.try_search(query)).map_err(|_| {
            value_error("the query has more than 1024 distinct terms; search for fewer words")
        })?;
        let hit = |hit: &webshop_env::Hit| {
            let product = self.inner.catalog().get(hit.product);
            let dict = PyDict::new(py);
            dict.set_item("asin", product.id.as_str())?;
            dict.set_item("title", &*product.title)?;
            dict.set_item("price", product.price.paid.dollars())?;
            dict.set_item("score", hit.score)?;
            Ok(dict)
        };
        hits.iter().take(k).map(hit).collect()
    }

    /// What buying a product with these options earns for a goal, requirement by requirement.
    ///
    /// options: names to values, as the product's page shows them. attributes and options are pairs of a requirement
    /// and whether, or by which value, it is met; paid and limit are dollars; text is all of it for people. Raises
    /// ValueError for an unknown goal, product, option or value.
    #[pyo3(signature = (goal, asin, options=None))]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        goal: i64,
        asin: &str,
        options: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let goal = self.inner.goals().get(goal_id(&self.inner, goal)?);
        let product = self.inner.catalog().find(asin).ok_or_else(|| unknown_product(asin))?;
        let mut selection = Selection::new();
        for (name, value) in options.iter().flatten() {
            let (name, value): (String, String) = (name.extract()?, value.extract()?);
            check_option(self.inner.catalog().get(product), &name, &value)?;
            selection.choose(&name, &value);
        }
        let found = py.detach(|| self.inner.explain_reward(goal, product, &selection));
        let dict = PyDict::new(py);
        dict.set_item("reward", found.breakdown.total())?;
        dict.set_item("breakdown", breakdown(py, &found.breakdown)?)?;
        dict.set_item("text", found.to_string())?;
        dict.set_item("attributes", found.attributes)?;
        dict.set_item("options", found.options)?;
        dict.set_item("paid", found.paid.dollars())?;
        dict.set_item("limit", found.limit.map(|limit| limit.dollars()))?;
        Ok(dict)
    }

    /// Checks whether the shop is fit for training: fourteen properties, each with its measured numbers. Takes seconds.
    ///
    /// Raises ValueError if the checks cannot be run, as in a shop without goals.
    fn validate<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let checks = pool::compute(py, || webshop_evaluation::validate(&self.inner))?.map_err(value_error)?;
        from_json(py, &checks)
    }

    /// The product and the options, by name, that earn the most for a goal, and the labels to click on the product's
    /// page to select them: what an oracle buys.
    ///
    /// Raises ValueError for a number that is not a goal's.
    fn best_purchase<'py>(&self, py: Python<'py>, goal: i64) -> PyResult<Bound<'py, PyDict>> {
        let goal = self.inner.goals().get(goal_id(&self.inner, goal)?);
        let best = py.detach(|| self.inner.best_purchase(goal));
        let options = PyDict::new(py);
        for (name, value) in best.selection.iter() {
            options.set_item(name, value)?;
        }
        let dict = PyDict::new(py);
        dict.set_item("asin", self.inner.catalog().get(best.product).id.as_str())?;
        dict.set_item("options", options)?;
        dict.set_item("clicks", self.inner.clicks_to_choose(best.product, &best.selection))?;
        Ok(dict)
    }
}

/// The text of a path from the root, so that a shop is the same in every working directory.
fn absolute(path: PathBuf) -> PyResult<String> {
    utf8(std::path::absolute(&path).map_err(|error| value_error(format!("{}: {error}", path.display())))?)
}

/// The text of a path, which is what a shop pickles as.
fn utf8(path: PathBuf) -> PyResult<String> {
    let text = path.into_os_string().into_string();
    text.map_err(|path| value_error(format!("the path {path:?} is not UTF-8; use another one")))
}

fn unknown_product(asin: &str) -> PyErr {
    value_error(format!("the catalog has no product `{asin}`"))
}

/// A `ValueError`, unless the product has this value of this option.
fn check_option(product: &Product, name: &str, value: &str) -> PyResult<()> {
    let asin = &product.id;
    let Some(group) = product.options.iter().find(|group| &*group.name == name) else {
        return Err(value_error(format!("product `{asin}` has no option `{name}`")));
    };
    if !group.values.iter().any(|known| &*known.text == value) {
        return Err(value_error(format!("option `{name}` of product `{asin}` has no value `{value}`")));
    }
    Ok(())
}
