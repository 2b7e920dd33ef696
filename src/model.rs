//! `webshop model`: creates, inspects, merges and converts model folders in the Hugging Face layout.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use webshop_lm::checkpoint;
use webshop_lm::checkpoint::{Companions, SaveOptions, Survey, WeightType};
use webshop_lm::lora::Lora;
use webshop_lm::{BpeTokenizer, KnownShape, Qwen2};
use webshop_products::{Catalog, PARTIAL, Seed};

use crate::args::shop::ShopArgs;
use crate::output::{ensure_new, outln};
use crate::progress::observer;

/// Limit of the vocabulary of a new model's tokenizer, bytes included; a small catalog yields fewer tokens.
const MAX_VOCAB: usize = 8192;

/// The commands of `webshop model`.
#[derive(clap::Subcommand)]
pub(crate) enum ModelCommand {
    /// Create a model with random weights, and a tokenizer trained on the text of a catalog
    New {
        /// Shape: tiny, or that of Qwen2.5 0.5b, 1.5b or 3b
        #[arg(long, value_name = "NAME")]
        shape: KnownShape,
        /// Number of decoder layers [default: that of the shape]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
        layers: Option<u16>,
        /// Seed of the weights
        #[arg(long, default_value_t = 0, value_name = "N")]
        seed: u64,
        #[command(flatten)]
        shop: ShopArgs,
        #[command(flatten)]
        to: OutArgs,
    },
    /// Print shape, parameters, weights, tokenizer and chat template of a model, and problems that prevent
    /// its use; the exit code is 1 if there are any
    Inspect {
        /// Model folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Also read all weights and report NaN and infinite values; slow
        #[arg(long)]
        weights: bool,
        /// Print one JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Merge a LoRA adapter in PEFT's layout into the weights of a model
    Merge {
        /// Model folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Adapter folder
        #[arg(long, value_name = "DIR")]
        adapter: PathBuf,
        #[command(flatten)]
        to: OutArgs,
    },
    /// Copy a model with another number format of the weights, or another file size
    Convert {
        /// Model folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        #[command(flatten)]
        to: OutArgs,
    },
}

/// The model folder to write.
#[derive(clap::Args)]
pub(crate) struct OutArgs {
    /// Number format of the weights in the files
    #[arg(long, value_enum, default_value = "f32", value_name = "FORMAT")]
    dtype: WeightTypeArg,
    /// Maximum size of a weight file, in megabytes
    #[arg(long, default_value_t = 5000, value_name = "MB",
          value_parser = clap::value_parser!(u32).range(1..))]
    shard_mb: u32,
    /// Folder to create; must not exist
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

/// Runs a command.
pub(crate) fn run(command: ModelCommand) -> anyhow::Result<ExitCode> {
    match command {
        ModelCommand::New { shape, layers, seed, shop, to } => {
            to.write(|folder, options| new(shape, layers, Seed(seed), &shop, folder, options))?;
        }
        ModelCommand::Inspect { folder, weights, json } => {
            let survey = Survey::of(&folder, weights);
            if json {
                outln!("{}", serde_json::to_string(&survey)?)?;
            } else {
                outln!("{survey}")?;
            }
            return Ok(if survey.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        ModelCommand::Merge { folder, adapter, to } => {
            to.write(|out, options| {
                let base = checkpoint::load(&folder)?;
                let merged = base.adapted(Lora::load(&adapter, &base.matrices())?)?.merged()?;
                write_with_companions(&merged, &folder, out, options)
            })?;
        }
        ModelCommand::Convert { folder, to } => {
            to.write(|out, options| {
                write_with_companions(&checkpoint::load(&folder)?, &folder, out, options)
            })?;
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

    /// Writes the folder under a temporary name and renames it when it is complete.
    fn write(&self, write: impl FnOnce(&Path, &SaveOptions) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let out = &self.out;
        ensure_new(out, "name another folder with `--out`")?;
        let name = out.file_name().context("`--out` must name a folder")?.to_string_lossy();
        let partial = out.with_file_name(format!("{PARTIAL}{name}"));
        if partial.exists() {
            bail!("`{}` is left from an interrupted run; remove it first", partial.display());
        }
        let cannot_write = || format!("cannot write `{}`", out.display());
        fs::create_dir_all(&partial).with_context(cannot_write)?;
        let written = write(&partial, &self.options())
            .and_then(|()| fs::rename(&partial, out).with_context(cannot_write));
        if written.is_err() {
            // The first error matters; a failure to remove the incomplete folder would hide it.
            let _ = fs::remove_dir_all(&partial);
        }
        written?;
        outln!("model in {}", out.display())
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
    let tokenizer = BpeTokenizer::train_like_qwen(texts.into_iter().chain(goals), MAX_VOCAB)?;
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

/// All texts of products that pages show.
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

/// Writes the weights, and copies tokenizer, chat template and further files of the folder `from`.
fn write_with_companions(model: &Qwen2, from: &Path, to: &Path, options: &SaveOptions) -> anyhow::Result<()> {
    Companions::read(from)?.write(to)?;
    Ok(checkpoint::save_as(model, to, options)?)
}
