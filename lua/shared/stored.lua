-- Returns message, result and pending_since of a task, each '' when it is missing or the key is no hash.
local function stored(key)
  local fields = redis.pcall('HMGET', key, 'msg', 'result', 'pending_since')
  return fields[1] or '', fields[2] or '', fields[3] or ''
end
