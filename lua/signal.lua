-- Keeps a signal for the handler of a task, and wakes it when it waits for this one: CheckpointsRole.signal.
--
-- KEYS
--   1 task
--   2 scheduled
--   3 pending
-- ARGV
--   1 id
--   2 name
--   3 payload
--   4 nowNanos
--   5 most: how many of this name are kept
-- Returns
--   1; 0 when there is no such task, 2 when it is over, 3 when it has too many of this name
--
-- Uses shared/end-sleep.lua

local call = redis.call
local hash, scheduled, pending = KEYS[1], KEYS[2], KEYS[3]
local id, name, payload, now_nanos, most = unpack(ARGV)

call('ZCARD', scheduled)
call('LLEN', pending)
local count_field = 'signal:' .. name
local stored = call('HMGET', hash, 'msg', 'state', 'awaits', count_field)
local state, count = stored[2], tonumber(stored[4] or 0) or 0
if not stored[1] then return 0 end
if state == 'completed' or state == 'archived' then return 2 end
if count >= tonumber(most) then return 3 end
local field = count_field .. '#' .. string.format('%.0f', count + 1)
call('HSET', hash, count_field, count + 1, field, payload)
if end_sleep(hash, id, scheduled, state, stored[3], field) then
  call('HSET', hash, 'state', 'pending', 'pending_since', now_nanos)
  call('LPUSH', pending, id)
end
return 1
