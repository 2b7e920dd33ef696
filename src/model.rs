//! `webshop model`: makes, looks at and rewrites model folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use webshop_agent::checkpoint::{self, Companions, SaveOptions, Survey, WeightType};
use webshop_agent::lora::Lora;
use webshop_agent::{KnownShape, Qwen2, ShopTokenizer};
use webshop_products::{Catalog, Seed};

use crate::answer::answer;
use crate::progress::observer;
use crate::shop::ShopArgs;

/// Tokens that a new model's tokenizer learns, bytes among them; a small catalog has fewer that are worth it.
const N_LEARNED: usize = 8192;

/// What to do with a model folder.
#[derive(clap::Subcommand)]
pub enum ModelVerb {
    /// Make a folder of a known shape with random weights, and a tokenizer made from a catalog's text
    New {
        /// The shape: tiny, 0.5b, 1.5b or 3b, the latter those of Qwen2.5
        #[arg(long, value_name = "NAME")]
        shape: KnownShape,
        /// Another number of layers than the shape has
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
        layers: Option<u16>,
        /// Root of the weights' randomness
        #[arg(long, default_value_t = 0, value_name = "N")]
        seed: u64,
        #[command(flatten)]
        shop: ShopArgs,
        #[command(flatten)]
        to: OutArgs,
    },
    /// Print shape, parameters, weights, tokenizer and chat template, and what stands in the way of using it
    Inspect {
        /// The model folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Read every weight too, which takes a while, and look for what is no number
        #[arg(long)]
        weights: bool,
        /// One JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Add a low-rank adapter in PEFT's layout to a model's weights
    Merge {
        /// The model folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The adapter's folder
        #[arg(long, value_name = "DIR")]
        adapter: PathBuf,
        #[command(flatten)]
        to: OutArgs,
    },
    /// Write a model's weights in another type, or in files of another size
    Convert {
        /// The model folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        #[command(flatten)]
        to: OutArgs,
    },
}

/// Where and how a model is written.
#[derive(clap::Args)]
pub struct OutArgs {
    /// Type of the weights in the files
    #[arg(long, value_enum, default_value = "f32")]
    dtype: WeightTypeArg,
    /// Largest file of weights, in megabytes
    #[arg(long, default_value_t = 5000, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..))]
    shard_mb: u32,
    /// The folder to make; must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// [`WeightType`] as a flag.
#[derive(Clone, Copy, clap::ValueEnum)]
enum WeightTypeArg {
    F32,
    Bf16,
    F16,
}

/// Carries out the verb.
pub fn run(verb: ModelVerb) -> anyhow::Result<ExitCode> {
    match verb {
        ModelVerb::New { shape, layers, seed, shop, to } => {
            to.write(|folder, options| new(shape, layers, Seed(seed), &shop, folder, options))?;
        }
        ModelVerb::Inspect { folder, weights, json } => {
            let survey = Survey::of(&folder, weights);
            if json {
                answer!("{}", serde_json::to_string(&survey)?)?;
            } else {
                answer!("{survey}")?;
            }
            return Ok(if survey.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        ModelVerb::Merge { folder, adapter, to } => {
            let base = checkpoint::load(&folder)?;
            let merged = Lora::load(&adapter, &base)?.merged(&base)?;
            to.write(|out, options| write_beside_companions(&merged, &folder, out, options))?;
        }
        ModelVerb::Convert { folder, to } => {
            let model = checkpoint::load(&folder)?;
            to.write(|out, options| write_beside_companions(&model, &folder, out, options))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl OutArgs {
    fn options(&self) -> SaveOptions {
        let weight_type = match self.dtype {
            WeightTypeArg::F32 => WeightType::F32,
            WeightTypeArg::Bf16 => WeightType::Bf16,
            WeightTypeArg::F16 => WeightType::F16,
        };
        SaveOptions { weight_type, file_limit_bytes: u64::from(self.shard_mb) * 1_000_000 }
    }

    /// Has a folder written under another name and gives it its own when it is complete.
    fn write(&self, write: impl FnOnce(&Path, &SaveOptions) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let out = &self.out;
        if out.exists() {
            bail!("`{}` exists; give another folder with `--out`", out.display());
        }
        let mut partial = out.file_name().context("`--out` must name a folder")?.to_owned();
        partial.push(".partial");
        let partial = out.with_file_name(partial);
        if partial.exists() {
            bail!("`{}` was left unfinished; remove it first", partial.display());
        }
        let cannot_write = || format!("cannot write `{}`", out.display());
        fs::create_dir_all(&partial).with_context(cannot_write)?;
        let written = write(&partial, &self.options())
            .and_then(|()| fs::rename(&partial, out).with_context(cannot_write));
        if written.is_err() {
            // What is half-written is of no use; that it may not be removable either adds nothing.
            let _ = fs::remove_dir_all(&partial);
        }
        written?;
        answer!("model in {}", out.display())
    }
}

fn new(
    shape: KnownShape,
    layers: Option<u16>,
    seed: Seed,
    shop: &ShopArgs,
    folder: &Path,
    options: &SaveOptions,
) -> anyhow::Result<()> {
    let shop = shop.open()?;
    let texts = texts(shop.catalog());
    let goals = shop.goals().goals().iter().map(|goal| &*goal.instruction);
    let tokenizer = ShopTokenizer::train_like_qwen(texts.into_iter().chain(goals), N_LEARNED)?;
    let mut config = shape.config(tokenizer.vocab_size());
    if let Some(layers) = layers {
        config.num_hidden_layers = usize::from(layers);
    }
    let config = tokenizer.save_like_qwen(folder, &config)?;
    let observer = observer();
    observer.begin("weights", config.n_parameters() as u64, 0);
    checkpoint::save_random(&config, seed, folder, options, &|values| observer.advance(values, ""))?;
    observer.end();
    Ok(())
}

/// Everything that pages show of the products.
fn texts(catalog: &Catalog) -> Vec<&str> {
    let mut texts = Vec::new();
    for product in catalog.products() {
        texts.extend([&*product.title, &*product.description, &*product.query, &*product.product_category]);
        texts.extend(product.bullets.iter().chain(&product.attributes).map(|text| &**text));
        for group in &product.options {
            texts.push(&*group.name);
            texts.extend(group.values.iter().map(|value| &*value.text));
        }
    }
    texts
}

/// Writes a model, and copies what stood beside the one that it was made from.
fn write_beside_companions(
    model: &Qwen2,
    from: &Path,
    to: &Path,
    options: &SaveOptions,
) -> anyhow::Result<()> {
    Companions::read(from)?.write(to)?;
    Ok(checkpoint::save_as(model, to, options)?)
}
