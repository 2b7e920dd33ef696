//! Our own kernels as values: what is launched, with which arguments, by whom.
//!
//! A [`Launch`] names a kernel of `kernels/cuda/`, the grid it runs on and its arguments in the order of its
//! declaration. A [`Launcher`] carries launches out: the GPU, or, in tests, the same sources compiled for the CPU and
//! run thread by thread. Every shape and every argument is therefore decided in code that runs without a GPU.
//!
//! [`Kernels`] is what a model holds: a launcher, or none, in which case each operation in [`webshop_lm::ops::gpu`] is made of
//! candle's operations instead, its plain twin.

use std::fmt::Debug;
use std::sync::Arc;

use candle_core::{DType, Result, Shape, Tensor};

use crate::cpu::matmul::Store;

/// Values that a kernel handles with one load: sixteen bytes. Widths of rows must be a multiple of it.
pub const VECTOR_BYTES: usize = 16;

/// What the sources are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Specialization {
    /// Activations and weights: f32 or bf16.
    pub dtype: DType,
    /// Values a head.
    pub head_dim: usize,
    /// Query heads that share a key head.
    pub group: usize,
}

/// One argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// Memory that is read.
    In(&'a Tensor),
    /// Memory that is written, and perhaps read before.
    Out(&'a Tensor),
    /// No memory, where the kernel allows it.
    Nothing,
    /// A count or an index.
    U32(u32),
    /// A number.
    F32(f32),
}

/// A kernel about to run.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// Its name in the sources.
    pub kernel: &'static str,
    /// Blocks in x, y and z.
    pub grid: [usize; 3],
    /// Threads a block, a multiple of 32.
    pub threads: usize,
    /// In the order of the declaration.
    pub args: &'a [Arg<'a>],
}

/// Who carries launches out.
pub trait Launcher: Debug + Send + Sync {
    /// Runs a kernel after everything that was asked for before.
    ///
    /// Tensors must be contiguous, on the launcher's device, and as large as the kernel expects.
    fn launch(&self, launch: &Launch<'_>) -> Result<()>;

    /// A tensor whose values are not set; a kernel or [`Launcher::product`] must write all of them.
    fn empty(&self, shape: Shape, dtype: DType) -> Result<Tensor>;

    /// `out` = (or +=) `a · b`, summed and stored in f32 whatever the operands are. `[m, k] · [k, n] → [m, n]`;
    /// the operands may be transposed views.
    fn product(&self, a: &Tensor, b: &Tensor, out: &Tensor, store: Store) -> Result<()>;

    /// Records what `work` asks of the device instead of doing it, to be repeated as a whole.
    ///
    /// `work` must not wait for the device, and the tensors it uses must outlive the result.
    fn capture(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Replay>;
}

/// Recorded work; every call enqueues all of it.
pub type Replay = Box<dyn FnMut() -> Result<()>>;

/// Our kernels, or the operations of candle in their place.
#[derive(Clone, Debug)]
pub enum Kernels {
    /// Each operation is one or two kernels of ours.
    Own(Arc<dyn Launcher>),
    /// Each operation is its plain twin.
    Plain,
}

impl Kernels {
    /// The launcher for rows of these widths of `dtype`, if our kernels can do them.
    pub fn for_widths(&self, dtype: DType, widths: &[usize]) -> Option<&dyn Launcher> {
        let fit = |width: &usize| (width * dtype.size_in_bytes()).is_multiple_of(VECTOR_BYTES);
        match self {
            Self::Own(launcher) if widths.iter().all(fit) => Some(launcher.as_ref()),
            _ => None,
        }
    }

    /// The launcher, if there is one.
    pub fn own(&self) -> Option<&dyn Launcher> {
        self.for_widths(DType::F32, &[])
    }
}

/// `n` as an argument.
///
/// # Panics
/// If it does not fit; sizes of one tensor's dimension do.
pub fn count(n: usize) -> Arg<'static> {
    Arg::U32(u32::try_from(n).expect("dimensions of tensors stay below 2³²"))
}
