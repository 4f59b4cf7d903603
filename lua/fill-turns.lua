-- Gives turns to tasks of a fair queue that servers take that know no lines: MaintenanceRole.fillTurns.
--
-- KEYS
--   1 pending
--   2 paused
--   3 lease
--   4… those of shared/fair.lua
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 most: of how many tasks in `pending` it is the turn
--   5… those of shared/fair.lua
-- Returns
--   of how many it was the turn before, and of how many more it is now

-- Includes shared/fair.lua
F.lease = KEYS[3]
redis.call('LLEN', KEYS[1])
redis.call('ZCARD', KEYS[3])
if redis.call('EXISTS', KEYS[2]) == 1 then return { 0, 0 } end
local filled = F.fill(KEYS[1], tonumber(ARGV[4]))
F.finish()
return filled
