-- Closes a batch: BatchesRole.close.
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
--   9 batch
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 batch
-- Returns
--   whether there is such a batch: '1' or '0'; and the parcels, packed as in deliver.lua

L.open(ARGV[1], ARGV[2], ARGV[3])
redis.call('HLEN', KEYS[9])
local exists = L.close_batch(ARGV[4])
L.work()
return { exists and 1 or 0, L.parcels() }
