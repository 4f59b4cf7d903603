-- Tells the home of a batch how many members its chunks have: BatchesRole.confirm.
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
--   5… the base of each chunk and the number of its members
-- Returns
--   the parcels, packed as in deliver.lua

L.open(ARGV[1], ARGV[2], ARGV[3])
redis.call('HLEN', KEYS[9])
for i = 5, #ARGV, 2 do
  L.confirm_chunk(ARGV[4], ARGV[i], tonumber(ARGV[i + 1]))
end
L.decide(ARGV[4])
L.work()
return L.parcels()
