// Tasks of tokio's runtime of one thread that all sleep; its timers have a resolution of a millisecond.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::{spawn_local, yield_now, LocalSet};
use tokio::time::{sleep_until, Instant};

/// For each pending timer: all are asleep before the first is due. Longer under cachegrind.
fn lead(pending: u64) -> Duration {
    let counting = std::env::var_os("PIRN_BENCH_COUNT").is_some();
    Duration::from_micros(if counting { 500 } else { 10 }) * pending as u32
}

/// All sleep until some time within a second that begins `after`; if `cancel`, all are stopped instead. Returns the
/// cost until all are asleep, and until all have woken up.
async fn sleep_all(pending: u64, after: Duration, cancel: bool) -> (f64, f64) {
    let gate = Rc::new(Semaphore::new(0));
    let base = Rc::new(Cell::new(Instant::now()));
    let counts = Rc::new([Cell::new(0u64), Cell::new(0), Cell::new(0)]);
    let count = |counts: &[Cell<u64>; 3], which: usize| counts[which].set(counts[which].get() + 1);
    let all: Vec<_> = (0..pending)
        .map(|i| {
            let (gate, base, counts) = (gate.clone(), base.clone(), counts.clone());
            spawn_local(async move {
                count(&counts, 0);
                let _ = gate.acquire().await;
                let due = base.get() + Duration::from_nanos(i.wrapping_mul(6364136223846793005) % 1_000_000_000);
                count(&counts, 1);
                sleep_until(due).await;
                if Instant::now() >= due {
                    count(&counts, 2);
                }
            })
        })
        .collect();
    while counts[0].get() < pending {
        yield_now().await;
    }
    base.set(Instant::now() + after);
    let start = harness::now_ns();
    gate.close();
    while counts[1].get() < pending {
        yield_now().await;
    }
    let inserted = harness::now_ns();
    if Instant::now() >= base.get() {
        harness::skip("the machine is too slow: some are due before all are asleep");
    }
    if cancel {
        all.iter().for_each(|each| each.abort());
    }
    let mut cancelled = 0;
    for each in all {
        if let Err(why) = each.await {
            cancelled += u64::from(why.is_cancelled());
        }
    }
    let ended = harness::now_ns();
    let woken = if cancel { cancelled } else { counts[2].get() };
    harness::check(woken == pending, "every sleep ends once and for the right reason");
    ((inserted - start) / pending as f64, (ended - inserted) / pending as f64)
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    if std::env::var_os("PIRN_BENCH_COUNT").is_some() {
        // Loop 0 inserts and cancels, loop 1 inserts and fires.
        let pending = harness::input("COUNT");
        let cancel = harness::input("COUNT_LOOP") == 0;
        let after = if cancel { Duration::from_secs(3600) } else { lead(pending) };
        LocalSet::new().block_on(&runtime, sleep_all(pending, after, cancel));
        return;
    }
    let pending = harness::input("MILLION");
    let ((insert, cancel), (_, fire)) = LocalSet::new().block_on(&runtime, async {
        (sleep_all(pending, Duration::from_secs(3600), true).await, sleep_all(pending, lead(pending), false).await)
    });
    for (op, ns) in [("insert", insert), ("cancel", cancel), ("fire", fire)] {
        let params = format!(r#"{{"op":"{op}","pending":{pending}}}"#);
        harness::row("timers", "tokio", &params, "ns", ns, "sleeping tasks, aborted to cancel; in milliseconds");
    }
}
