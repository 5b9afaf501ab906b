// async functions on a separate executor, which runs the last woken task first; a thread for each worker.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use std::cell::{Cell, UnsafeCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Barrier;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

/// The inputs of one run.
#[derive(Clone, Copy)]
struct Shape {
    n: u64,
    coroutines: u64,
    rounds: u64,
    extra: u64,
    workers: u64,
}

/// The messages of a task that it has not taken yet: up to 8, in order, a byte each; none is 0.
#[derive(Default)]
struct Place {
    mail: Cell<u64>,
    waiting: Cell<Option<Waker>>,
}

impl Place {
    fn send(&self, hops: u8) {
        let before = self.mail.get();
        let bits = u64::BITS - before.leading_zeros();
        self.mail.set(before | u64::from(hops) << (bits + 7) / 8 * 8);
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }

    fn receive(&self) -> Receive<'_> {
        Receive(self)
    }
}

struct Receive<'a>(&'a Place);

impl Future for Receive<'_> {
    type Output = u8;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u8> {
        let mail = self.0.mail.get();
        if mail == 0 {
            self.0.waiting.set(Some(context.waker().clone()));
            return Poll::Pending;
        }
        self.0.mail.set(mail >> 8);
        Poll::Ready(mail as u8)
    }
}

async fn make_rounds(what: Shape, index: u64, mine: &Place, right: &Place) -> u64 {
    let mut hops = 0;
    let mut until_mine = index % what.n;
    for _ in 0..what.rounds {
        if until_mine == 0 {
            right.send(1);
            let made = u64::from(mine.receive().await);
            harness::check(made == what.n, "a message passes its whole cycle");
            hops += made;
            until_mine = what.n;
        } else {
            right.send(mine.receive().await + 1);
        }
        until_mine -= 1;
    }
    hops
}

/// As `make_rounds`, with `EXTRA` more bytes in its state.
async fn make_rounds_below<const EXTRA: usize>(what: Shape, index: u64, mine: &Place, right: &Place) -> u64 {
    let mut bytes = [0u8; EXTRA];
    std::hint::black_box(&mut bytes).fill(b'#');
    let hops = make_rounds(what, index, mine, right).await;
    std::hint::black_box(&bytes);
    hops
}

/// A task of the executor; its waker is its address.
struct Task<'a> {
    future: UnsafeCell<Pin<Box<dyn Future<Output = u64> + 'a>>>,
    ready: *const Ready,
}

/// The runnable tasks.
#[derive(Default)]
struct Ready(UnsafeCell<Vec<*const Task<'static>>>);

// Tasks are woken on the thread that they run on, and live until all have ended, so a waker need not count references.
static WAKER: RawWakerVTable = RawWakerVTable::new(|task| RawWaker::new(task, &WAKER), wake, wake, |_| {});

fn wake(task: *const ()) {
    let task = task.cast::<Task<'static>>();
    unsafe { (*(*(*task).ready).0.get()).push(task) };
}

fn work(what: Shape, first: u64, last: u64, start: &Barrier) -> (f64, f64, u64) {
    let places: Vec<Place> = (first..last).map(|_| Place::default()).collect();
    let mut hops = 0;
    let ready = Ready::default();
    let tasks: Vec<Task> = (first..last)
        .map(|index| {
            let next = index + 1;
            let right = &places[(if next % what.n == 0 { next - what.n } else { next } - first) as usize];
            let mine = &places[(index - first) as usize];
            let future: Pin<Box<dyn Future<Output = u64> + '_>> = match what.extra {
                0 => Box::pin(make_rounds(what, index, mine, right)),
                1000 => Box::pin(make_rounds_below::<1000>(what, index, mine, right)),
                _ => Box::pin(make_rounds_below::<10000>(what, index, mine, right)),
            };
            Task { future: UnsafeCell::new(future), ready: &ready }
        })
        .collect();
    unsafe { (*ready.0.get()).extend(tasks.iter().rev().map(|task| std::ptr::from_ref(task).cast())) };
    start.wait();
    let now = if what.workers == 1 { harness::now_ns } else { harness::wall_ns };
    let begin = now();
    let mut running = tasks.len();
    while running > 0 {
        let task = unsafe { (*ready.0.get()).pop() }.expect("a task that can run");
        let waker = unsafe { Waker::from_raw(RawWaker::new(task.cast(), &WAKER)) };
        let future = unsafe { (*(*task).future.get()).as_mut() };
        if let Poll::Ready(made) = future.poll(&mut Context::from_waker(&waker)) {
            hops += made;
            running -= 1;
        }
    }
    (begin, now(), hops)
}

fn main() {
    let what = Shape {
        n: harness::input("N"),
        coroutines: harness::input("COROUTINES"),
        rounds: harness::input("M"),
        extra: harness::input("D"),
        workers: harness::input("P"),
    };
    if ![0, 1000, 10000].contains(&what.extra) {
        harness::skip("its states are of 0, 1000 or 10000 bytes more");
    }
    harness::need_memory(what.coroutines * (200 + what.extra));
    harness::wall_ns();
    let start = Barrier::new(what.workers as usize);
    let cycles = what.coroutines / what.n;
    let bound = |worker| worker * cycles / what.workers * what.n;
    let done: Vec<(f64, f64, u64)> = std::thread::scope(|scope| {
        let all: Vec<_> = (1..what.workers)
            .map(|worker| scope.spawn({
                let start = &start;
                move || work(what, bound(worker), bound(worker + 1), start)
            }))
            .collect();
        let first = work(what, 0, bound(1), &start);
        std::iter::once(first).chain(all.into_iter().map(|each| each.join().expect("a worker ends"))).collect()
    });
    let begin = done.iter().map(|each| each.0).fold(f64::MAX, f64::min);
    let end = done.iter().map(|each| each.1).fold(0.0, f64::max);
    let messages = what.coroutines * what.rounds;
    harness::check(done.iter().map(|each| each.2).sum::<u64>() == messages, "every message of every round is sent");
    let params = format!(
        r#"{{"N":{},"coroutines":{},"M":{},"D":{},"P":{}}}"#,
        what.n, what.coroutines, what.rounds, what.extra, what.workers
    );
    harness::row("ring", "rust", &params, "op/s", messages as f64 / (end - begin) * 1e9, "an executor of its own");
}
