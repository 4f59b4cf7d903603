-- Extends the leases that are still the caller's: ConsumerRole.extendLeases.
--
-- KEYS
--   1 lease
-- ARGV
--   1 expiry: seconds
--   2 count: ids
--   3… the ids; then the fences: see shared/fence.lua
-- Returns
--   the indexes of the leases that are not the caller's
--
-- Uses shared/spread.lua
-- Uses shared/fence.lua

local ids = {}
for i = 1, tonumber(ARGV[2]) do
  ids[i] = ARGV[i + 2]
end
local missing = missing_leases(KEYS[1], ids, #ids + 3)
local lost, extended = {}, {}
for i = 1, #ids do
  if missing[i] then
    lost[#lost + 1] = i
  else
    extended[#extended + 1] = ARGV[1]
    extended[#extended + 1] = ids[i]
  end
end
-- A full Redis refuses this ZADD, which takes no memory, unless the script has begun with a write that Redis allows.
if #extended > 0 then redis.call('ZREM', KEYS[1], extended[2]) end
spread('ZADD', KEYS[1], extended)
return lost
