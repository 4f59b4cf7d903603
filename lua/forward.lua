-- Moves due tasks to the end of their queue, or into their group: MaintenanceRole.forward, one step.
--
-- KEYS
--   1 scheduled
--   2 retry
--   3 pending
--   4 groups
--   5 delayedGroups
--   6 held
-- ARGV
--   1 taskPrefix
--   2 groupPrefix
--   3 now: seconds
--   4 nowNanos
--   5 limit
-- Returns
--   how many were moved, the lowest score left ('' when none is), and 1 when more is due
--
-- Uses shared/spread.lua
-- Uses shared/delayed-groups.lua

local call, try = redis.call, redis.pcall

call('LLEN', KEYS[3])
call('SCARD', KEYS[4])
call('ZCARD', KEYS[5])
call('ZCARD', KEYS[6])

-- Reads before anything is written. An id without a message is dangling: it is removed, with what is left of its hash.
local due = { {}, {} }
local keys, groups, dangling, left = {}, {}, {}, tonumber(ARGV[5])
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
      -- A task that waited for others, and was run by hand, still names the group of those that wait.
      if group and group ~= '' and group ~= 'asynq:waiting' then
        call('ZCARD', ARGV[2] .. group)
        groups[ids[i]] = group
      end
    elseif found == 0 then
      dangling[#dangling + 1] = key
    end
  end
end

local moved, pending = 0, {}
for source = 1, 2 do
  local ids = due[source]
  spread('ZREM', KEYS[source], ids)
  if source == 2 and #ids > 0 and call('EXISTS', KEYS[6]) == 1 then spread('ZREM', KEYS[6], ids) end
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
spread('DEL', nil, dangling)

local next_due = ''
for source = 1, 2 do
  local lowest = call('ZRANGE', KEYS[source], 0, 0, 'WITHSCORES')[2]
  if lowest and (next_due == '' or tonumber(lowest) < tonumber(next_due)) then next_due = lowest end
end

-- Another server may have moved some of the due tasks.
local more = list_delayed_groups(KEYS[5], KEYS[4], ARGV[2], ARGV[3], next_due ~= '' and next_due or nil)
return { moved, next_due, more and 1 or 0 }
