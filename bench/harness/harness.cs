// harness.hpp for C#: the inputs, the timing loop, the checker and the output row.
using System;
using System.Runtime.InteropServices;

static class Harness {
  // Returns an input of the workload, set by run.py for all languages alike.
  public static long Input(string name) {
    string variable = "PIRN_BENCH_" + name;
    long value;
    if (!long.TryParse(Environment.GetEnvironmentVariable(variable), out value)) {
      Console.Error.WriteLine(variable + " is not set: start this program by bench/run.py");
      Environment.Exit(2);
    }
    return value;
  }

  // Ends the program with a failure unless the measured work was done.
  public static void Check(bool done, string what) {
    if (!done) {
      Console.Error.WriteLine("check failed: " + what);
      Environment.Exit(1);
    }
  }

  // Prints one result; `parameters` is a JSON object.
  public static void Row(string workload, string parameters, double value) {
    Console.WriteLine("{{\"workload\":\"{0}\",\"impl\":\"csharp\",\"params\":{1},\"unit\":\"ns\",\"value\":{2},\"note\":\"by Mono, compiled as it runs\"}}",
                      workload, parameters, value.ToString("F4", System.Globalization.CultureInfo.InvariantCulture));
  }

  // Returns the median cost in nanoseconds of one of the operations that `run` does, in CPU time, as in harness.hpp.
  public static double NsPerOperation(long granule, Action<long> run) {
    double block = Input("BLOCK_MS") * 1e6;
    long n = granule;
    for (;;) {
      double took = Timed(run, n);
      if (took >= block) {
        took = Math.Min(took, Timed(run, n));
      }
      if (took >= block) {
        break;
      }
      double factor = took > 0 ? Math.Min(block / took * 1.2, 10) : 10;
      n = ((long)(n * factor) / granule + 1) * granule;
    }
    double[] blocks = new double[Input("BLOCKS")];
    for (int i = 0; i < blocks.Length; ++i) {
      blocks[i] = Timed(run, n) / n;
    }
    Array.Sort(blocks);
    return blocks[blocks.Length / 2];
  }

  static double Timed(Action<long> run, long n) {
    double start = NowNs();
    run(n);
    return NowNs() - start;
  }

  struct Timespec {
    public long Seconds, Nanoseconds;
  }

  [DllImport("libc")]
  static extern int clock_gettime(int clock, out Timespec time);

  // The CPU time of this process.
  static double NowNs() {
    Timespec time;
    Check(clock_gettime(2, out time) == 0, "the kernel tells the time used");
    return time.Seconds * 1e9 + time.Nanoseconds;
  }
}
