-- Ends the sleep of a task for a field of its hash that has come, if it waits for that one. `state` and `awaits` are of the hash. Returns
-- whether it did: then the task is to be made pending.
local function end_sleep(key, id, scheduled, state, awaits, field)
  if state ~= 'scheduled' then return false end
  local is_awaited = string.find((awaits or '') .. '\0', '\0' .. field .. '\0', 1, true)
  if not is_awaited or redis.call('ZREM', scheduled, id) == 0 then return false end
  redis.call('HDEL', key, 'awaits')
  return true
end
