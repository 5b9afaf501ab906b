// Tasks of tokio's runtime of one thread with channels to the next.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use tokio::sync::mpsc;

fn main() {
    let processes = harness::input("PROCESSES");
    harness::need_memory(processes * 1200);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (finish, mut finished) = mpsc::channel(1);
    let (first, mut left) = mpsc::channel::<u64>(1);
    for place in 0..processes {
        let (right, next) = mpsc::channel(1);
        let right = if place + 1 < processes { right } else { first.clone() };
        let mut mine = std::mem::replace(&mut left, next);
        let finish = finish.clone();
        runtime.spawn(async move {
            while let Some(token) = mine.recv().await {
                let sent = if token == 0 { finish.send(place).await } else { right.send(token - 1).await };
                sent.expect("the ring is closed");
            }
        });
    }
    let ns = harness::ns_per_operation(processes, |hops| {
        let place = runtime.block_on(async {
            first.send(hops - 1).await.expect("the ring is closed");
            finished.recv().await
        });
        harness::check(place == Some((hops - 1) % processes), "the token comes as far as its hops say");
    });
    let params = format!(r#"{{"processes":{processes}}}"#);
    harness::row("threadring", "tokio", &params, "ns", ns, "mpsc channels of one place, runtime of one thread");
}
