// tokio's bounded channels. A channel has a single receiver, so several consumers share it behind tokio's mutex.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, Mutex};

const MANY: u64 = 8;
const PLACES: usize = 64;

fn ping_pong(runtime: &Runtime, n: u64) {
    let (there, mut arrived) = mpsc::channel::<u64>(1);
    let (answer, mut back) = mpsc::channel(1);
    let ping = runtime.spawn(async move {
        let mut number = 0;
        for _ in 0..n / 2 {
            there.send(number + 1).await.expect("it can be sent");
            number = back.recv().await.expect("an answer");
        }
        number
    });
    runtime.spawn(async move {
        while let Some(number) = arrived.recv().await {
            answer.send(number + 1).await.expect("it can be sent");
        }
    });
    harness::check(runtime.block_on(ping).expect("a task that ends") == n, "every message is answered");
}

async fn send(sender: mpsc::Sender<u64>, begin: u64, end: u64) -> u64 {
    for number in begin..end {
        sender.send(number).await.expect("it can be sent");
    }
    0
}

fn finish(runtime: &Runtime, n: u64, all: Vec<tokio::task::JoinHandle<u64>>) {
    let sum: u64 = all.into_iter().map(|each| runtime.block_on(each).expect("a task that ends")).sum();
    harness::check(sum == n * (n - 1) / 2, "every message arrives once");
}

fn fan_in(runtime: &Runtime, n: u64) {
    let (sender, mut receiver) = mpsc::channel(PLACES);
    let share = n / MANY;
    let mut all = vec![runtime.spawn(async move {
        let mut sum = 0;
        for _ in 0..n {
            sum += receiver.recv().await.expect("a message");
        }
        sum
    })];
    all.extend((0..MANY).map(|i| runtime.spawn(send(sender.clone(), i * share, (i + 1) * share))));
    finish(runtime, n, all);
}

fn fan_out(runtime: &Runtime, n: u64) {
    let (sender, receiver) = mpsc::channel(PLACES);
    let receiver = Arc::new(Mutex::new(receiver));
    let mut all = vec![runtime.spawn(send(sender, 0, n))];
    all.extend((0..MANY).map(|_| {
        let receiver = receiver.clone();
        runtime.spawn(async move {
            let mut sum = 0;
            for _ in 0..n / MANY {
                sum += receiver.lock().await.recv().await.expect("a message");
            }
            sum
        })
    }));
    finish(runtime, n, all);
}

fn main() {
    let shape = std::env::var("PIRN_BENCH_SHAPE").expect("a shape");
    let workers = harness::input("WORKERS");
    let runtime = match workers {
        1 => Builder::new_current_thread().build(),
        _ => Builder::new_multi_thread().worker_threads(workers as usize).build(),
    }
    .expect("a runtime");
    let run = match shape.as_str() {
        "ping-pong" => ping_pong,
        "fan-in" => fan_in,
        _ => fan_out,
    };
    let ns = harness::ns_per_operation_by(harness::clock_for(workers), MANY, |n| run(&runtime, n));
    let params = format!(r#"{{"shape":"{shape}","workers":{workers}}}"#);
    harness::row("chan", "tokio", &params, "ns", ns, "mpsc; receivers of fan-out share it by a mutex");
}
