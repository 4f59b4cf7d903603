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
if not run then return { 1, {}, '' } end
if run.state ~= 'r' then return { 2, {}, '' } end
local left = L.runs.cancel(run, names, ARGV[5])
return { 0, left, L.parcels() }
