-- Returns since when a task is held, in nanoseconds, and in which waitlist ('' when an older version has put it there); nothing when it
-- is not: it has left `retry`, or is there for another time. `due` is its score in `retry`.
local function hold(key, due)
  if not due then return end
  local fields = redis.pcall('HMGET', key, 'waits', 'held_by')
  local till, since = string.match(fields[1] or '', '^(%d+) (%d+)$')
  if till == due then return since .. '000', fields[2] or '' end
end
