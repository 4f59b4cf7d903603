-- Applies parcels to their place: LinksRole.deliver. What they cause here is done in the same step.
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
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4… body and data of each parcel
-- Returns
--   the parcels that this has caused, packed: to, key, body and data of each; empty when there are none

local L = {}
-- Includes shared/links.lua

L.open(ARGV[1], ARGV[2], ARGV[3])
local bodies = {}
for i = 4, #ARGV, 2 do
  local body = cjson.decode(ARGV[i])
  if not L.on[body.kind] then error('ERR a parcel of the unknown kind "' .. tostring(body.kind) .. '"') end
  bodies[#bodies + 1] = body
end
for i = 1, #bodies do
  L.post(L.place, ARGV[2 * i + 2], bodies[i], ARGV[2 * i + 3])
end
L.work()
return L.parcels()
