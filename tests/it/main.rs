//! Integration tests: one module per promise of the whole project, all in one binary, so that there is one link.

/// The allocator of the binary: training allocates and frees many activations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod common;

mod architecture;
mod fuzz_corpus;

mod catalog;
mod determinism;
mod difficulty;
mod episodes;
mod pages;
mod parity;
mod replay;
mod search;
mod validate;

mod convert;
mod prompts;
mod remote;
mod serve;
mod site;
mod transformers;

mod fine_tuning;
mod gpu_backend;
mod shop_r1;
mod sweep;
mod training;
mod zero_rewards;

mod cli;
mod model_cli;
mod refusals;
mod remote_cli;
mod shards;
mod site_cli;
mod watch;
