// corosensei: a walk is a coroutine on a reused stack. The trees are those of tree.hpp.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use harness::Digest;
use std::mem::MaybeUninit;

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Any,
    Full,
}

struct Node {
    left: Option<&'static Node>,
    right: Option<&'static Node>,
    value: u64,
}

/// Builds a tree of `size` nodes that is never freed; `value` gives each node's value from its position.
fn tree(size: u64, shape: Shape, seed: u64, value: fn(u64) -> u64) -> &'static Node {
    let nodes = Box::leak(Box::<[Node]>::new_uninit_slice(size as usize));
    build(nodes, 0, shape, &mut { seed }, value).expect("a root")
}

/// Returns the root of the given nodes, the first of which has the position `first`.
fn build(
    nodes: &'static mut [MaybeUninit<Node>],
    first: u64,
    shape: Shape,
    state: &mut u64,
    value: fn(u64) -> u64,
) -> Option<&'static Node> {
    let size = nodes.len() as u64;
    let at = match (size, shape) {
        (0, _) => return None,
        (_, Shape::Any) => random(state) % size,
        (1, Shape::Full) => 0,
        (_, Shape::Full) => 1 + 2 * (random(state) % (size / 2)),
    };
    let (left, rest) = nodes.split_at_mut(at as usize);
    let (root, right) = rest.split_first_mut().expect("a root");
    let left = build(left, first, shape, state, value);
    let right = build(right, first + at + 1, shape, state, value);
    Some(root.write(Node { left, right, value: value(first + at) }))
}

/// xorshift64
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

type Values = Coroutine<(), u64, (), DefaultStack>;

fn walk(node: Option<&Node>, yielder: &Yielder<(), u64>) {
    if let Some(node) = node {
        walk(node.left, yielder);
        yielder.suspend(node.value);
        walk(node.right, yielder);
    }
}

fn fringe(node: &Node, yielder: &Yielder<(), u64>) {
    match (node.left, node.right) {
        (Some(left), Some(right)) => {
            fringe(left, yielder);
            fringe(right, yielder);
        }
        _ => {
            yielder.suspend(node.value);
        }
    }
}

fn next(values: &mut Values) -> Option<u64> {
    match values.resume(()) {
        CoroutineResult::Yield(value) => Some(value),
        CoroutineResult::Return(()) => None,
    }
}

fn equal_leaves(stacks: &mut Vec<DefaultStack>, one: &'static Node, other: &'static Node) -> u64 {
    let mut leaves = |root| Values::with_stack(stacks.pop().expect("a stack"), move |yielder, ()| fringe(root, yielder));
    let (mut left, mut right) = (leaves(one), leaves(other));
    let mut equal = 0;
    while let (Some(a), Some(b)) = (next(&mut left), next(&mut right)) {
        if a != b {
            break;
        }
        equal += 1;
    }
    left.force_unwind();
    right.force_unwind();
    stacks.push(left.into_stack());
    stacks.push(right.into_stack());
    equal
}

fn main() {
    let size = harness::input("NODES");
    let mut stacks: Vec<_> =
        (0..2).map(|_| DefaultStack::new(harness::input("STACK") as usize).expect("a stack")).collect();

    let root = tree(size, Shape::Any, 1, |at| at);
    let mut expected = Digest::default();
    (0..size).for_each(|value| expected.take(value));
    let ns = harness::ns_per_operation(size, |n| {
        for _ in 0..n / size {
            let mut all =
                Values::with_stack(stacks.pop().expect("a stack"), move |yielder, ()| walk(Some(root), yielder));
            let mut values = Digest::default();
            while let Some(value) = next(&mut all) {
                values.take(value);
            }
            stacks.push(all.into_stack());
            harness::check(values == expected, "all values arrive in order");
        }
    });
    harness::row("tree-walk", "corosensei", r#"{"mode":"walk"}"#, "ns", ns, "on reused stacks");

    let size = size | 1;
    let leaves = size / 2 + 1;
    let (one, other) = (tree(size, Shape::Full, 1, |at| at), tree(size, Shape::Full, 2, |at| at));
    let different = tree(size, Shape::Full, 2, |at| if at == 100 { 0 } else { at });
    let equal = equal_leaves(&mut stacks, one, different);
    harness::check(equal == 50, "a difference is seen where it is");
    let ns = harness::ns_per_operation(leaves, |n| {
        for _ in 0..n / leaves {
            let equal = equal_leaves(&mut stacks, one, other);
            harness::check(equal == leaves, "all leaves are compared");
        }
    });
    harness::row("tree-walk", "corosensei", r#"{"mode":"same-fringe"}"#, "ns", ns, "on reused stacks");
}
