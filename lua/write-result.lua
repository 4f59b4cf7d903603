-- Stores the result of an active task that the caller has leased: ConsumerRole.writeResult.
--
-- KEYS
--   1 lease
--   2 task
-- ARGV
--   1 id
--   2 result
--   3… the fences: see shared/fence.lua
-- Returns
--   1, or 0 when the task is not the caller's and nothing was written
--
-- Uses shared/fence.lua

if missing_leases(KEYS[1], { ARGV[1] }, 3)[1] then return 0 end
if redis.call('HGET', KEYS[2], 'state') ~= 'active' then return 0 end
redis.call('HSET', KEYS[2], 'result', ARGV[2])
return 1
