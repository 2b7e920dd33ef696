//! Kernel launches as values.
//!
//! A [`Launch`] names a kernel of `cuda/*.cu`, its grid and its arguments in the order of the declaration. A
//! [`Launcher`] executes launches: a GPU, or, in tests, the same sources compiled for the CPU. Shapes and
//! arguments are therefore computed by code that runs without a GPU.
//!
//! A model holds [`Kernels`]: a launcher for the custom kernels, or [`Kernels::Reference`], with which each
//! operation uses its reference implementation made of candle's operations.

use std::fmt::Debug;
use std::sync::Arc;

use candle_core::{DType, Result, Shape, Tensor};

use crate::cpu::matmul::Store;

/// Bytes that a kernel loads at once. The size of a row must be a multiple of it.
pub const VECTOR_BYTES: usize = 16;

/// The constants that the sources are compiled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Specialization {
    /// Type of activations and weights: f32 or bf16.
    pub dtype: DType,
    /// Values of a head (D).
    pub head_dim: usize,
    /// Query heads for each key head (G).
    pub group: usize,
}

/// One argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// A buffer that the kernel reads.
    In(&'a Tensor),
    /// A buffer that the kernel writes and may read before.
    Out(&'a Tensor),
    /// A null pointer, for an optional buffer.
    Nothing,
    /// A count or an index.
    U32(u32),
    /// A scalar.
    F32(f32),
}

/// One kernel launch.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The name of the kernel in the sources.
    pub kernel: &'static str,
    /// Number of blocks in x, y and z.
    pub grid: [usize; 3],
    /// Threads of a block, a multiple of 32.
    pub threads: usize,
    /// Arguments in the order of the declaration.
    pub args: &'a [Arg<'a>],
}

/// Work that [`Launcher::record`] recorded.
pub trait Recording: Debug + Send + Sync {
    /// Enqueues the recorded launches and products in their order. They read and write the tensors that were recorded, which
    /// the recording keeps alive.
    fn replay(&self) -> Result<()>;
}

/// Executes kernel launches.
pub trait Launcher: Debug + Send + Sync {
    /// Enqueues a kernel after all earlier work.
    ///
    /// Tensors must be contiguous, on the launcher's device, and of the size that the kernel expects.
    fn launch(&self, launch: &Launch<'_>) -> Result<()>;

    /// An uninitialized tensor; a kernel or [`Launcher::product`] must write all its values.
    fn empty(&self, shape: Shape, dtype: DType) -> Result<Tensor>;

    /// `out = a · b` or `out += a · b`, accumulated in f32 and stored in the dtype of `out`: f32 or that of the operands.
    /// `[m, k] · [k, n] → [m, n]`; the operands may be transposed views.
    fn product(&self, a: &Tensor, b: &Tensor, out: &Tensor, store: Store) -> Result<()>;

    /// Records what `work` enqueues, without executing it. `work` may use the device through the other methods only, and must
    /// not keep what [`empty`](Self::empty) returns to it: that memory belongs to the recording. Meanwhile other threads must
    /// not use the device.
    fn record(&self, work: &dyn Fn() -> Result<()>) -> Result<Box<dyn Recording>>;
}

/// The implementation of a model's operations on a device.
#[derive(Clone, Debug)]
pub enum Kernels {
    /// Custom kernels: an operation is one or two launches.
    Custom(Arc<dyn Launcher>),
    /// Reference implementations, made of candle's operations.
    Reference,
}

impl Kernels {
    /// The launcher, if there is one and the kernels support rows of these `widths` in `dtype`.
    pub fn launcher_for_widths(&self, dtype: DType, widths: &[usize]) -> Option<&dyn Launcher> {
        let fit = |width: &usize| (width * dtype.size_in_bytes()).is_multiple_of(VECTOR_BYTES);
        match self {
            Self::Custom(launcher) if widths.iter().all(fit) => Some(launcher.as_ref()),
            _ => None,
        }
    }

    /// The launcher, if there is one.
    pub fn launcher(&self) -> Option<&dyn Launcher> {
        self.launcher_for_widths(DType::F32, &[])
    }
}

/// A count as a kernel argument.
///
/// # Panics
/// If `n` does not fit into 32 bits.
pub fn count(n: usize) -> Arg<'static> {
    Arg::U32(u32::try_from(n).expect("dimensions of tensors stay below 2³²"))
}
