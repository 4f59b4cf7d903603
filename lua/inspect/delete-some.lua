-- Deletes some tasks of a queue, with the locks they hold: AdministrationRole.deleteQueue, one step.
--
-- KEYS
--   1 pending
--   2 scheduled
--   3 retry
--   4 archived
--   5 completed
--   6 groups
--   7 aggregationSets
--   8 waitingTasks
--   9 fairRing
--   10 fairHeld
-- ARGV
--   1 taskPrefix
--   2 groupPrefix
--   3 limit
--   4 fairGroup: how the groups begin that are the lines of a fair queue
-- Returns
--   how many were deleted; -1 when nothing is left
--
-- Uses shared/spread.lua

local call, try = redis.call, redis.pcall
local limit = tonumber(ARGV[3])
local number = call('LLEN', KEYS[1])
local filled
for _, i in ipairs({ 2, 3, 4, 5, 8 }) do
  if call('ZCARD', KEYS[i]) > 0 then filled = KEYS[i] end
end
local fair, key = KEYS[9], call('ZRANGE', KEYS[9], 0, 0)[1]
if not key then
  fair, key = KEYS[10], call('ZRANGE', KEYS[10], 0, 0)[1]
end
local group, set = call('SRANDMEMBER', KEYS[6]), call('ZRANGE', KEYS[7], 0, 0)[1]

local function delete(ids)
  local keys, locks = {}, {}
  for i, id in ipairs(ids) do
    local key = ARGV[1] .. id
    keys[i] = key
    local lock = try('HGET', key, 'unique_key')
    if type(lock) == 'string' and lock ~= '' and try('GET', lock) == id then locks[#locks + 1] = lock end
  end
  spread('DEL', nil, locks)
  spread('DEL', nil, keys)
  return #ids
end

local function empty(key)
  local ids = try('ZRANGE', key, 0, limit - 1)
  if ids.err then
    call('DEL', key)
    return 0
  end
  spread('ZREM', key, ids)
  return delete(ids)
end

if number > 0 then
  local ids = call('LRANGE', KEYS[1], -limit, -1)
  call('LTRIM', KEYS[1], 0, -#ids - 1)
  return delete(ids)
end
if filled then return empty(filled) end
if key then
  local line = ARGV[2] .. ARGV[4] .. key
  local deleted = empty(line)
  if call('EXISTS', line) == 0 then call('ZREM', fair, key) end
  return deleted
end
if group then
  local deleted = empty(ARGV[2] .. group)
  if call('EXISTS', ARGV[2] .. group) == 0 then call('SREM', KEYS[6], group) end
  return deleted
end
if set then
  -- The name comes from outside: a key of another queue is left alone.
  local ours = string.sub(set, 1, #ARGV[2]) == ARGV[2]
  local deleted = ours and empty(set) or 0
  if not ours or call('EXISTS', set) == 0 then call('ZREM', KEYS[7], set) end
  return deleted
end
return -1
