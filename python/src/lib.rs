//! The shop as a Python extension module, `webshop._native`.
//!
//! A `Shop` is opened from its arguments and pickles as them; equal arguments share one index in a process. A
//! `Session` is one episode, `Lanes` many that step together, `Episode` a recorded one, `CompactPrompt` what our own agents read of one. Calls
//! that compute run detached from the interpreter.
//!
//! Everything that follows an interface of a Python library is written in Python, in `webshop/`.

#[cfg(feature = "command-line")]
mod command_line;
mod compact;
mod convert;
mod episode;
mod goals;
mod info;
mod lanes;
mod observation;
mod open;
mod pool;
mod session;
mod shop;
#[cfg(feature = "command-line")]
mod training;

use compact::CompactPrompt;
use episode::Episode;
use lanes::Lanes;
use pyo3::prelude::*;
use session::Session;
use shop::Shop;

/// The native part of `webshop`.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Shop>()?;
    module.add_class::<Session>()?;
    module.add_class::<Lanes>()?;
    module.add_class::<Episode>()?;
    module.add_class::<CompactPrompt>()?;
    #[cfg(feature = "command-line")]
    {
        module.add_function(wrap_pyfunction!(command_line::main, module)?)?;
        module.add_function(wrap_pyfunction!(training::train, module)?)?;
        module.add_class::<training::RolloutWorker>()?;
    }
    Ok(())
}
