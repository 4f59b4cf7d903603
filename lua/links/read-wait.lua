-- Reads what a task waits for, or has waited for: LinksRole.waitOf.
--
-- KEYS
--   1 task
--   2 archived
-- ARGV
--   1 id
--   2 waitingGroup
-- Returns
--   `after`, '1' when it waits, '1' when it is archived because a prerequisite failed, and its edges, see shared/waits.lua; nothing
--   when it has never waited

local call = redis.call
local after, state, group, cancelled = unpack(call('HMGET', KEYS[1], 'after', 'state', 'group', 'cancelled'))
local since = call('ZSCORE', KEYS[2], ARGV[1])
if not after then return {} end
local waits = state == 'aggregating' and group == ARGV[2]
local reply = { after, waits and '1' or '0', cancelled and since == cancelled and '1' or '0' }
local known, wait = pcall(cjson.decode, after)
for n = 0, (known and type(wait) == 'table' and tonumber(wait.n) or 0) - 1 do
  reply[n + 4] = call('HGET', KEYS[1], 'w' .. n) or ''
end
return reply
