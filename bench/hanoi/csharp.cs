// Nested iterators of C#: each takes the elements of the one inside it and yields them again.
using System.Collections.Generic;

static class Hanoi {
  static ulong Move(uint disk, uint from, uint to) { return disk | from << 8 | to << 16; }

  static IEnumerable<ulong> Produce(uint disks, uint from, uint to, uint spare) {
    if (disks == 0) {
      yield break;
    }
    foreach (ulong move in Produce(disks - 1, from, spare, to)) {
      yield return move;
    }
    yield return Move(disks, from, to);
    foreach (ulong move in Produce(disks - 1, spare, to, from)) {
      yield return move;
    }
  }

  // The digest of all moves, as in harness.hpp.
  static void Take(ref ulong hash, ulong element) { hash = (hash << 5 | hash >> 59) + element; }

  // The moves in order, computed without iterators: the checker.
  static void Expected(uint disks, uint from, uint to, uint spare, ref ulong hash) {
    if (disks == 0) {
      return;
    }
    Expected(disks - 1, from, spare, to, ref hash);
    Take(ref hash, Move(disks, from, to));
    Expected(disks - 1, spare, to, from, ref hash);
  }

  static void Main() {
    for (uint disks = (uint)Harness.Input("DISKS_FIRST"); disks <= Harness.Input("DISKS_LAST"); ++disks) {
      long moves = (1L << (int)disks) - 1;
      ulong expected = 0;
      Expected(disks, 0, 1, 2, ref expected);
      double ns = Harness.NsPerOperation(moves, n => {
        for (long done = 0; done < n; done += moves) {
          ulong hash = 0;
          foreach (ulong move in Produce(disks, 0, 1, 2)) {
            Take(ref hash, move);
          }
          Harness.Check(hash == expected, "all moves arrive in order");
        }
      });
      Harness.Row("hanoi", "{\"disks\":" + disks + "}", ns);
    }
  }
}
