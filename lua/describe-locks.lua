-- Reads locks and the tasks that hold them: UniquenessRole.describe.
--
-- KEYS
--   1… the locks
-- ARGV
--   1 taskPrefix
-- Returns
--   of each lock the id that it holds, its time to live (milliseconds), the state of that task, and its message, each '' when unknown; packed
--
-- Uses shared/hold.lua

local call, try = redis.call, redis.pcall
local found, retry = {}, string.sub(ARGV[1], 1, -#'t:' - 1) .. 'retry'
for i = 1, #KEYS do
  local id, n = try('GET', KEYS[i]), #found
  local fields = {}
  if type(id) ~= 'string' then id = '' end
  if id ~= '' then fields = try('HMGET', ARGV[1] .. id, 'msg', 'state', 'group') end
  local state = fields[2] == 'aggregating' and fields[3] == 'asynq:waiting' and 'waiting' or fields[2]
  if state == 'retry' then
    local due = try('ZSCORE', retry, id)
    if type(due) == 'string' and hold(ARGV[1] .. id, due) then state = 'held' end
  end
  found[n + 1], found[n + 2] = id, tostring(call('PTTL', KEYS[i]))
  found[n + 3], found[n + 4] = state or '', fields[1] or ''
end
return #found > 0 and cmsgpack.pack(found) or ''
