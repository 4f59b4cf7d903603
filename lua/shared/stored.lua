-- Returns message, result, pending_since and progress of a task, each '' when it is missing or the key is no hash.
local function stored(key)
  local fields = redis.pcall('HMGET', key, 'msg', 'result', 'pending_since', 'note:progress')
  return fields[1] or '', fields[2] or '', fields[3] or '', fields[4] or ''
end
