// async functions of C#, whose wait puts the rest of the function into a queue that one loop empties.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;

static class WriteFully {
  const long Step = 800;

  sealed class Sink {
    public long End, Bytes, Turns;
  }

  // Ready, or ends its await when the loop comes to it.
  struct Wait : INotifyCompletion {
    public bool IsCompleted { get { return ready; } }
    public void OnCompleted(Action rest) { queue.Enqueue(rest); }
    public void GetResult() {}
    public Wait GetAwaiter() { return this; }
  }

  static readonly Queue<Action> queue = new Queue<Action>();
  static bool ready;
  static Sink last;

  // Stands for the system call that does not block, opaque to its callers.
  [MethodImpl(MethodImplOptions.NoInlining)]
  static long Offer(Sink to, long data, long size) {
    long taken = Math.Min(size, Step);
    to.End = data + taken;
    to.Bytes += taken;
    if (last != to) {
      to.Turns++;
    }
    last = to;
    return taken;
  }

  static async Task<long> SendSome(Sink to, long data, long size) {
    await new Wait();
    return Offer(to, data, size);
  }

  static async Task<long> SendAll(Sink to, long size) {
    long sent = 0;
    while (sent < size) {
      sent += await SendSome(to, sent, size - sent);
    }
    return sent;
  }

  static double Measure(bool withoutWaits) {
    ready = withoutWaits;
    long senders = Harness.Input("FIBERS"), size = Harness.Input("SEND_MB") * 1000000, steps = (size + Step - 1) / Step;
    return Harness.NsPerOperation(senders * steps, n => {
      for (long done = 0; done < n; done += senders * steps) {
        Sink[] sinks = new Sink[senders];
        Task<long>[] sent = new Task<long>[senders];
        for (long i = 0; i < senders; ++i) {
          sinks[i] = new Sink();
          sent[i] = SendAll(sinks[i], size);
        }
        while (queue.Count != 0) {
          queue.Dequeue()();
        }
        for (long i = 0; i < senders; ++i) {
          Harness.Check(sent[i].IsCompleted && sent[i].Result == size && sinks[i].End == size && sinks[i].Bytes == size,
                        "everything is sent once");
          Harness.Check(ready || sinks[i].Turns >= steps / 2, "senders take turns");
        }
      }
    });
  }

  static void Main() {
    double total = Measure(false), application = Measure(true);
    Harness.Row("write_fully", "{\"part\":\"total\"}", total);
    Harness.Row("write_fully", "{\"part\":\"application\"}", application);
    Harness.Row("write_fully", "{\"part\":\"scheduler\"}", total - application);
  }
}
