-- Leases the active ids that have no lease, so that recovery sees them: MaintenanceRole.repairActive, one page
-- of the list. A claim writes both in one step, so an active id without a lease belongs to nobody.
--
-- KEYS
--   1 active
--   2 lease
-- ARGV
--   1 expiry: seconds
--   2 from: how many ids to skip, from the tail of the list
--   3 length: how many ids to check
-- Returns
--   how many ids were checked, and how many were given a lease
--
-- Uses shared/spread.lua

local from, length = tonumber(ARGV[2]), tonumber(ARGV[3])
local ids = redis.call('LRANGE', KEYS[1], -from - length, -from - 1)
if #ids == 0 then return { 0, 0 } end
local scores = redis.call('ZMSCORE', KEYS[2], unpack(ids))
local seen, forgotten = {}, {}
for i = 1, #ids do
  local id = ids[i]
  if not scores[i] and not seen[id] then
    seen[id] = true
    forgotten[#forgotten + 1] = ARGV[1]
    forgotten[#forgotten + 1] = id
  end
end
spread('ZADD', KEYS[2], forgotten)
return { #ids, #forgotten / 2 }
