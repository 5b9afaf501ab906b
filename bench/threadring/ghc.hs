-- Haskell's threads on one core, with an MVar each.
module Main (main) where

import Control.Concurrent (forkIO)
import Control.Concurrent.MVar (MVar, newEmptyMVar, putMVar, takeMVar)
import Control.Monad (forM_, replicateM, unless, when)
import Data.List (isPrefixOf, sort)
import System.CPUTime (getCPUTime)
import System.Environment (lookupEnv)
import System.Exit (ExitCode (ExitFailure), exitWith)
import System.IO (hPutStrLn, stderr)
import Text.Printf (printf)

process :: Int -> MVar Int -> MVar Int -> MVar Int -> IO ()
process place mine next finished = do
  token <- takeMVar mine
  if token == 0 then putMVar finished place else putMVar next $! token - 1
  process place mine next finished

main :: IO ()
main = do
  processes <- input "PROCESSES"
  needMemory (processes * 2500)
  ring <- replicateM processes newEmptyMVar
  finished <- newEmptyMVar
  forM_ (zip3 [0 ..] ring (drop 1 (cycle ring))) $ \(place, mine, next) -> forkIO (process place mine next finished)
  ns <- nsPerOperation processes $ \hops -> do
    putMVar (head ring) $! hops - 1
    place <- takeMVar finished
    check (place == (hops - 1) `mod` processes) "the token comes as far as its hops say"
  printf "{\"workload\":\"threadring\",\"impl\":\"ghc\",\"params\":{\"processes\":%d},\"unit\":\"ns\",\"value\":%.4f,\
         \\"note\":\"MVars, the runtime without OS threads\"}\n" processes ns

-- What harness.hpp is for C++.

end :: Int -> String -> IO a
end status why = hPutStrLn stderr why >> exitWith (ExitFailure status)

input :: String -> IO Int
input name = do
  let variable = "PIRN_BENCH_" ++ name
  found <- lookupEnv variable
  maybe (end 2 (variable ++ " is not set: start this program by bench/run.py")) (pure . read) found

check :: Bool -> String -> IO ()
check done what = unless done $ end 1 ("check failed: " ++ what)

needMemory :: Int -> IO ()
needMemory bytes = do
  meminfo <- readFile "/proc/meminfo"
  let kib = sum [read (words line !! 1) | line <- lines meminfo, "MemAvailable:" `isPrefixOf` line]
  when (bytes `div` 1024 > kib - kib `div` 8) $
    end 77 (printf "needs about %d MiB of memory, and %d MiB are available" (bytes `div` 1048576) (kib `div` 1024))

timed :: (Int -> IO ()) -> Int -> IO Double
timed run n = do
  start <- getCPUTime
  run n
  stop <- getCPUTime
  pure (fromIntegral (stop - start) / 1000)

nsPerOperation :: Int -> (Int -> IO ()) -> IO Double
nsPerOperation granule run = do
  block <- (* 1e6) . fromIntegral <$> input "BLOCK_MS"
  let enough n = do
        took <- timed run n
        let factor = min 10 (block / max 1 took * 1.2) :: Double
        if took >= block then pure n else enough ((truncate (fromIntegral n * factor) `div` granule + 1) * granule)
  n <- enough granule
  count <- input "BLOCKS"
  blocks <- replicateM count (timed run n)
  pure (sort blocks !! (count `div` 2) / fromIntegral n)
