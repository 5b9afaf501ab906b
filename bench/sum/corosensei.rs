// corosensei: a coroutine on a reused stack that suspends with each element.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// The sum of the elements with which a producer suspends, and its stack.
fn total(stack: DefaultStack, produce: impl FnOnce(&Yielder<(), u64>) + 'static) -> (u64, DefaultStack) {
    let mut producer = Coroutine::<(), u64, (), _>::with_stack(stack, |yielder, ()| produce(yielder));
    let mut sum = 0;
    while let CoroutineResult::Yield(element) = producer.resume(()) {
        sum += element;
    }
    (sum, producer.into_stack())
}

fn measure(form: &str, sum: impl Fn(DefaultStack, u64) -> (u64, DefaultStack)) {
    let mut unused = Some(DefaultStack::new(harness::input("STACK") as usize).expect("a stack"));
    let ns = harness::ns_per_operation(10, |n| {
        let (sum, stack) = sum(unused.take().expect("a stack"), n);
        harness::check(sum == n * (n + 1) / 2, "every element arrives");
        unused = Some(stack);
    });
    harness::row("sum", "corosensei", &format!(r#"{{"form":"{form}"}}"#), "ns", ns, "on a reused stack");
}

fn main() {
    measure("for", |stack, n| {
        total(stack, move |yielder| {
            for element in (1..=n).rev() {
                yielder.suspend(element);
            }
        })
    });
    measure("while", |stack, n| {
        total(stack, move |yielder| {
            let mut left = n;
            while left != 0 {
                left -= 1;
                yielder.suspend(left + 1);
            }
        })
    });
}
