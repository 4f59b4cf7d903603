-- Creates tasks in order, all of one queue: ProducerBroker.enqueue.
-- The state of a task follows from its route; tasks of one call see those before them.
--
-- KEYS
--   1 pending
--   2 scheduled
--   3 groups
--   4… the hash of each task; then, task by task, its lock when it is unique and the set of its group when it joins one
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 resent: '1' when an earlier call with the same tasks may have done its work
--   5 routes: a letter for each task: p pending, s scheduled, g group; upper case when it is unique
--   6… the message of each task; then, task by task, the seconds its lock lives, its time (seconds) or the name of its group
-- Returns
--   index, status of each task that was not created: 1 duplicate (its lock is held; tested first), 2 conflict (its id exists)
--
-- Uses shared/spread.lua

local DUPLICATE, CONFLICT, PRESENT = 1, 2, 3
local PENDING, SCHEDULED = 112, 115 -- p, s
local CASE = 32 -- between an upper-case letter and its lower case

local call, try = redis.call, redis.pcall
local routes, count, id_start = ARGV[5], #ARGV[5], #ARGV[1] + 1
local resent = ARGV[4] == '1'

local existing = 0
for first = 1, count, 1000 do
  existing = existing + call('EXISTS', unpack(KEYS, first + 3, math.min(first + 999, count) + 3))
end

-- What the earlier call of a resent batch has stored, and nobody has changed since.
local function is_present(key, message)
  return resent and existing > 0 and try('HGET', key, 'msg') == message
end

local function check(index, lock, created, locked)
  local key = KEYS[index + 3]
  if lock and (locked[lock] or call('EXISTS', lock) == 1) then
    local ours = not locked[lock] and not created[key] and is_present(key, ARGV[index + 5])
    if ours and try('GET', lock) == string.sub(key, id_start) then return PRESENT end
    return DUPLICATE
  end
  if created[key] then return CONFLICT end
  if existing > 0 and call('EXISTS', key) == 1 then
    return is_present(key, ARGV[index + 5]) and PRESENT or CONFLICT
  end
  return nil
end

-- Checks all, and finds the keys and arguments of each task. `created` and `locked` hold what this call creates.
local statuses, created, locked = {}, {}, {}
local locks, sets, ttls, places = {}, {}, {}, {}
local next_key, next_argument = count + 4, count + 6
local some_pending, some_scheduled = false, false
for i = 1, count do
  local route = string.byte(routes, i)
  if route < 97 then
    route = route + CASE
    locks[i], ttls[i] = KEYS[next_key], ARGV[next_argument]
    next_key, next_argument = next_key + 1, next_argument + 1
  end
  if route == PENDING then
    some_pending = true
  else
    places[i] = ARGV[next_argument]
    next_argument = next_argument + 1
    if route == SCHEDULED then
      some_scheduled = true
    else
      sets[i] = KEYS[next_key]
      next_key = next_key + 1
      call('ZCARD', sets[i])
      call('SCARD', KEYS[3])
    end
  end
  local status = check(i, locks[i], created, locked)
  statuses[i] = status
  if not status or status == PRESENT then
    created[KEYS[i + 3]] = true
    if locks[i] then locked[locks[i]] = true end
  end
end
if some_pending then call('LLEN', KEYS[1]) end
if some_scheduled then call('ZCARD', KEYS[2]) end

-- Everything is checked: now it is written.
local refused, pending, scheduled = {}, {}, {}
for i = 1, count do
  local status = statuses[i]
  if not status then
    local key, message, lock, place = KEYS[i + 3], ARGV[i + 5], locks[i], places[i]
    local id = string.sub(key, id_start)
    if lock then
      call('SET', lock, id, 'NX', 'EX', ttls[i])
      call('HSET', key, 'unique_key', lock)
    end
    if not place then
      call('HSET', key, 'msg', message, 'state', 'pending', 'pending_since', ARGV[3])
      pending[#pending + 1] = id
    elseif not sets[i] then
      call('HSET', key, 'msg', message, 'state', 'scheduled')
      scheduled[#scheduled + 1] = place
      scheduled[#scheduled + 1] = id
    else
      call('HSET', key, 'msg', message, 'state', 'aggregating', 'group', place)
      call('ZADD', sets[i], ARGV[2], id)
      call('SADD', KEYS[3], place)
    end
  elseif status ~= PRESENT then
    refused[#refused + 1] = i
    refused[#refused + 1] = status
  end
end
spread('LPUSH', KEYS[1], pending)
spread('ZADD', KEYS[2], scheduled)
return refused
