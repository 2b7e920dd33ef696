//! The CUDA kernels emulated on the CPU: the same sources, compiled by the system's C compiler and run thread
//! by thread in a child process.
//!
//! Every launch runs twice, with the threads of a block in ascending and in descending order: if the results
//! differ, the kernel lacks a barrier. Buffers end at protected pages, and values that a kernel does not
//! write stay NaN.
//!
//! A recording holds the launches and products as values and executes them when it is replayed.
//!
//! For tests only: the emulator shows that a kernel computes what its reference implementation does, not how
//! fast.

use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use candle_core::{DType, Device, Result, Shape, Tensor, bail};

use crate::cpu::matmul::Store;
use crate::gpu::launch::{Arg, Kernels, Launch, Launcher, Recording, Specialization};
use crate::gpu::source::{SOURCE, definitions};

/// Executes launches, or adds them to the recording that is being made.
#[derive(Debug)]
struct Emulated {
    program: Arc<Program>,
    recorded: Mutex<Option<Vec<Work>>>,
}

/// A child process that runs kernels, and the folder that holds its program.
#[derive(Debug)]
struct Program {
    process: Mutex<Process>,
    _folder: tempfile::TempDir,
}

#[derive(Debug)]
struct Process {
    child: Child,
    requests: Option<ChildStdin>,
    responses: BufReader<ChildStdout>,
}

/// Emulated kernels for models of these sizes; `group` is the number of query heads for each key head.
///
/// # Panics
/// If there is no C compiler (`CC`, else `cc`), or it refuses the sources.
pub fn kernels(dtype: DType, head_dim: usize, group: usize) -> Kernels {
    let program = Arc::new(Program::new(Specialization { dtype, head_dim, group }));
    Kernels::Custom(Arc::new(Emulated { program, recorded: Mutex::new(None) }))
}

/// One step of a recording.
#[derive(Debug)]
enum Work {
    Launch { kernel: &'static str, grid: [usize; 3], threads: usize, args: Vec<Held> },
    Product { a: Tensor, b: Tensor, out: Tensor, store: Store },
}

/// An [`Arg`] that holds its tensor.
#[derive(Debug)]
enum Held {
    In(Tensor),
    Out(Tensor),
    Nothing,
    U32(u32),
    F32(f32),
}

impl From<&Arg<'_>> for Held {
    fn from(arg: &Arg<'_>) -> Self {
        match *arg {
            Arg::In(tensor) => Self::In(tensor.clone()),
            Arg::Out(tensor) => Self::Out(tensor.clone()),
            Arg::Nothing => Self::Nothing,
            Arg::U32(value) => Self::U32(value),
            Arg::F32(value) => Self::F32(value),
        }
    }
}

impl Held {
    fn arg(&self) -> Arg<'_> {
        match self {
            Self::In(tensor) => Arg::In(tensor),
            Self::Out(tensor) => Arg::Out(tensor),
            Self::Nothing => Arg::Nothing,
            Self::U32(value) => Arg::U32(*value),
            Self::F32(value) => Arg::F32(*value),
        }
    }
}

/// Recorded work with the program that executes it.
#[derive(Debug)]
struct EmulatedRecording {
    program: Arc<Program>,
    work: Vec<Work>,
}

impl Recording for EmulatedRecording {
    fn replay(&self) -> Result<()> {
        self.work.iter().try_for_each(|work| match work {
            Work::Launch { kernel, grid, threads, args } => {
                let args: Vec<Arg<'_>> = args.iter().map(Held::arg).collect();
                self.program.launch(&Launch { kernel, grid: *grid, threads: *threads, args: &args })
            }
            Work::Product { a, b, out, store } => product(a, b, out, *store),
        })
    }
}

impl Emulated {
    /// Adds `work` to the recording that is being made; `false` if there is none.
    fn adds(&self, work: impl FnOnce() -> Work) -> bool {
        let mut recorded = self.recorded.lock().unwrap();
        recorded.as_mut().map(|recorded| recorded.push(work())).is_some()
    }
}

impl Program {
    fn new(specialization: Specialization) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(folder.path(), &definitions(&specialization));
        let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (requests, responses) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { process: Mutex::new(Process { child, requests, responses }), _folder: folder }
    }

    /// Runs a kernel with the threads of a block in ascending or descending order, and returns the contents
    /// of its `Out` arguments, in argument order.
    fn run(&self, launch: &Launch<'_>, is_descending: bool) -> Result<Vec<Vec<u8>>> {
        let mut request = (launch.kernel.len() as u32).to_le_bytes().to_vec();
        request.extend(launch.kernel.as_bytes());
        let head =
            launch.grid.into_iter().chain([launch.threads, usize::from(is_descending), launch.args.len()]);
        head.for_each(|word| request.extend((word as u32).to_le_bytes()));
        let mut sizes = Vec::new();
        for arg in launch.args {
            match arg {
                Arg::Nothing => request.push(b'0'),
                Arg::U32(value) => request.extend([&[b'u'][..], &value.to_le_bytes()].concat()),
                Arg::F32(value) => request.extend([&[b'f'][..], &value.to_le_bytes()].concat()),
                Arg::In(tensor) | Arg::Out(tensor) => {
                    let memory = bytes(tensor)?;
                    request.push(if matches!(arg, Arg::Out(_)) { b'o' } else { b'i' });
                    request.extend((memory.len() as u64).to_le_bytes());
                    request.extend(&memory);
                    if matches!(arg, Arg::Out(_)) {
                        sizes.push(memory.len());
                    }
                }
            }
        }
        let mut process = self.process.lock().unwrap();
        let requests = process.requests.as_mut().expect("the pipe is open until the end");
        requests.write_all(&request)?;
        requests.flush()?;
        let mut written = Vec::new();
        for size in sizes {
            let mut memory = vec![0; size];
            process.responses.read_exact(&mut memory)?;
            written.push(memory);
        }
        Ok(written)
    }

    /// Runs a kernel in both orders and writes its results to the `Out` arguments.
    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        let written = self.run(launch, false)?;
        if self.run(launch, true)? != written {
            bail!("`{}` depends on the order of its threads", launch.kernel);
        }
        let outs = launch.args.iter().filter_map(|arg| match arg {
            Arg::Out(tensor) => Some(tensor),
            _ => None,
        });
        for (out, memory) in outs.zip(written) {
            let values = Tensor::from_raw_buffer(&memory, out.dtype(), &[out.elem_count()], &Device::Cpu)?;
            out.flatten_all()?.slice_set(&values, 0, 0)?;
        }
        Ok(())
    }
}

fn product(a: &Tensor, b: &Tensor, out: &Tensor, store: Store) -> Result<()> {
    let product = a.to_dtype(DType::F32)?.matmul(&b.to_dtype(DType::F32)?)?;
    let result = match store {
        Store::Set => product,
        Store::Add => (out.to_dtype(DType::F32)? + product)?,
    };
    out.slice_set(&result.to_dtype(out.dtype())?, 0, 0)
}

impl Launcher for Emulated {
    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        let &Launch { kernel, grid, threads, args } = launch;
        let recorded = || Work::Launch { kernel, grid, threads, args: args.iter().map(Held::from).collect() };
        if self.adds(recorded) { Ok(()) } else { self.program.launch(launch) }
    }

    fn empty(&self, shape: Shape, dtype: DType) -> Result<Tensor> {
        match dtype {
            DType::U32 => Tensor::full(u32::MAX, shape, &Device::Cpu),
            _ => Tensor::full(f32::NAN, shape, &Device::Cpu)?.to_dtype(dtype),
        }
    }

    fn product(&self, a: &Tensor, b: &Tensor, out: &Tensor, store: Store) -> Result<()> {
        let recorded = || Work::Product { a: a.clone(), b: b.clone(), out: out.clone(), store };
        if self.adds(recorded) { Ok(()) } else { product(a, b, out, store) }
    }

    fn record(&self, work: &dyn Fn() -> Result<()>) -> Result<Box<dyn Recording>> {
        *self.recorded.lock().unwrap() = Some(Vec::new());
        let worked = work();
        let recorded = self.recorded.lock().unwrap().take();
        worked?;
        let work = recorded.expect("it was begun above");
        Ok(Box::new(EmulatedRecording { program: self.program.clone(), work }))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process exits at the end of its input.
        drop(self.requests.take());
        drop(self.child.wait());
    }
}

fn bytes(tensor: &Tensor) -> Result<Vec<u8>> {
    if !tensor.is_contiguous() {
        bail!("kernels take contiguous tensors, got {:?}", tensor.layout());
    }
    let flat = tensor.flatten_all()?;
    Ok(match tensor.dtype() {
        DType::F32 => flat.to_vec1::<f32>()?.into_iter().flat_map(f32::to_le_bytes).collect(),
        DType::U32 => flat.to_vec1::<u32>()?.into_iter().flat_map(u32::to_le_bytes).collect(),
        DType::BF16 => {
            // The upper half of the f32 of the same value.
            let wide = flat.to_dtype(DType::F32)?.to_vec1::<f32>()?;
            wide.into_iter().flat_map(|value| ((value.to_bits() >> 16) as u16).to_le_bytes()).collect()
        }
        other => bail!("no kernel takes {other:?}"),
    })
}

/// Compiles the kernels together with the emulated CUDA built-ins and the main loop.
fn compile(folder: &Path, definitions: &[String]) -> std::path::PathBuf {
    let (source, program) = (folder.join("kernels.c"), folder.join("kernels"));
    let parts = [include_str!("cuda/emulation.h"), SOURCE, include_str!("cuda/emulation.c")];
    std::fs::write(&source, parts.concat()).unwrap();
    let compiled = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-std=gnu11", "-O1", "-Wall", "-Werror", "-Wno-unknown-pragmas", "-Wno-unused-function"])
        .args(definitions)
        .arg("-o")
        .args([&program, &source])
        .arg("-lm")
        .output()
        .expect("building the workspace's dependencies took a C compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    program
}
