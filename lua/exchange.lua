-- Settles finished tasks, then takes pending ones unless the queue is paused: ConsumerBroker.exchange.
-- A settlement counts only while the caller's lease is in force; else nothing is written for it and it is reported lost.
--
-- KEYS
--   1 pending
--   2 paused
--   3 active
--   4 lease
--   5 processedOn
--   6 processed
--   7 failedOn
--   8 failed
--   9 retry
--   10 archived
--   11 completed
--   12… the hash of each task to settle; then the lock of each settlement that names one
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 leaseExpiry: seconds, for what is taken
--   5 statsExpiry: seconds, for a daily counter that begins
--   6 max: the total at which Go starts again from 1
--   7 take: tasks wanted
--   8 count: tasks to settle
--   9 fences: see shared/fence.lua
--   10… six each for whatever is not a plain `done`: index, kind, '1' when it has a lock, message, time, result
-- Returns
--   backlog (0 when paused), indexes of the lost settlements, and the taken tasks packed as [id, message, id, message …]
--
-- Uses shared/spread.lua
-- Uses shared/fence.lua

local DONE, COMPLETE, COMPLETE_WITH_RESULT, RETRY, RETRY_FAILED, ARCHIVE, ARCHIVE_AS_IS, REQUEUE =
  '0', '1', '2', '3', '4', '5', '6', '7'

-- Beyond this total the wrap may be near, and counting is done one by one.
local FAR_FROM_MAX = 9.2e18
-- How many ids without a task are passed over in one call.
local MOST_GHOSTS = 1000
-- Redis keeps a sorted set of up to 128 short members in a list it searches from one end to the other; with 100 tasks running that
-- is a third of the time of a call. A member that is too long for it makes the set a skip list, and is gone before anyone can
-- see it. It is no valid UTF-8, and so nobody's id.
local FEW, UNLISTED = 24, string.rep('\255', 65)

local call, try = redis.call, redis.pcall
local pending, active, lease = KEYS[1], KEYS[3], KEYS[4]
local take, count = tonumber(ARGV[7]), tonumber(ARGV[8])

-- Reading every key first also finds those of a wrong type, before anything is written.
local backlog = call('LLEN', pending)
local paused = call('EXISTS', KEYS[2]) == 1
if paused then take = 0 end
if count == 0 and (take == 0 or backlog == 0) then
  return { paused and 0 or backlog, {}, '' }
end
local running = call('LLEN', active)

-- Refuses what INCRBY would, which must not happen half-way.
local function read_counter(key, most)
  local value = call('GET', key) or '0'
  local number = tonumber(value)
  if not (value == '0' or string.find(value, '^-?[1-9]%d*$')) or math.abs(number) > most then
    error('WRONGTYPE the counter ' .. key .. ' holds "' .. value .. '", which cannot be counted on from')
  end
  return number
end

local function add(day_key, amount)
  if call('INCRBY', day_key, amount) == amount then call('EXPIREAT', day_key, ARGV[5]) end
end

-- Go starts the totals again from 1 when `processed`, as a double, has reached the maximum.
local function add_to_totals(total, succeeded, failures)
  if total + succeeded + failures < FAR_FROM_MAX then
    call('INCRBY', KEYS[6], succeeded + failures)
    if failures > 0 then call('INCRBY', KEYS[8], failures) end
    return
  end
  for i = 1, succeeded + failures do
    local wraps = tonumber(call('GET', KEYS[6])) == tonumber(ARGV[6])
    if wraps then call('SET', KEYS[6], 1) else call('INCR', KEYS[6]) end
    if i > succeeded then
      if wraps then call('SET', KEYS[8], 1) else call('INCR', KEYS[8]) end
    end
  end
end

-- Most of what is settled is old, and so near the tail of the list: that part is rewritten at once, which is cheaper than
-- a search per id and keeps the order of the others.
local function remove_from_active(ids, settled)
  if #ids >= 4 then
    local tail = call('LRANGE', active, -2 * #ids, -1)
    local kept = {}
    for i = 1, #tail do
      local id = tail[i]
      if settled[id] then settled[id] = 'removed' else kept[#kept + 1] = id end
    end
    if #kept < #tail then
      call('LTRIM', active, 0, -#tail - 1)
      spread('RPUSH', active, kept)
    end
  end
  for i = 1, #ids do
    if settled[ids[i]] ~= 'removed' then call('LREM', active, -1, ids[i]) end
  end
end

local function release(lock, id)
  if try('GET', lock) == id then call('DEL', lock) end
end

local function settle_special(id, key, item)
  local kind = item.kind
  if kind == COMPLETE then
    call('HSET', key, 'msg', item.message, 'state', 'completed')
    call('ZADD', KEYS[11], item.time, id)
  elseif kind == COMPLETE_WITH_RESULT then
    call('HSET', key, 'msg', item.message, 'state', 'completed', 'result', item.result)
    call('ZADD', KEYS[11], item.time, id)
  elseif kind == RETRY or kind == RETRY_FAILED then
    call('HSET', key, 'msg', item.message, 'state', 'retry')
    call('ZADD', KEYS[9], item.time, id)
  elseif kind == ARCHIVE then
    call('HSET', key, 'msg', item.message, 'state', 'archived')
    call('ZADD', KEYS[10], ARGV[2], id)
  elseif kind == ARCHIVE_AS_IS then
    call('HSET', key, 'state', 'archived')
    call('ZADD', KEYS[10], ARGV[2], id)
  elseif kind == REQUEUE then
    call('HSET', key, 'state', 'pending', 'pending_since', ARGV[3])
    call('RPUSH', pending, id)
    backlog = backlog + 1
  end
  if item.lock then release(item.lock, id) end
end

local function read_specials()
  local specials, any = {}, false
  local lock = 11 + count
  for i = 10, #ARGV, 6 do
    local item = { kind = ARGV[i + 1], message = ARGV[i + 3], time = ARGV[i + 4], result = ARGV[i + 5] }
    if ARGV[i + 2] == '1' then
      lock = lock + 1
      item.lock = KEYS[lock]
    end
    specials[tonumber(ARGV[i])] = item
    any = any or item.kind ~= DONE
  end
  return specials, any
end

local lost = {}

if count > 0 then
  local ids, id_start = {}, #ARGV[1] + 1
  for i = 1, count do
    ids[i] = string.sub(KEYS[11 + i], id_start)
  end
  local specials, moves = read_specials()
  if moves then
    call('ZCARD', KEYS[9])
    call('ZCARD', KEYS[10])
    call('ZCARD', KEYS[11])
  end
  local held = held_leases(lease, ids, ARGV[9])
  local settled, settled_ids, settled_indexes, number, failures, moved = {}, {}, {}, 0, 0, 0
  for i = 1, count do
    local id, item = ids[i], specials[i]
    local kind = item and item.kind or DONE
    local ours = held[i] and not settled[id] and (kind == DONE or try('HGET', KEYS[11 + i], 'state') == 'active')
    if ours then
      number = number + 1
      settled[id], settled_ids[number], settled_indexes[number] = true, id, i
      if kind == RETRY_FAILED or kind == ARCHIVE or kind == ARCHIVE_AS_IS then
        failures = failures + 1
      elseif kind == RETRY or kind == REQUEUE then
        moved = moved + 1
      end
    else
      lost[#lost + 1] = i
    end
  end
  local total = read_counter(KEYS[6], tonumber(ARGV[6]))
  read_counter(KEYS[5], FAR_FROM_MAX)
  if failures > 0 then
    read_counter(KEYS[7], FAR_FROM_MAX)
    read_counter(KEYS[8], FAR_FROM_MAX)
  end

  -- Everything is checked. The first write frees memory, so that a full Redis refuses none of those that follow.
  spread('ZREM', lease, settled_ids)
  remove_from_active(settled_ids, settled)
  local done_keys, done = {}, 0
  for n = 1, number do
    local i = settled_indexes[n]
    local item = specials[i]
    if not item or item.kind == DONE then
      done = done + 1
      done_keys[done] = KEYS[11 + i]
      if item and item.lock then release(item.lock, settled_ids[n]) end
    else
      settle_special(settled_ids[n], KEYS[11 + i], item)
    end
  end
  spread('DEL', nil, done_keys)
  if number > moved then
    add(KEYS[5], number - moved)
    if failures > 0 then add(KEYS[7], failures) end
    add_to_totals(total, number - moved - failures, failures)
  end
else
  call('ZCARD', lease)
end

if take == 0 or backlog == 0 then
  return { paused and 0 or backlog, lost, '' }
end

local taken, tasks, leases, popped, n = {}, {}, { '0', UNLISTED }, 0, 0
repeat
  local ids = call('RPOP', pending, take - n)
  if not ids then break end
  popped = popped + #ids
  for i = 1, #ids do
    local id = ids[i]
    local key = ARGV[1] .. id
    local message = try('HGET', key, 'msg')
    if type(message) == 'string' then
      call('HSET', key, 'state', 'active')
      call('HDEL', key, 'pending_since')
      n = n + 1
      taken[n] = id
      tasks[2 * n - 1], tasks[2 * n] = id, message
      leases[2 * n + 1], leases[2 * n + 2] = ARGV[4], id
    elseif not message then
      call('DEL', key) -- a stub without a message; what is no hash at all is not ours to delete
    end
  end
until n == take or popped > take + MOST_GHOSTS
if n == 0 then return { backlog - popped, lost, '' } end
spread('LPUSH', active, taken)
if running + n > FEW then
  spread('ZADD', lease, leases)
  call('ZREM', lease, UNLISTED)
else
  call('ZADD', lease, unpack(leases, 3))
end
return { backlog - popped, lost, cmsgpack.pack(tasks) }
