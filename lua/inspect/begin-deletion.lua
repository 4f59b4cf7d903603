-- Checks that a queue may be deleted, and pauses it so that no server claims a task meanwhile: AdministrationRole.deleteQueue.
--
-- KEYS
--   1 active
--   2 paused
--   3 pending
--   4 scheduled
--   5 retry
--   6 archived
--   7 completed
--   8 groups
--   9 aggregationSets
--   10 waitingTasks
--   11 runs
--   12 batches
--   13 fairRing
--   14 fairHeld
-- ARGV
--   1 force: '1' also deletes tasks, and leaves alone what else the queue keeps
--   2 now: seconds
-- Returns
--   1 paused by this call, 0 was paused already, -1 has active tasks, -2 has tasks, -3 keeps runs or batches

local call = redis.call
local active = call('LLEN', KEYS[1])
local waiting = call('LLEN', KEYS[3]) + call('SCARD', KEYS[8])
for _, i in ipairs({ 4, 5, 6, 7, 9, 10, 13, 14 }) do
  waiting = waiting + call('ZCARD', KEYS[i])
end
local kept = call('ZCARD', KEYS[11]) + call('ZCARD', KEYS[12])
if active > 0 then return -1 end
if ARGV[1] ~= '1' then
  if waiting > 0 then return -2 end
  if kept > 0 then return -3 end
end
return call('SETNX', KEYS[2], ARGV[2])
