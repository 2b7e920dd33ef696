//! The program `webshop`; everything is in the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    webshop_cli::main(std::env::args_os().collect())
}
