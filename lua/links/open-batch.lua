-- Opens a batch, once: BatchesRole.open.
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
--   4 definition: JSON { id, name, closeBy, retention, callbacks }, see batches.lua
--   5… name and message of each callback
-- Returns
--   '1' when it was opened, '0' when it was there

L.open(ARGV[1], ARGV[2], ARGV[3])
redis.call('HLEN', KEYS[9])
redis.call('ZCARD', KEYS[10])
local messages = {}
for i = 5, #ARGV, 2 do
  messages[ARGV[i]] = ARGV[i + 1]
end
return L.open_batch(cjson.decode(ARGV[4]), messages) and 1 or 0
