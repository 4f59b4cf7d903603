-- Deletes an ended run: WorkflowsRole.delete.
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
--   10 runs
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 run: its id
-- Returns
--   0 deleted, 1 missing, 2 running; and the parcels, packed as in deliver.lua

L.open(ARGV[1], ARGV[2], ARGV[3])
redis.call('HLEN', KEYS[9])
redis.call('ZCARD', KEYS[10])
local run, names = L.runs.load_all(ARGV[4])
local running = run and run.state == 'r'
if run and not running then L.runs.delete(run, names) end
L.work()
return { not run and 1 or running and 2 or 0, L.parcels() }
