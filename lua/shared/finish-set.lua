-- Uses shared/spread.lua
-- Uses shared/delayed-groups.lua

local FINISHED, DUPLICATE, CONFLICT, LOST = 0, 1, 2, 3

local call, try = redis.call, redis.pcall
local locks, route = tonumber(ARGV[5]), ARGV[7]

call('LLEN', KEYS[3])
call('ZCARD', KEYS[4])
call('SCARD', KEYS[5])
if L then L.open(ARGV[1], ARGV[3], ARGV[4]) end
if tonumber(call('ZSCORE', KEYS[1], KEYS[2])) ~= tonumber(ARGV[2]) then
  local made = ARGV[6] == '1' and route ~= '' and try('HGET', KEYS[locks + 6], 'msg')
  return made == ARGV[locks + 8] and FINISHED or LOST
end
local members = call('ZRANGE', KEYS[2], 0, -1)
if route ~= '' and #members == 0 then return LOST end

-- Locks that are released with the set: the new task may take one of them.
local released, free = {}, {}
for i = 1, locks do
  local lock = KEYS[i + 5]
  if try('GET', lock) == ARGV[i + 7] and call('ZSCORE', KEYS[2], ARGV[i + 7]) then
    released[#released + 1] = lock
    free[lock] = true
  end
end

local key, lock, set, message, ttl, place, id, group
if route ~= '' then
  local next_key, next_argument = locks + 7, locks + 9
  key, message = KEYS[locks + 6], ARGV[locks + 8]
  if route ~= string.lower(route) then
    lock, ttl = KEYS[next_key], ARGV[next_argument]
    next_key, next_argument = next_key + 1, next_argument + 1
    route = string.lower(route)
  end
  place, set, group = ARGV[next_argument], KEYS[next_key], ARGV[next_argument + 1]
  id = string.sub(key, #ARGV[1] + 1)
  if set then call('ZCARD', set) end
  if lock and not free[lock] and call('EXISTS', lock) == 1 then return DUPLICATE end
  if call('EXISTS', key) == 1 then return CONFLICT end
end

-- Everything is checked. From here on the script writes. What takes memory comes first, as a full Redis refuses only the
-- first such write of a script.
if route == 'p' then
  call('HSET', key, 'msg', message, 'state', 'pending', 'pending_since', ARGV[4])
  call('LPUSH', KEYS[3], id)
elseif route == 's' then
  call('HSET', key, 'msg', message, 'state', 'scheduled')
  call('ZADD', KEYS[4], place, id)
elseif route == 'l' then
  call('HSET', key, 'msg', message, 'state', 'scheduled', 'group', group)
  call('ZADD', KEYS[4], place, id)
  note_delayed_groups(set, ARGV[3], { place, group })
elseif route == 'g' then
  call('HSET', key, 'msg', message, 'state', 'aggregating', 'group', place)
  call('ZADD', set, ARGV[3], id)
  call('SADD', KEYS[5], place)
elseif L then
  local task = cjson.decode(place)
  task.message = message
  L.create(task)
end
spread('DEL', nil, released)
if lock then
  call('SET', lock, id, 'NX', 'EX', ttl)
  call('HSET', key, 'unique_key', lock)
end
for i = 1, #members do
  members[i] = ARGV[1] .. members[i]
end
spread('DEL', nil, members)
call('DEL', KEYS[2])
call('ZREM', KEYS[1], KEYS[2])
if not L then return FINISHED end
L.work()
return { FINISHED, L.parcels() }
