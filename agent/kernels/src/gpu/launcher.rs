//! The custom kernels on an NVIDIA GPU: compiled by nvrtc when a model is loaded, launched through cudarc.
//!
//! [`open`] makes the device with its one stream, on which candle's operations, cuBLAS and the custom kernels
//! run in order. [`CudaLauncher`] compiles the sources for a model's sizes and the GPU's architecture, and
//! executes launches.
//!
//! `unsafe` is used to launch kernels, to call cuBLAS, to allocate uninitialized memory and to set up the
//! driver. All blocks rely on one fact: memory is freed in the order of the stream, so an address stays valid
//! for all work that was enqueued while its tensor lived. A recording, which enqueues its work later, keeps the tensors that it
//! has addresses of.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use candle_core::cuda_backend::cudarc::cublas::{CudaBlas, result as cublas, sys as cublas_sys};
use candle_core::cuda_backend::cudarc::driver::{
    CudaContext, CudaFunction, CudaGraph, CudaSlice, CudaStream, DevicePtr, LaunchConfig, PushKernelArg,
    result::mem_pool, sys,
};
use candle_core::cuda_backend::cudarc::nvrtc::{CompileError, CompileOptions, compile_ptx_with_opts};
use candle_core::cuda_backend::{CudaStorageSlice, WrapErr};
use candle_core::{CudaDevice, DType, Device, Result, Shape, Storage, Tensor, bail};

use crate::cpu::matmul::Store;
use crate::gpu::launch::{Arg, Launch, Launcher, Recording, Specialization};
use crate::gpu::source::{SOURCE, definitions, kernel_names};

/// Opens the GPU with this ordinal and checks a small computation on it. Fails with the driver's reason.
#[expect(unsafe_code, reason = "sets up the driver")]
pub fn open(ordinal: usize) -> Result<Device> {
    let n_devices = CudaContext::device_count().w()?;
    if ordinal >= n_devices.max(0) as usize {
        bail!("the driver reports {n_devices} devices");
    }
    let device = Device::new_cuda_with_stream(ordinal)?;
    let cuda = device.as_cuda_device()?;
    // SAFETY: events order accesses from several streams. This device has one, on which everything is
    // enqueued.
    unsafe { cuda.disable_event_tracking() };
    keep_memory(&cuda.cuda_stream())?;
    let probe = (Tensor::new(&[1.0_f32, 2.0], &device)? * 3.0)?.to_vec1::<f32>()?;
    if probe != [3.0, 6.0] {
        bail!("the device computes 3 · (1, 2) as {probe:?}");
    }
    Ok(device)
}

/// The default memory pool of a device.
#[expect(unsafe_code, reason = "calls the driver")]
fn pool(stream: &CudaStream) -> Result<sys::CUmemoryPool> {
    let mut pool = std::ptr::null_mut();
    // SAFETY: the context is alive as long as its stream, and the driver writes one handle.
    unsafe { sys::cuDeviceGetDefaultMemPool(&mut pool, stream.context().cu_device()) }.result().w()?;
    Ok(pool)
}

/// Makes the driver keep freed memory for later allocations instead of releasing it at every synchronization.
#[expect(unsafe_code, reason = "calls the driver")]
fn keep_memory(stream: &CudaStream) -> Result<()> {
    let mut threshold = u64::MAX;
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the default pool lives as long as the device; this attribute is read as a u64.
    unsafe { mem_pool::set_attribute(pool(stream)?, attribute, (&raw mut threshold).cast::<c_void>()) }.w()
}

/// Returns the peak number of bytes in use since the last call of [`reset_peak`].
#[expect(unsafe_code, reason = "calls the driver")]
pub fn peak_bytes(device: &Device) -> Result<u64> {
    let mut bytes = 0_u64;
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    let pool = pool(&device.as_cuda_device()?.cuda_stream())?;
    // SAFETY: the default pool lives as long as the device; this attribute is written as a u64.
    unsafe { mem_pool::get_attribute(pool, attribute, (&raw mut bytes).cast::<c_void>()) }.w()?;
    Ok(bytes)
}

/// Resets the peak to the number of bytes in use now.
#[expect(unsafe_code, reason = "calls the driver")]
pub fn reset_peak(device: &Device) -> Result<()> {
    let mut zero = 0_u64;
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    let pool = pool(&device.as_cuda_device()?.cuda_stream())?;
    // SAFETY: the default pool lives as long as the device; zero is the only value this attribute can be set
    // to.
    unsafe { mem_pool::set_attribute(pool, attribute, (&raw mut zero).cast::<c_void>()) }.w()
}

/// The name of the GPU and its memory in bytes.
pub fn describe(device: &Device) -> Result<(String, usize)> {
    let stream = device.as_cuda_device()?.cuda_stream();
    Ok((stream.context().name().w()?, stream.context().total_mem().w()?))
}

/// The compiled kernels of one model on one GPU.
#[derive(Debug)]
pub struct CudaLauncher {
    device: CudaDevice,
    stream: Arc<CudaStream>,
    blas: Arc<CudaBlas>,
    functions: HashMap<String, CudaFunction>,
    /// The recording that is being made.
    recorded: Mutex<Option<Recorded>>,
}

/// What a thread has recorded so far, beside the graph that the driver records.
#[derive(Debug)]
struct Recorded {
    thread: ThreadId,
    /// Addresses that were allocated while it records, which belong to the graph.
    own: HashSet<sys::CUdeviceptr>,
    /// All other tensors that the graph reads or writes.
    held: Vec<Tensor>,
}

impl CudaLauncher {
    /// Compiles the sources for the architecture of `device`.
    pub fn new(device: &Device, specialization: &Specialization) -> Result<Self> {
        let device = device.as_cuda_device()?.clone();
        let stream = device.cuda_stream();
        let (major, minor) = stream.context().compute_capability().w()?;
        let mut options = vec![format!("--gpu-architecture=compute_{major}{minor}")];
        options.extend(definitions(specialization));
        let options = CompileOptions { options, ..CompileOptions::default() };
        let ptx = compile_ptx_with_opts(SOURCE, options).map_err(explain)?;
        let module = stream.context().load_module(ptx).w()?;
        let functions = kernel_names()
            .map(|name| Ok((name.to_owned(), module.load_function(name).w()?)))
            .collect::<Result<_>>()?;
        let recorded = Mutex::new(None);
        Ok(Self { blas: device.cublas_handle(), device, stream, functions, recorded })
    }

    /// The recording that is being made. Fails if it is another thread's.
    fn recorded(&self) -> Result<MutexGuard<'_, Option<Recorded>>> {
        // A panic elsewhere cannot leave the entries half written.
        let recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        match recorded.as_ref().is_some_and(|other| other.thread != thread::current().id()) {
            true => bail!("another thread records on this device"),
            false => Ok(recorded),
        }
    }

    /// The address of a contiguous tensor's first value.
    fn address(&self, tensor: &Tensor) -> Result<sys::CUdeviceptr> {
        if !tensor.is_contiguous() {
            bail!("kernels take contiguous tensors, got {:?}", tensor.layout());
        }
        self.start(tensor)
    }

    /// The address of a tensor's first value, with any strides.
    fn start(&self, tensor: &Tensor) -> Result<sys::CUdeviceptr> {
        let base = self.base(tensor)?;
        if let Some(recorded) = self.recorded()?.as_mut().filter(|recorded| !recorded.own.contains(&base)) {
            recorded.held.push(tensor.clone());
        }
        Ok(base + (tensor.layout().start_offset() * tensor.dtype().size_in_bytes()) as u64)
    }

    /// The address of the memory that a tensor is a view of.
    fn base(&self, tensor: &Tensor) -> Result<sys::CUdeviceptr> {
        let (storage, _) = tensor.storage_and_layout();
        let Storage::Cuda(storage) = &*storage else {
            bail!("kernels take tensors on their GPU, got one on {:?}", tensor.device().location());
        };
        if storage.device.id() != self.device.id() {
            bail!("kernels take tensors of their own stream");
        }
        Ok(match &storage.slice {
            CudaStorageSlice::F32(slice) => first(slice, &self.stream),
            CudaStorageSlice::BF16(slice) => first(slice, &self.stream),
            CudaStorageSlice::U32(slice) => first(slice, &self.stream),
            _ => bail!("no kernel takes {:?}", tensor.dtype()),
        })
    }
}

fn first<T>(slice: &CudaSlice<T>, stream: &CudaStream) -> sys::CUdeviceptr {
    slice.device_ptr(stream).0
}

/// A kernel argument as the driver copies it.
enum Word {
    Address(sys::CUdeviceptr),
    U32(u32),
    F32(f32),
}

impl Launcher for CudaLauncher {
    #[expect(unsafe_code, reason = "launches a kernel")]
    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        let Some(function) = self.functions.get(launch.kernel) else {
            bail!("there is no kernel `{}`", launch.kernel);
        };
        let words = launch.args.iter().map(|arg| {
            Ok(match arg {
                Arg::In(tensor) | Arg::Out(tensor) => Word::Address(self.address(tensor)?),
                Arg::Nothing => Word::Address(0),
                Arg::U32(value) => Word::U32(*value),
                Arg::F32(value) => Word::F32(*value),
            })
        });
        let words = words.collect::<Result<Vec<_>>>()?;
        let mut builder = self.stream.launch_builder(function);
        for word in &words {
            match word {
                Word::Address(address) => builder.arg(address),
                Word::U32(value) => builder.arg(value),
                Word::F32(value) => builder.arg(value),
            };
        }
        let [x, y, z] = launch.grid.map(|blocks| blocks as u32);
        let config = LaunchConfig {
            grid_dim: (x, y, z),
            block_dim: (launch.threads as u32, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the arguments have the kinds and the order of the kernel's declaration, and the tensors the
        // sizes it reads and writes: the same launches run in tests, in fenced memory. The tensors live until
        // the launch is enqueued, and their memory is freed in the order of the same stream.
        unsafe { builder.launch(config) }.w()?;
        Ok(())
    }

    #[expect(unsafe_code, reason = "allocates uninitialized memory")]
    fn empty(&self, shape: Shape, dtype: DType) -> Result<Tensor> {
        // SAFETY: every bit pattern is a value of these types, and the caller must write the memory before
        // reading it.
        let tensor = unsafe { Tensor::empty(shape, dtype, &Device::Cuda(self.device.clone())) }?;
        if let Some(recorded) = self.recorded()?.as_mut() {
            recorded.own.insert(self.base(&tensor)?);
        }
        Ok(tensor)
    }

    fn product(&self, a: &Tensor, b: &Tensor, out: &Tensor, store: Store) -> Result<()> {
        let ((m, k), (b_rows, n)) = (a.dims2()?, b.dims2()?);
        let has_dtype = out.dtype() == DType::F32 || out.dtype() == a.dtype();
        if b_rows != k || out.dims() != [m, n] || !has_dtype || a.dtype() != b.dtype() {
            bail!("cannot store {a:?} times {b:?} in {out:?}");
        }
        // cuBLAS is column-major, so it sees every row-major matrix as its transpose: outᵀ = bᵀ aᵀ.
        let (a_turn, a_step) = turn(a)?;
        let (b_turn, b_step) = turn(b)?;
        let formats = [format(a)?, format(out)?];
        let (alpha, beta) = (1.0_f32, if store == Store::Add { 1.0_f32 } else { 0.0 });
        let (a, b, out) = (self.start(a)?, self.start(b)?, self.address(out)?);
        self.multiply(
            [(b_turn, b, b_step), (a_turn, a, a_step)],
            out,
            [n, m, k].map(|size| size as i32),
            formats,
            [alpha, beta],
        )
    }

    fn record(&self, work: &dyn Fn() -> Result<()>) -> Result<Box<dyn Recording>> {
        let thread = thread::current().id();
        *self.recorded()? = Some(Recorded { thread, own: HashSet::new(), held: Vec::new() });
        let graph = self.capture(work);
        let held = self.recorded()?.take().map(|recorded| recorded.held);
        Ok(Box::new(RecordedGraph { graph: Mutex::new(graph?), _held: held.unwrap_or_default() }))
    }
}

impl CudaLauncher {
    /// The graph of what `work` enqueues.
    fn capture(&self, work: &dyn Fn() -> Result<()>) -> Result<CudaGraph> {
        // Of other threads nothing but their use of this stream is restricted.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        self.stream.begin_capture(mode).w()?;
        let worked = work();
        // The capture ends even if the work failed: until then the stream executes nothing.
        let graph = self.stream.end_capture(sys::CUgraphInstantiate_flags(0));
        worked?;
        match graph.w()? {
            Some(graph) => Ok(graph),
            None => bail!("the driver recorded no graph"),
        }
    }
}

/// A CUDA graph. Its memory nodes allocate what the recorded work allocated, at the same addresses in each replay.
struct RecordedGraph {
    graph: Mutex<CudaGraph>,
    /// The tensors outside of the graph whose addresses it has.
    _held: Vec<Tensor>,
}

// SAFETY: a graph may be used from any thread, but from one at a time, which the mutex ensures; `CudaGraph` binds its
// context to the thread that calls it.
#[expect(unsafe_code, reason = "the driver's handles are pointers")]
unsafe impl Send for RecordedGraph {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "the driver's handles are pointers")]
unsafe impl Sync for RecordedGraph {}

impl fmt::Debug for RecordedGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordedGraph")
    }
}

impl Recording for RecordedGraph {
    fn replay(&self) -> Result<()> {
        // A panic elsewhere cannot leave a graph half launched.
        self.graph.lock().unwrap_or_else(PoisonError::into_inner).launch().w()
    }
}

/// The dtype of a matrix as cuBLAS names it.
fn format(x: &Tensor) -> Result<cublas_sys::cudaDataType_t> {
    match x.dtype() {
        DType::F32 => Ok(cublas_sys::cudaDataType_t::CUDA_R_32F),
        DType::BF16 => Ok(cublas_sys::cudaDataType_t::CUDA_R_16BF),
        other => bail!("no matrix product for {other:?}"),
    }
}

impl CudaLauncher {
    /// outᵀ = beta outᵀ + bᵀ aᵀ, accumulated in f32. Each operand is (transposition, address, leading
    /// dimension); `format` is that of both operands, and `out_format` that of the result.
    #[expect(unsafe_code, reason = "calls cuBLAS")]
    fn multiply(
        &self,
        [(turn_b, b, step_b), (turn_a, a, step_a)]: [(cublas_sys::cublasOperation_t, u64, i32); 2],
        out: u64,
        [n, m, k]: [i32; 3],
        [format, out_format]: [cublas_sys::cudaDataType_t; 2],
        [alpha, beta]: [f32; 2],
    ) -> Result<()> {
        // SAFETY: sizes and leading dimensions were taken from the tensors, which the caller holds until the
        // call is enqueued; alpha and beta are read before the call returns.
        unsafe {
            cublas::gemm_ex(
                *self.blas.handle(),
                turn_b,
                turn_a,
                n,
                m,
                k,
                (&raw const alpha).cast(),
                b as *const c_void,
                format,
                step_b,
                a as *const c_void,
                format,
                step_a,
                (&raw const beta).cast(),
                out as *mut c_void,
                out_format,
                n,
                cublas_sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                cublas_sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        }
        .w()
    }
}

/// Whether cuBLAS must transpose a matrix, and its leading dimension.
fn turn(x: &Tensor) -> Result<(cublas_sys::cublasOperation_t, i32)> {
    use cublas_sys::cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T};
    let (rows, cols) = x.dims2()?;
    match *x.stride() {
        [step, 1] if step >= cols => Ok((CUBLAS_OP_N, step as i32)),
        [1, step] if step >= rows => Ok((CUBLAS_OP_T, step as i32)),
        _ => bail!("a matrix product takes operands with contiguous rows or columns, got {:?}", x.layout()),
    }
}

/// The error with nvrtc's log as text.
fn explain(error: CompileError) -> candle_core::Error {
    match error {
        CompileError::CompileError { log, options, .. } => {
            candle_core::Error::Msg(format!("nvrtc {options:?}: {}", log.to_string_lossy()))
        }
        other => candle_core::Error::Msg(format!("nvrtc: {other}")),
    }
}
