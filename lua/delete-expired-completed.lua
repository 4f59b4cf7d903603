-- Deletes completed tasks whose retention is over: MaintenanceRole.deleteExpiredCompleted, one step.
-- Their locks were released at completion.
--
-- KEYS
--   1 completed
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 limit
-- Returns
--   how many were deleted
--
-- Uses shared/spread.lua

local ids = redis.call('ZRANGE', KEYS[1], '-inf', ARGV[2], 'BYSCORE', 'LIMIT', 0, ARGV[3])
local keys = {}
for i = 1, #ids do
  keys[i] = ARGV[1] .. ids[i]
end
spread('DEL', nil, keys)
spread('ZREM', KEYS[1], ids)
return #ids
