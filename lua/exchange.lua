-- Settles finished tasks, then takes pending ones unless the queue is paused: ConsumerRole.exchange.
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
--   12 rate
--   13… the hash of each task to settle; then, for each settlement that names one, the lock or the line it waits in
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 leaseExpiry: seconds, for what is taken
--   5 take: tasks wanted
--   6 count: tasks to settle
--   7 limits: empty, or "active rate window": tasks running in the fleet, and starts per so many milliseconds; 0 is no limit
--   8 since: '1' to be told since when each task taken was pending, else empty
--   9… the fences: see shared/fence.lua; then, for what is no plain `done`: index, kind, '1' if it names a key, message, time, result
-- Returns
--   packed: backlog (0 when paused), milliseconds until a limit that was reached may let more through (0: none was),
--     number of lost settlements, their indexes; then id and message of each task taken,
--     followed, when asked for, by the nanoseconds since when it was pending (empty when that is not known)
--
-- Uses shared/spread.lua
-- Uses shared/fence.lua
-- Uses shared/starts.lua

local DONE, COMPLETE, COMPLETE_WITH_RESULT, RETRY, RETRY_FAILED, ARCHIVE, ARCHIVE_AS_IS, REQUEUE, WAIT =
  '0', '1', '2', '3', '4', '5', '6', '7', '8'

-- A task that is settled: its id stands in `active` still, or no longer.
local LISTED, UNLISTED = 1, 2
-- The total at which Go starts again from 1. Beyond the second one that may be near, and counting is done one by one.
local MAX, FAR_FROM_MAX = 9223372036854775807, 9.2e18
-- Seconds for which the counters of a day are kept.
local COUNTS_KEPT = 90 * 86400
-- How many ids without a task are passed over in one call.
local MOST_GHOSTS = 1000
-- Redis keeps a sorted set of up to 128 short members in a list it searches from one end to the other; with 100 tasks running that
-- is a third of the time of a call. A member that is too long for it makes the set a skip list, and is gone before anyone can
-- see it. It is no valid UTF-8, and so nobody's id.
local FEW, TOO_LONG = 24, 65
-- Milliseconds after which a queue with too many running tasks is asked again: nothing tells when one ends elsewhere.
local LOOK_AGAIN = 100
-- Seconds until a task that waits in a line runs even if nobody wakes it: this, and one for so many that wait, and this at most.
local WAIT_LEAST, WAITING_PER_SECOND, WAIT_MOST = 60, 10, 3600

-- A worker of one slot settles one task and takes one, and then Lua itself is most of a call: a function costs more to create
-- than the call spends in it. So this text runs straight through and has few.
local call, try, type = redis.call, redis.pcall, type
local pending, active, lease = KEYS[1], KEYS[3], KEYS[4]
-- Where one of these goes into a command unchanged it goes as the text it came as: Redis writes out a number of Lua with 17 digits.
local take, count = tonumber(ARGV[5]), tonumber(ARGV[6])

-- Reading every key first also finds those of a wrong type, before anything is written.
local backlog = call('LLEN', pending)
local paused = call('EXISTS', KEYS[2]) == 1
if paused then take = 0 end
if count == 0 and (take == 0 or backlog == 0) then
  return cmsgpack.pack({ paused and 0 or backlog, 0, 0 })
end

-- Limits: tasks that may run, tasks that may start.
local most, startable, starts, window = 0, nil, '0', '1'
if take > 0 and ARGV[7] ~= '' then
  local running
  running, starts, window = string.match(ARGV[7], '(%d+) (%d+) (%d+)')
  most = tonumber(running)
end
local fewer_in, time = 0, 0
if starts ~= '0' then
  startable, fewer_in, time = starts_left(KEYS[12], tonumber(starts), tonumber(window), ARGV[3])
end

-- Refuses what INCRBY would, which must not happen half-way.
local function read_counter(key, most)
  local value = redis.call('GET', key)
  if not value then return 0 end
  local total = tonumber(value)
  if value ~= '0' and not string.find(value, '^-?[1-9]%d*$') or total > most or total < -FAR_FROM_MAX then
    error('WRONGTYPE the counter ' .. key .. ' holds "' .. value .. '", which cannot be counted on from')
  end
  return total
end

local reply, lost, number = { backlog, 0, 0 }, 0, 0
if count == 0 then
  call('ZCARD', lease)
else
  local ids, id_start = {}, #ARGV[1] + 1
  for i = 1, count do
    ids[i] = string.sub(KEYS[12 + i], id_start)
  end
  local missing, settled, argument = missing_leases(lease, ids, 9)
  local specials, moves, named = {}, false, 12 + count
  for i = argument, #ARGV, 6 do
    local item = { kind = ARGV[i + 1], message = ARGV[i + 3], time = ARGV[i + 4], result = ARGV[i + 5] }
    if ARGV[i + 2] == '1' then
      named = named + 1
      item.key = KEYS[named]
      if item.kind == WAIT then call('ZCARD', item.key) end
    end
    specials[tonumber(ARGV[i])] = item
    moves = moves or item.kind ~= DONE
  end
  if moves then
    call('ZCARD', KEYS[9])
    call('ZCARD', KEYS[10])
    call('ZCARD', KEYS[11])
  end

  -- What counts moves to the front of `ids`, and the hashes that go to the front of the settled tasks' KEYS.
  local special, done, failures, unfinished = {}, 0, 0, 0
  for i = 1, count do
    local id, item = ids[i], specials[i]
    local kind = item and item.kind or DONE
    if missing[i] or settled[id] == LISTED or (kind ~= DONE and try('HGET', KEYS[12 + i], 'state') ~= 'active') then
      lost = lost + 1
      reply[lost + 3] = i
    else
      number = number + 1
      ids[number], settled[id] = id, LISTED
      if item then
        item.id, item.task = id, KEYS[12 + i]
        special[#special + 1] = item
      end
      if kind == DONE then
        done = done + 1
        KEYS[12 + done] = KEYS[12 + i]
      elseif kind == RETRY_FAILED or kind == ARCHIVE or kind == ARCHIVE_AS_IS then
        failures = failures + 1
      elseif kind == RETRY or kind == REQUEUE or kind == WAIT then
        unfinished = unfinished + 1
      end
    end
  end
  local total = read_counter(KEYS[6], MAX)
  read_counter(KEYS[5], FAR_FROM_MAX)
  if failures > 0 then
    read_counter(KEYS[7], FAR_FROM_MAX)
    read_counter(KEYS[8], FAR_FROM_MAX)
  end

  -- Everything is checked but the type of `active`, which the first write tells. That one frees memory, so that a full Redis
  -- refuses none of those that follow. What is settled is old, and so at or near the tail of the list: to take that off and put back
  -- what stays is cheaper than a search per id.
  local listed = number
  if number >= 4 then
    local kept, back = {}, {}
    for _ = 1, 2 do
      local tail = call('RPOP', active, number == count and ARGV[6] or number) or {}
      for i = 1, #tail do
        local id = tail[i]
        local note = settled[id]
        if note == LISTED then
          settled[id] = UNLISTED
          listed = listed - 1
        elseif note ~= UNLISTED then -- what stands there twice goes twice
          kept[#kept + 1] = id
        end
      end
      if listed == 0 or #tail < number then break end
    end
    for i = #kept, 1, -1 do
      back[#back + 1] = kept[i]
    end
    spread('RPUSH', active, back)
  end
  if listed > 0 then
    for n = 1, number do
      if settled[ids[n]] == LISTED then call('LREM', active, '-1', ids[n]) end
    end
  end
  spread('ZREM', lease, ids, 1, number)
  for n = 1, #special do
    local item = special[n]
    local id, key, kind = item.id, item.task, item.kind
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
    elseif kind == WAIT then
      local seconds = WAIT_LEAST + math.floor(call('ZCARD', item.key) / WAITING_PER_SECOND)
      local till = tonumber(ARGV[2]) + math.min(seconds, WAIT_MOST)
      -- Its place: microseconds, but in any case behind those that are there.
      local since = string.match(call('HGET', key, 'waits') or '', ' (%d+)$')
      if not since then
        local last = tonumber(call('ZRANGE', item.key, -1, -1, 'WITHSCORES')[2] or 0)
        since = string.format('%.0f', math.max(tonumber(string.sub(ARGV[3], 1, -4)), last + 1))
      end
      call('HSET', key, 'state', 'retry', 'waits', string.format('%.0f %s', till, since))
      call('ZADD', KEYS[9], till, id)
      call('ZADD', item.key, since, id)
      call('EXPIRE', item.key, 2 * WAIT_MOST)
    end
    if item.key and kind ~= WAIT and try('GET', item.key) == id then call('DEL', item.key) end
  end
  spread('DEL', nil, KEYS, 13, 12 + done)

  local processed = number - unfinished
  if processed > 0 then
    local more = processed == count and ARGV[6] or processed
    if call('INCRBY', KEYS[5], more) == processed then call('EXPIREAT', KEYS[5], tonumber(ARGV[2]) + COUNTS_KEPT) end
    if failures > 0 and call('INCRBY', KEYS[7], failures) == failures then call('EXPIREAT', KEYS[7], tonumber(ARGV[2]) + COUNTS_KEPT) end
    -- Go starts the totals again from 1 when `processed`, as a double, has reached the maximum.
    if total + processed < FAR_FROM_MAX then
      call('INCRBY', KEYS[6], more)
      if failures > 0 then call('INCRBY', KEYS[8], failures) end
    else
      for i = 1, processed do
        local wraps = tonumber(call('GET', KEYS[6])) == MAX
        if wraps then call('SET', KEYS[6], 1) else call('INCR', KEYS[6]) end
        if i > processed - failures then
          if wraps then call('SET', KEYS[8], 1) else call('INCR', KEYS[8]) end
        end
      end
    end
  end
end

reply[1], reply[3] = backlog, lost
if paused then reply[1] = 0 end
if take == 0 or backlog == 0 then return cmsgpack.pack(reply) end
if number == 0 then call('LLEN', active) end -- its type; where something was settled, it is known

local wanted = take < backlog and take or backlog
if most > 0 then
  local free = math.max(0, most - call('LLEN', active))
  if free < wanted then wanted, reply[2] = free, LOOK_AGAIN end
end
if startable and startable < wanted then
  wanted, reply[2] = startable, math.max(reply[2], fewer_in)
end
if wanted == 0 then return cmsgpack.pack(reply) end

local tell, prefix, expiry = ARGV[8] == '1', ARGV[1], ARGV[4]
local leases, popped, n, running, at = {}, 0, 0, 0, lost + 3
repeat
  local ids = call('RPOP', pending, wanted == take and n == 0 and ARGV[5] or wanted - n)
  if not ids then break end
  local taken = 0
  for i = 1, #ids do
    local id = ids[i]
    local key = prefix .. id
    local message, since
    if tell then
      local fields = try('HMGET', key, 'msg', 'pending_since')
      if fields.err then message = fields else message, since = fields[1], fields[2] or '' end
    else
      message = try('HGET', key, 'msg')
    end
    if type(message) == 'string' then
      call('HSET', key, 'state', 'active')
      call('HDEL', key, 'pending_since')
      taken, n = taken + 1, n + 1
      ids[taken], leases[2 * n - 1], leases[2 * n] = id, expiry, id
      reply[at + 1], reply[at + 2] = id, message
      at = at + 2
      if tell then
        at = at + 1
        reply[at] = since
      end
    elseif not message then
      call('DEL', key) -- a stub without a message; what is no hash at all is not ours to delete
    end
  end
  popped = popped + #ids
  running = spread('LPUSH', active, ids, 1, taken) or running
until n == wanted or popped > wanted + MOST_GHOSTS
reply[1] = backlog - popped
if n > 0 then
  if startable then count_starts(KEYS[12], n, tonumber(window), time) end
  if running > FEW then
    local unlisted = string.rep('\255', TOO_LONG)
    call('ZADD', lease, '0', unlisted)
    spread('ZADD', lease, leases)
    call('ZREM', lease, unlisted)
  else
    spread('ZADD', lease, leases)
  end
end
return cmsgpack.pack(reply)
