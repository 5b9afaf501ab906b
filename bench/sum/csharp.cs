// An iterator of C#, whose compiler makes a state machine of it.
using System.Collections.Generic;
using System.Runtime.CompilerServices;

static class Sum {
  static IEnumerable<ulong> ProduceFor(ulong n) {
    for (; n != 0; --n) {
      yield return n;
    }
  }

  static IEnumerable<ulong> ProduceWhile(ulong n) {
    while (n != 0) {
      yield return n--;
    }
  }

  [MethodImpl(MethodImplOptions.NoInlining)]
  static ulong Total(IEnumerable<ulong> elements) {
    ulong sum = 0;
    foreach (ulong element in elements) {
      sum += element;
    }
    return sum;
  }

  static void Main() {
    foreach (string form in new[] { "for", "while" }) {
      double ns = Harness.NsPerOperation(10, n => {
        ulong elements = (ulong)n;
        ulong sum = Total(form == "for" ? ProduceFor(elements) : ProduceWhile(elements));
        Harness.Check(sum == elements * (elements + 1) / 2, "every element arrives");
      });
      Harness.Row("sum", "{\"form\":\"" + form + "\"}", ns);
    }
  }
}
