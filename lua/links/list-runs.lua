-- Lists the runs of a queue, newest first: WorkflowsRole.runs.
--
-- KEYS
--   1 runs
-- ARGV
--   1 runPrefix
--   2 offset
--   3 last: the offset of the last one
-- Returns
--   packed: id, counts and options of each

local call, try = redis.call, redis.pcall
local reply = {}
for _, id in ipairs(call('ZREVRANGE', KEYS[1], ARGV[2], ARGV[3])) do
  local stored = try('HMGET', ARGV[1] .. id, 'c', 'o')
  if stored[1] then
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] = id, stored[1], stored[2] or '{}'
  end
end
return cmsgpack.pack(reply)
