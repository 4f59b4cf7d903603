-- Moves due tasks to the end of their queue, or into their group: MaintenanceBroker.forward, one step.
--
-- KEYS
--   1 scheduled
--   2 retry
--   3 pending
--   4 groups
--   5 delayedGroups
-- ARGV
--   1 taskPrefix
--   2 groupPrefix
--   3 now: seconds
--   4 nowNanos
--   5 limit
-- Returns
--   how many were moved, the lowest score that is left ('' when none is), and 1 when there is more to do
--
-- Uses shared/spread.lua

-- Notes looked at by one call.
local MOST_NOTED = 500

local call, try = redis.call, redis.pcall

call('LLEN', KEYS[3])
call('SCARD', KEYS[4])
call('ZCARD', KEYS[5])

-- Reads before anything is written. An id without a message is a ghost: it leaves the set, with its stub of a hash.
local due = { {}, {} }
local keys, groups, ghosts, left = {}, {}, {}, tonumber(ARGV[5])
for source = 1, 2 do
  local ids = call('ZRANGE', KEYS[source], '-inf', ARGV[3], 'BYSCORE', 'LIMIT', 0, left)
  due[source] = ids
  left = left - #ids
  for i = 1, #ids do
    local key = ARGV[1] .. ids[i]
    local found = try('HEXISTS', key, 'msg')
    if found == 1 then
      keys[ids[i]] = key
      local group = call('HGET', key, 'group')
      if group and group ~= '' then
        call('ZCARD', ARGV[2] .. group)
        groups[ids[i]] = group
      end
    elseif found == 0 then
      ghosts[#ghosts + 1] = key
    end
  end
end

local moved, pending = 0, {}
for source = 1, 2 do
  local ids = due[source]
  spread('ZREM', KEYS[source], ids)
  for i = 1, #ids do
    local id = ids[i]
    local key, group = keys[id], groups[id]
    if group then
      call('HSET', key, 'state', 'aggregating')
      call('ZADD', ARGV[2] .. group, ARGV[3], id)
      call('SADD', KEYS[4], group)
    elseif key then
      call('HSET', key, 'state', 'pending', 'pending_since', ARGV[4])
      pending[#pending + 1] = id
    end
    if key then moved = moved + 1 end
  end
end
spread('LPUSH', KEYS[3], pending)
spread('DEL', nil, ghosts)

local next_due = ''
for source = 1, 2 do
  local lowest = call('ZRANGE', KEYS[source], 0, 0, 'WITHSCORES')[2]
  if lowest and (next_due == '' or tonumber(lowest) < tonumber(next_due)) then next_due = lowest end
end

-- Another server may have moved some of these, and Go's lists no group. What is due has left `scheduled`, so this is the time to see.
local more = 0
if next_due == '' or tonumber(next_due) > tonumber(ARGV[3]) then
  local noted = call('ZRANGE', KEYS[5], '-inf', ARGV[3], 'BYSCORE', 'LIMIT', 0, MOST_NOTED)
  for i = 1, #noted do
    local group = string.match(noted[i], '^[^:]*:(.+)$')
    local size = group and try('ZCARD', ARGV[2] .. group)
    if type(size) == 'number' and size > 0 then call('SADD', KEYS[4], group) end
  end
  spread('ZREM', KEYS[5], noted)
  if #noted == MOST_NOTED then more = 1 end
end
return { moved, next_due, more }
