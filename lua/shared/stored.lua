-- The message and the result of a task, each '' when it is not there or the key is no hash.
local function stored(key)
  local fields = redis.pcall('HMGET', key, 'msg', 'result')
  return fields[1] or '', fields[2] or ''
end
