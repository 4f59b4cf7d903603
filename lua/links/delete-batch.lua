-- Deletes a batch that has ended: BatchesRole.delete.
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
--   10 batches
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 batch
-- Returns
--   'deleted', 'missing' or 'running'; and the parcels, packed as in deliver.lua

L.open(ARGV[1], ARGV[2], ARGV[3])
redis.call('HLEN', KEYS[9])
redis.call('ZCARD', KEYS[10])
local status = L.delete_batch(ARGV[4])
L.work()
return { status, L.parcels() }
