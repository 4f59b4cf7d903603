-- Reserves numbers for the members of a batch: BatchesRole.reserve.
--
-- KEYS
--   1 batch
--   2 timers
-- ARGV
--   1 batch
--   2 now: seconds
--   3 wait: how long a chunk may stay unconfirmed, in seconds
--   4 byMember: '1' or '0'
--   5… queue and number of members of each chunk
-- Returns
--   the status: 0 reserved, 1 missing, 2 ended; then the number of the first member of each chunk

local RESERVED, MISSING, ENDED = 0, 1, 2
-- Members that fill a byte of the bitmaps have whole bytes to themselves: see add-members.lua.
local BYTE = 8

local call = redis.call
local key, id, due = KEYS[1], ARGV[1], tonumber(ARGV[2]) + tonumber(ARGV[3])
local stored = call('HMGET', key, 'state', 'next', 'queues')
local state = stored[1]
call('ZCARD', KEYS[2])
if not state then return { MISSING } end
if state == 'succeeded' or (state == 'completed' and ARGV[4] ~= '1') then return { ENDED } end

local known, queues = {}, cjson.decode(stored[3])
for i = 1, #queues do
  known[queues[i]] = true
end
if state == 'completed' then
  call('HSET', key, 'state', 'closed')
  call('HDEL', key, 'endedAt')
  call('ZADD', KEYS[2], due, 'batch ' .. id)
end
local after, total, reply = tonumber(stored[2]), 0, { RESERVED }
for i = 5, #ARGV, 2 do
  local queue, count = ARGV[i], tonumber(ARGV[i + 1])
  local base = after
  if count >= BYTE then base = math.ceil(base / BYTE) * BYTE end
  after = base + count
  if count >= BYTE then after = math.ceil(after / BYTE) * BYTE end
  total = total + count
  call('HSET', key, 'c:' .. string.format('%.0f', base), ARGV[i + 1] .. ' ' .. queue)
  call('ZADD', KEYS[2], due, 'chunk ' .. id .. ' ' .. string.format('%.0f', base))
  reply[#reply + 1] = base
  if not known[queue] then
    known[queue] = true
    queues[#queues + 1] = queue
  end
end
call('HSET', key, 'next', string.format('%.0f', after), 'queues', #queues > 0 and cjson.encode(queues) or '[]')
call('HINCRBY', key, 'total', total)
call('HINCRBY', key, 'unconfirmed', #reply - 1)
return reply
