-- Uses shared/delayed-groups.lua

local ENQUEUED, DUPLICATE, CONFLICT, PAST, UNFINISHED, PAUSED = 0, 1, 2, 3, 4, 5
local call = redis.call

local known = call('HMGET', KEYS[1], 'mark', 'attempt', 'status', 'task', 'fired', 'paused', 'resumed')
local fired = known[5] or ''
if known[1] and tonumber(known[1]) >= tonumber(ARGV[4]) then
  if known[2] == ARGV[5] then return { tonumber(known[3]), known[1], fired } end
  return { PAST, known[1], fired }
end
if known[6] or (known[7] and tonumber(known[7]) >= tonumber(ARGV[4])) then
  call('HSET', KEYS[1], 'mark', ARGV[4], 'attempt', ARGV[5], 'status', PAUSED)
  call('EXPIRE', KEYS[1], ARGV[7])
  return { PAUSED, ARGV[4], fired }
end

local route = string.lower(ARGV[9])
local unique = route ~= ARGV[9]
local lock, ttl = unique and KEYS[6], unique and ARGV[11]
local at = unique and 12 or 11
local place, group, set = ARGV[at], ARGV[at + 1], KEYS[unique and 7 or 6]
call('LLEN', KEYS[2])
call('ZCARD', KEYS[3])
call('SCARD', KEYS[4])
if set then call('ZCARD', set) end
if L then L.open(ARGV[1], ARGV[2], ARGV[3]) end
local exists = call('HLEN', KEYS[5]) > 0

local function is_unfinished(id)
  local state = redis.pcall('HGET', ARGV[1] .. id, 'state')
  return type(state) == 'string' and state ~= 'completed' and state ~= 'archived'
end

local status = ENQUEUED
if ARGV[6] == '1' and known[4] and is_unfinished(known[4]) then
  status = UNFINISHED
elseif lock and call('EXISTS', lock) == 1 then
  status = DUPLICATE
elseif exists then
  status = CONFLICT
end

-- Everything is checked. From here on the script writes.
call('HSET', KEYS[1], 'mark', ARGV[4], 'fired', ARGV[4], 'attempt', ARGV[5], 'status', status)
call('EXPIRE', KEYS[1], ARGV[7])
if status ~= ENQUEUED then return { status, ARGV[4], ARGV[4] } end
call('HSET', KEYS[1], 'task', ARGV[8])
if route == 'p' then
  call('HSET', KEYS[5], 'msg', ARGV[10], 'state', 'pending', 'pending_since', ARGV[3])
  call('LPUSH', KEYS[2], ARGV[8])
elseif route == 's' then
  call('HSET', KEYS[5], 'msg', ARGV[10], 'state', 'scheduled')
  call('ZADD', KEYS[3], place, ARGV[8])
elseif route == 'l' then
  call('HSET', KEYS[5], 'msg', ARGV[10], 'state', 'scheduled', 'group', group)
  call('ZADD', KEYS[3], place, ARGV[8])
  note_delayed_groups(set, ARGV[2], { place, group })
elseif L then
  local task = cjson.decode(place)
  task.message = ARGV[10]
  L.create(task)
  L.work()
else
  call('HSET', KEYS[5], 'msg', ARGV[10], 'state', 'aggregating', 'group', place)
  call('ZADD', set, ARGV[2], ARGV[8])
  call('SADD', KEYS[4], place)
end
if lock then
  call('SET', lock, ARGV[8], 'EX', ttl)
  call('HSET', KEYS[5], 'unique_key', lock)
end
return { status, ARGV[4], ARGV[4], L and L.parcels() }
