-- Ends a run: WorkflowsRole.cancel.
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
--   5 reason
-- Returns
--   0 cancelled, 1 missing, 2 ended; queue and id of each task that may be under way; the parcels, packed as in deliver.lua

L.open(ARGV[1], ARGV[2], ARGV[3])
redis.call('HLEN', KEYS[9])
local run, names = L.runs.load_all(ARGV[4])
local running = run and run.state == 'r'
local left = running and L.runs.cancel(run, names, ARGV[5]) or {}
L.work()
return { not run and 1 or running and 0 or 2, left, L.parcels() }
