#!/usr/bin/env escript
%%! +S 1:1 +SDio 1 +P 2000000 -noinput
%% Erlang's processes on one scheduler.
%% needs: command escript
-mode(compile).

main(_) ->
    Processes = input("PROCESSES"),
    need_memory(Processes * 2800),
    Self = self(),
    First = spawn(fun() -> receive {next, Next} -> process(0, Next, Self) end end),
    % The last is made first, since each must know the next.
    Second = lists:foldl(fun(Place, Next) -> spawn(fun() -> process(Place, Next, Self) end) end, First,
                         lists:seq(Processes - 1, 1, -1)),
    First ! {next, Second},
    Ns = ns_per_operation(Processes, fun(Hops) ->
        First ! Hops - 1,
        receive {finished, Place} -> check(Place =:= (Hops - 1) rem Processes, "the token comes as far as its hops say") end
    end),
    io:format("{\"workload\":\"threadring\",\"impl\":\"erlang\",\"params\":{\"processes\":~b},\"unit\":\"ns\","
              "\"value\":~.4f,\"note\":\"messages, one scheduler\"}~n", [Processes, Ns]),
    halt(0).

process(Place, Next, Main) ->
    receive
        0 -> Main ! {finished, Place};
        Token -> Next ! Token - 1
    end,
    process(Place, Next, Main).

%% What harness.hpp is for C++.

input(Name) ->
    case os:getenv("PIRN_BENCH_" ++ Name) of
        false ->
            io:format(standard_error, "PIRN_BENCH_~s is not set: start this program by bench/run.py~n", [Name]),
            halt(2);
        Value -> list_to_integer(Value)
    end.

check(true, _) -> ok;
check(false, What) ->
    io:format(standard_error, "check failed: ~s~n", [What]),
    halt(1).

need_memory(Bytes) ->
    {ok, Meminfo} = file:read_file("/proc/meminfo"),
    {match, [Digits]} = re:run(Meminfo, "MemAvailable: *([0-9]+)", [{capture, all_but_first, list}]),
    Kib = list_to_integer(Digits),
    case Bytes div 1024 > Kib - Kib div 8 of
        false -> ok;
        true ->
            io:format(standard_error, "needs about ~b MiB of memory, and ~b MiB are available~n",
                      [Bytes bsr 20, Kib bsr 10]),
            halt(77)
    end.

%% Time that this process has spent on its core, in steps of a millisecond.
now_ns() ->
    {Spent, _} = erlang:statistics(runtime),
    Spent * 1000000.

timed(Run, N) ->
    Start = now_ns(),
    Run(N),
    now_ns() - Start.

ns_per_operation(Granule, Run) ->
    % Blocks are ten times as long as elsewhere, since the clock is coarse.
    N = enough(Granule, Granule, input("BLOCK_MS") * 1.0e7, Run),
    Blocks = lists:sort([timed(Run, N) / N || _ <- lists:seq(1, input("BLOCKS"))]),
    lists:nth(length(Blocks) div 2 + 1, Blocks).

enough(N, Granule, BlockNs, Run) ->
    Took = timed(Run, N),
    if
        Took >= BlockNs -> N;
        true -> enough((trunc(N * min(BlockNs / max(Took, 1.0e6) * 1.2, 10.0)) div Granule + 1) * Granule, Granule, BlockNs, Run)
    end.
