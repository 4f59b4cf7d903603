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
--   0 retried, 1 missing, 2 there is nothing to retry; how many steps run again; the parcels, packed as in deliver.lua

L.open(ARGV[1], ARGV[2], ARGV[3])
redis.call('HLEN', KEYS[9])
local run, names = L.runs.load_all(ARGV[4])
local steps = run and L.runs.retry(run, names) or 0
L.work()
return { not run and 1 or steps > 0 and 0 or 2, steps, L.parcels() }
