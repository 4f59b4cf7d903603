-- Stores a field of the hash of an active task that the caller has leased: ConsumerRole.writeResult, CheckpointsRole.write.
--
-- KEYS
--   1 lease
--   2 task
-- ARGV
--   1 id
--   2 field
--   3 value
--   4… the fences: see shared/fence.lua
-- Returns
--   1, or 0 when the task is not the caller's and nothing was written
--
-- Uses shared/fence.lua

if missing_leases(KEYS[1], { ARGV[1] }, 4)[1] then return 0 end
if redis.call('HGET', KEYS[2], 'state') ~= 'active' then return 0 end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
return 1
