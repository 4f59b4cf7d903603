-- Makes the failed steps of a run ready again: WorkflowsRole.retry.
--
-- KEYS
--   1 links
--   2 outbox
--   3 timers
--   4 waitingTasks
--   5 pending
--   6 scheduled
--   7 archived
--   8 completed
--   9 run
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 run: its id
-- Returns
--   0 retried, 1 missing, 2 there is nothing to retry; queue and id of each task to run again; the parcels, packed as in deliver.lua

L.open(ARGV[1], ARGV[2], ARGV[3])
redis.call('HLEN', KEYS[9])
local run, names = L.runs.load_all(ARGV[4])
local tasks = run and L.runs.retry(run, names)
L.work()
return { not run and 1 or tasks and 0 or 2, tasks or {}, L.parcels() }
