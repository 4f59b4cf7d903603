-- Reads a batch at its home: BatchesRole.progress.
--
-- KEYS
--   1 batch
-- Returns
--   name, state, openedAt, endedAt; then each queue and what its part reported last, see batches.lua; empty when there is no such batch

local call = redis.call
local found = call('HMGET', KEYS[1], 'name', 'state', 'openedAt', 'endedAt', 'queues')
if not found[2] then return {} end
local reply = { found[1], found[2], found[3], found[4] or '' }
local known, queues = pcall(cjson.decode, found[5] or '')
for _, queue in ipairs(known and type(queues) == 'table' and queues or {}) do
  reply[#reply + 1] = queue
  reply[#reply + 1] = call('HGET', KEYS[1], 'p:' .. queue) or ''
end
return reply
