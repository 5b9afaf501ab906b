// The future of an async function that awaits in a loop: the whole state of a task that is suspended there.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

async fn body(times: u32) -> u32 {
    let mut done = 0;
    while done < times {
        std::future::ready(()).await;
        done += 1;
    }
    done
}

fn main() {
    let suspended = body(3);
    let bytes = std::mem::size_of_val(&suspended) as f64;
    harness::row("saved-bytes", "rust", "{\"point\":\"await\",\"of\":\"image\"}", "B", bytes, "the future of an async function");
}
