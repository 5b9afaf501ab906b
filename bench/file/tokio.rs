// tokio's runtime of one thread: tasks that read with tokio::fs, whose buffers O_DIRECT does not take: there each read
// is a spawn_blocking. The work is that of file.hpp.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncSeekExt, SeekFrom};
use tokio::task::{spawn_blocking, spawn_local, yield_now, LocalSet};

struct Work {
    path: String,
    access: String,
    depth: u64,
    bytes: usize,
    blocks: u64,
    ends: Instant,
}

impl Work {
    fn from_inputs() -> Work {
        let word = |name: &str| std::env::var(name).expect("started by bench/run.py");
        let bytes = harness::input("BYTES");
        Work {
            path: word("PIRN_BENCH_FILE"),
            access: word("PIRN_BENCH_ACCESS"),
            depth: harness::input("DEPTH"),
            bytes: bytes as usize,
            blocks: (harness::input("FILE_MB") << 20) / bytes,
            ends: Instant::now() + Duration::from_secs(harness::input("SECONDS")),
        }
    }

    fn block(&self, reader: u64, turn: u64) -> u64 {
        match self.access.as_str() {
            "sequential" => turn,
            "cold" => turn * 167 % self.blocks,
            _ => {
                let mixed = (reader << 40) + turn + 1;
                let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58476d1ce4e5b9);
                let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d049bb133111eb);
                (mixed ^ mixed >> 31) % self.blocks
            }
        }
    }

    fn is_over(&self, turn: u64) -> bool {
        match self.access.as_str() {
            "sequential" => turn == self.blocks,
            "cold" => turn == self.blocks.min(400),
            _ => Instant::now() >= self.ends,
        }
    }

    fn row(&self, measure: &str, unit: &str, value: f64) {
        let Work { access, depth, bytes, .. } = self;
        let params = format!(r#"{{"access":"{access}","depth":{depth},"bytes":{bytes},"measure":"{measure}"}}"#);
        harness::row("file", "tokio", &params, unit, value, "");
    }
}

/// How a reader reads: `buffer` is what it reads into, and has the block from `at` on.
enum Source {
    Async(tokio::fs::File),
    Direct(Arc<File>),
}

async fn read_blocks(work: &Work, reader: u64, mut source: Source) -> Vec<i64> {
    let mut buffer = vec![0u8; work.bytes + 4096];
    let at = buffer.as_ptr().align_offset(4096);
    let mut took = Vec::new();
    let mut turn = 0;
    while !work.is_over(turn) {
        let offset = work.block(reader, turn) * work.bytes as u64;
        let began = Instant::now();
        match &mut source {
            Source::Async(file) => {
                file.seek(SeekFrom::Start(offset)).await.expect("a position");
                file.read_exact(&mut buffer[at..at + work.bytes]).await.expect("a block");
            }
            Source::Direct(file) => {
                let (file, bytes) = (file.clone(), work.bytes);
                buffer = spawn_blocking(move || {
                    file.read_exact_at(&mut buffer[at..at + bytes], offset).expect("a block");
                    buffer
                })
                .await
                .expect("a thread");
            }
        }
        took.push(began.elapsed().as_nanos() as i64);
        let number = u64::from_le_bytes(buffer[at..at + 8].try_into().expect("8 bytes"));
        harness::check(number == offset / 4096, "it is the right block");
        turn += 1;
    }
    took
}

async fn read_all(work: Rc<Work>) {
    let direct = work.access == "direct";
    let shared = std::fs::OpenOptions::new().read(true).custom_flags(if direct { libc::O_DIRECT } else { 0 }).open(&work.path);
    let shared = Arc::new(shared.expect("the file"));
    let reading = Rc::new(Cell::new(work.depth));
    let (began, cpu) = (harness::wall_ns(), harness::now_ns());
    let mut readers = Vec::new();
    for reader in 0..work.depth {
        let source = match direct {
            true => Source::Direct(shared.clone()),
            false => Source::Async(tokio::fs::File::open(&work.path).await.expect("the file")),
        };
        let (work, reading) = (work.clone(), reading.clone());
        readers.push(spawn_local(async move {
            let took = read_blocks(&work, reader, source).await;
            reading.set(reading.get() - 1);
            took
        }));
    }
    if work.access == "cold" {
        let mut longest = Duration::ZERO;
        let mut last = Instant::now();
        while reading.get() != 0 {
            yield_now().await;
            let now = Instant::now();
            longest = longest.max(now - last);
            last = now;
        }
        work.row("longest-wait", "ns", longest.as_nanos() as f64);
    }
    let mut took = Vec::new();
    for each in readers {
        took.extend(each.await.expect("a task that ends"));
    }
    let (elapsed, used) = (harness::wall_ns() - began, harness::now_ns() - cpu);
    took.sort();
    harness::check(!took.is_empty(), "something is read");
    let count = took.len() as f64;
    let percentile = |of: f64| took[(of * (count - 1.0)) as usize] as f64;
    work.row("per-cpu", "requests/s", count / used * 1e9);
    work.row("throughput", "requests/s", count / elapsed * 1e9);
    work.row("p50", "ns", percentile(0.5));
    work.row("p99", "ns", percentile(0.99));
    work.row("p99.9", "ns", percentile(0.999));
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, read_all(Rc::new(Work::from_inputs())));
}
