// tokio's runtime of one thread. The wait is a future that wakes itself, which is cheaper there than yield_now.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

const STEP: usize = 800;

thread_local! {
    // Whether a wait returns at once.
    static READY: Cell<bool> = const { Cell::new(false) };
    // The sink that took the last step.
    static LAST_USED: Cell<usize> = const { Cell::new(usize::MAX) };
}

#[derive(Default)]
struct Sink {
    name: usize,
    end: usize,
    bytes: usize,
    turns: u64,
}

// Stands for the non-blocking system call, opaque to its callers.
#[inline(never)]
fn offer(to: &mut Sink, data: usize, size: usize) -> usize {
    let taken = std::hint::black_box(size.min(STEP));
    to.end = data + taken;
    to.bytes += taken;
    to.turns += (LAST_USED.replace(to.name) != to.name) as u64;
    taken
}

struct WaitForReady(bool);

impl Future for WaitForReady {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

async fn wait_for_ready() {
    WaitForReady(READY.get()).await
}

async fn send_some(to: &mut Sink, data: usize, size: usize) -> usize {
    wait_for_ready().await;
    offer(to, data, size)
}

async fn write_fully(to: &mut Sink, data: usize, size: usize) -> usize {
    let mut sent = 0;
    while sent < size {
        sent += send_some(to, data + sent, size - sent).await;
    }
    sent
}

fn main() {
    let senders = harness::input("FIBERS");
    let size = harness::input("SEND_MB") as usize * 1_000_000;
    let steps = size.div_ceil(STEP) as u64;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let measure = |ready| {
        READY.set(ready);
        harness::ns_per_operation(senders * steps, |n| {
            for _ in 0..n / (senders * steps) {
                runtime.block_on(async {
                    let mut all = Vec::new();
                    for name in 0..senders as usize {
                        all.push(tokio::task::spawn(async move {
                            let mut sink = Sink { name, ..Sink::default() };
                            let sent = write_fully(&mut sink, 0, size).await;
                            (sink, sent)
                        }));
                    }
                    for each in all {
                        let (sink, sent) = each.await.expect("a task that ends");
                        let all_sent = sent == size && sink.end == size && sink.bytes == size;
                        harness::check(all_sent, "everything is sent once");
                        harness::check(ready || sink.turns >= steps / 10 * 9, "senders take turns");
                    }
                });
            }
        })
    };
    let total = measure(false);
    let application = measure(true);
    for (part, ns) in [("total", total), ("application", application), ("scheduler", total - application)] {
        let params = format!(r#"{{"part":"{part}"}}"#);
        harness::row("write_fully", "tokio", &params, "ns", ns, "runtime of one thread, a future that wakes itself");
    }
}
