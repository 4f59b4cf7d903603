-- Stores fields of the hashes of active tasks that the caller has leased: ConsumerRole.writeResult, CheckpointsRole.write.
--
-- KEYS
--   1 lease
--   2… the task of each write
-- ARGV
--   1 taskPrefix
--   2… field and value of each write, then the fences: see shared/fence.lua
-- Returns
--   for each write 1; 0 when the task is not the caller's and nothing was written; or the text of an error, after which nothing was written
--   either. The error of a lone write is that of the call.
--
-- Uses shared/fence.lua

local try, type, count = redis.pcall, type, #KEYS - 1
local ids, id_start = {}, #ARGV[1] + 1
for i = 1, count do
  ids[i] = string.sub(KEYS[i + 1], id_start)
end
local missing = missing_leases(KEYS[1], ids, 2 * count + 2)
local replies = {}
for i = 1, count do
  local reply = not missing[i] and try('HGET', KEYS[i + 1], 'state')
  if reply == 'active' then
    reply = try('HSET', KEYS[i + 1], ARGV[2 * i], ARGV[2 * i + 1])
    if type(reply) == 'number' then reply = 1 end
  end
  if type(reply) == 'table' then
    if count == 1 then return reply end
    replies[i] = reply.err
  else
    replies[i] = reply == 1 and 1 or 0
  end
end
return replies
