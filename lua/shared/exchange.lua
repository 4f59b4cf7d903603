-- What exchange.lua does. `L` is the engine of links, if there is one; `F` has the lines of a fair queue (shared/fair.lua).
--
-- Uses shared/spread.lua
-- Uses shared/fence.lua
-- Uses shared/starts.lua

-- Stages: 1. read and check the keys; 2. check the settlements; 3. write them; 4. count them; 5. apply the limits; 6. claim.
-- For a worker of one slot, which settles one task and claims one, Lua itself is most of a call, and a function costs more to
-- create than the call spends in it. So the stages follow each other, and few are functions.

local DONE, COMPLETE, COMPLETE_WITH_RESULT, RETRY, RETRY_FAILED, ARCHIVE, ARCHIVE_AS_IS, REQUEUE, WAIT, SLEEP =
  '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'

-- What the third argument of a settlement begins with that names a key: '1'.
local NAMES_KEY = 49
-- How many entries the history of a task has at most, and the highest number of one: those above lose digits as text.
local MAX_ATTEMPTS, MAX_NUMBER = 100, 1e13

-- The id of a settled task is still in `active`, or no longer.
local LISTED, UNLISTED = 1, 2
-- At this total Go starts again from 1. Beyond the second number the total may be near it, and is counted up one by one.
local MAX_TOTAL, FAR_FROM_MAX = 9223372036854775807, 9.2e18
-- How long the counters of a day are kept.
local COUNTER_SECONDS = 90 * 86400
-- How many tasks one call puts aside: each takes Redis some microseconds.
local MAX_ASIDE = 250
-- How many ids without a task one call removes.
local MAX_DANGLING = 1000
-- Fields of a claimed task of which nothing is stored but its message and its state.
local BARE_FIELDS = 2
-- A call claims no more when the messages, with one more like the last, would have more bytes than this: a megabyte takes Redis
-- some milliseconds. The next call goes on.
local MAX_BYTES = 1048576
-- Redis keeps a sorted set of up to 128 short members in a list, and searches it from end to end; with 100 active tasks that
-- is a third of the time of a call. A member that is too long for it turns the set into a skip list. It is removed before
-- anyone can see it, and is no valid UTF-8, so nobody's id.
local FEW_ACTIVE, TOO_LONG = 24, 65
-- Polls a queue with too many active tasks again: no notice says when one ends elsewhere.
local LIMIT_RETRY_MS = 100
-- A task in a waitlist runs after this time even if nobody wakes it: the least, one second per that many in all waitlists of the queue (with a
-- limit for each key there are many, and short ones), the most.
local MIN_WAIT_SECONDS, TASKS_PER_EXTRA_SECOND, MAX_WAIT_SECONDS = 60, 10, 3600

local call, try, type = redis.call, redis.pcall, type
-- The keys of the names of the waitlists in which tasks wait, and of the tasks in them, and what all keys begin with, when one is joined.
local waitlists, held, base
local pending, paused_key, active, lease, processed_on, processed_total, failed_on, failed_total, retry, archived, completed, rate, links, running_key =
  unpack(KEYS, 1, 14)
-- KEYS after those: the hashes of the tasks to settle.
local HASHES = 14
-- What goes into a command unchanged goes as the text it came as: Redis writes a number of Lua with 17 digits.
local task_prefix, now, now_nanos, expiry, take_text, count_text, limits, since_wanted, results = unpack(ARGV, 1, 9)
local take, count = tonumber(take_text), tonumber(count_text)

-- 1. Read and check the keys. Reading each one first finds those of a wrong type before anything is written.

-- Puts a task into a waitlist. Made when it is needed.
local defer
local function make_defer()
  base = string.sub(task_prefix, 1, -#'t:' - 1)
  waitlists, held = base .. 'waitlists', base .. 'held'
  call('ZCARD', retry)
  call('SCARD', waitlists)
  -- How many tasks are held; and whether both keys that all waitlists share are kept for long.
  local size, is_kept = call('ZCARD', held), false
  -- `waits`: what the task has of when it waited before.
  function defer(id, key, waitlist, list, waits)
    local seconds = MIN_WAIT_SECONDS + math.floor(size / TASKS_PER_EXTRA_SECOND)
    local wait_end = tonumber(now) + math.min(seconds, MAX_WAIT_SECONDS)
    -- Its position: microseconds, but always behind those that are there.
    local since, is_listed = string.match(waits or '', ' (%d+)$'), false
    if not since then
      local last = call('ZRANGE', list, -1, -1, 'WITHSCORES')[2]
      is_listed = last ~= nil
      since = string.format('%.0f', math.max(tonumber(string.sub(now_nanos, 1, -4)), tonumber(last or 0) + 1))
    end
    call('HSET', key, 'state', 'retry', 'waits', string.format('%.0f %s', wait_end, since), 'held_by', waitlist)
    call('ZADD', retry, wait_end, id)
    call('ZADD', list, since, id)
    call('EXPIRE', list, 2 * MAX_WAIT_SECONDS)
    size = size + call('ZADD', held, since, id)
    if not is_listed then call('SADD', waitlists, waitlist) end
    if is_kept then return end
    is_kept = true
    call('EXPIRE', held, 2 * MAX_WAIT_SECONDS)
    call('EXPIRE', waitlists, 2 * MAX_WAIT_SECONDS)
  end
end

local backlog = call('LLEN', pending)
local in_pending = backlog
if F then backlog = F.backlog(in_pending) end
local paused, linked = call('EXISTS', paused_key, links, running_key), false
if paused == 0 then
  paused = false
else
  linked = paused > 1
  paused = call('EXISTS', paused_key) == 1
  linked = linked or not paused
  if paused then take = 0 end
end
-- What is put aside: waitlists by the types of their tasks. And what is claimed from waitlists: each with the number, and how many there are.
local aside, asides, claims, held_wanted, ahead = nil, nil, nil, 0, 0
local max_active, startable, max_starts, window, allowance = 0, nil, '0', '1', 0
if limits ~= '' and not paused then
  local most, behind
  most, max_starts, window, allowance, behind = string.match(limits, '(%d+) (%d+) (%d+) (%d+) ?()')
  max_active = tonumber(most)
  if behind <= #limits then
    asides, claims = cmsgpack.unpack(string.sub(limits, behind))
    for i = 3, claims and #claims or 0, 2 do
      claims[i] = tonumber(claims[i])
      held_wanted = held_wanted + claims[i]
    end
    if claims then ahead = tonumber(claims[1]) end
  end
end
local wanted = math.min(take + ahead, (take < backlog and take or backlog) + held_wanted)
if count == 0 and wanted == 0 then
  local nothing = { paused and 0 or backlog, 0, 0 }
  if F then F.finish(nothing) end
  return cmsgpack.pack(nothing)
end

if linked and not L then return nil end
if not linked then L = nil end
if L then
  L.open(task_prefix, now, now_nanos)
  function L.reply(list, claimed, steps, packed)
    local batches, found = '', {}
    if claimed then batches, found = L.links_of(claimed, steps) end
    return { packed or cmsgpack.pack(list), batches, found, L.parcels() }
  end
end

if asides then
  make_defer()
  local prefix = base .. 'waiting:'
  if #asides > 0 then aside = {} end
  for i = 1, #asides, 2 do
    local list = prefix .. asides[i + 1]
    call('ZCARD', list)
    aside[asides[i]] = { waitlist = asides[i + 1], list = list, count = 0 }
  end
  for i = 2, claims and #claims or 0, 2 do
    call('ZCARD', prefix .. claims[i])
  end
end
local fewer_in, time, gone, behind = 0, 0, nil, 0
if max_starts ~= '0' then
  startable, fewer_in, time, gone, behind = starts_left(rate, tonumber(max_starts), tonumber(window), now_nanos)
end

-- Refuses what INCRBY would refuse, which must not happen half-way.
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
  -- 2. Check the settlements.

  local ids, id_start = {}, #task_prefix + 1
  for i = 1, count do
    ids[i] = string.sub(KEYS[HASHES + i], id_start)
  end
  local missing, settled, argument = missing_leases(lease, ids, 10)
  local specials, moves, named, scheduled = {}, false, HASHES + count, nil
  for i = argument, #ARGV, 6 do
    local item = { kind = ARGV[i + 1], message = ARGV[i + 3], time = ARGV[i + 4], result = ARGV[i + 5] }
    local flags = ARGV[i + 2]
    if #flags > 1 then item.attempt = flags end
    if string.byte(flags) == NAMES_KEY then
      named = named + 1
      item.key = KEYS[named]
      if item.kind == WAIT then
        if not defer then make_defer() end
        call('ZCARD', item.key)
      end
    end
    if item.kind == SLEEP then
      scheduled = string.sub(task_prefix, 1, -#'t:' - 1) .. 'scheduled'
      call('ZCARD', scheduled)
    end
    specials[tonumber(ARGV[i])] = item
    moves = moves or item.kind ~= DONE
  end
  if moves then
    call('ZCARD', retry)
    call('ZCARD', archived)
    call('ZCARD', completed)
  end

  -- Those that count move to the front of `ids`, and the hashes to delete to the front of the hashes in KEYS.
  local special, done, failures, unfinished, items = {}, 0, 0, 0, {}
  results = L and results ~= '' and cmsgpack.unpack(results)
  for i = 1, count do
    local id, item = ids[i], specials[i]
    local kind = item and item.kind or DONE
    local fields = kind ~= DONE and try('HMGET', KEYS[HASHES + i], 'state', 'superseded_by', 'waits')
    -- A superseded task that would come again would run after the one that is newer: it is revoked. One with steps is called again to undo them.
    if fields and fields[2] and (kind == RETRY or kind == RETRY_FAILED or kind == REQUEUE or kind == WAIT or kind == SLEEP) then
      kind = DONE
      local names = call('HKEYS', KEYS[HASHES + i])
      for n = 1, #names do
        if string.sub(names[n], 1, 4) == 'did:' then kind = REQUEUE end
      end
      item.kind, item.time, item.result, item.key = kind, '1', '', nil
      item.superseded_by = kind == REQUEUE and fields[2]
    end
    if missing[i] or settled[id] == LISTED or (fields and fields[1] ~= 'active') then
      lost = lost + 1
      reply[lost + 3] = i
    else
      number = number + 1
      ids[number], settled[id] = id, LISTED
      if item or results then items[number] = item or results[i] ~= '' and results[i] end
      if item then
        item.id, item.task, item.waits = id, KEYS[HASHES + i], fields and fields[3]
        special[#special + 1] = item
      end
      if kind == DONE then
        done = done + 1
        KEYS[HASHES + done] = KEYS[HASHES + i]
      elseif kind == RETRY_FAILED or kind == ARCHIVE or kind == ARCHIVE_AS_IS then
        failures = failures + 1
      elseif kind == RETRY or kind == REQUEUE or kind == WAIT or kind == SLEEP then
        unfinished = unfinished + 1
      end
    end
  end
  if L then
    local plainly = lost == 0 and not results
    for n = 1, #special do
      local item = special[n]
      plainly = plainly and item.kind == DONE and item.time ~= '1' and item.result == ''
    end
    L.prepare(ids, number, plainly)
  end
  local total = read_counter(processed_total, MAX_TOTAL)
  read_counter(processed_on, FAR_FROM_MAX)
  if failures > 0 then
    read_counter(failed_on, FAR_FROM_MAX)
    read_counter(failed_total, FAR_FROM_MAX)
  end

  -- 3. Write the settlements.

  -- All is checked but the type of `active`, which the first write checks. That write frees memory, so that a full
  -- Redis refuses none of those that follow. A settled task is old, and so at or near the tail of the list: to pop the
  -- tail and push back what stays is cheaper than a search per id.
  local listed = number
  if number >= 4 then
    local kept, back = {}, {}
    for _ = 1, 2 do
      local tail = call('RPOP', active, number == count and count_text or number) or {}
      for i = 1, #tail do
        local id = tail[i]
        local note = settled[id]
        if note == LISTED then
          settled[id] = UNLISTED
          listed = listed - 1
        elseif note ~= UNLISTED then -- an id that is there twice is removed twice
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
    if kind == SLEEP then -- what came of the step in which it sleeps; and the signals that it waits for, of which one may be there already
      local fields = cmsgpack.unpack(item.result)
      if item.message ~= '' then call('HSET', key, 'msg', item.message) end
      if fields[1] ~= '' then call('HSET', key, fields[1], fields[2]) end
      for at = 3, #fields do
        local field = fields[at]
        local step = string.match(field, '^answer:(.*)$')
        -- A Redis that has lost its last writes may not have what the step has called: the handler calls it again.
        local is_lost = step and call('HEXISTS', key, 'did:' .. string.gsub(step, '##%d+$', '')) == 0
        if is_lost or call('HEXISTS', key, field) == 1 then kind = REQUEUE end
      end
      if kind == SLEEP then
        call('HSET', key, 'state', 'scheduled', 'awaits', '\0' .. table.concat(fields, '\0', 3))
        call('ZADD', scheduled, item.time, id)
      end
    end
    if kind == COMPLETE then
      call('HSET', key, 'msg', item.message, 'state', 'completed')
      call('ZADD', completed, item.time, id)
    elseif kind == COMPLETE_WITH_RESULT then
      call('HSET', key, 'msg', item.message, 'state', 'completed', 'result', item.result)
      call('ZADD', completed, item.time, id)
    elseif kind == RETRY or kind == RETRY_FAILED then
      call('HSET', key, 'msg', item.message, 'state', 'retry')
      call('ZADD', retry, item.time, id)
    elseif kind == ARCHIVE then
      call('HSET', key, 'msg', item.message, 'state', 'archived')
      call('ZADD', archived, now, id)
    elseif kind == ARCHIVE_AS_IS then
      call('HSET', key, 'state', 'archived')
      call('ZADD', archived, now, id)
    elseif kind == REQUEUE then
      call('HSET', key, 'state', 'pending', 'pending_since', now_nanos)
      if item.superseded_by then -- an UndoRecord, as checkpoint.ts has it
        local before = call('HGET', key, 'did:!undo')
        local is_read, record = pcall(cjson.decode, before and string.match(before, '^[^\n]*') or '')
        record = is_read and type(record) == 'table' and record or {}
        record.error, record.outcome = 'superseded by task "' .. item.superseded_by .. '"', 'revoke'
        record.at, record.over = tonumber(string.sub(now_nanos, 1, -7)), nil
        call('HSET', key, 'did:!undo', cjson.encode(record) .. '\n')
        call('HDEL', key, 'superseded_by')
      end
      local counted_from = item.kind == REQUEUE and not item.superseded_by and tonumber(item.time)
      if counted_from and startable then
        local window_ms, now_ms = tonumber(window), tonumber(string.sub(now_nanos, 1, -7))
        if give_back_start(rate, counted_from, window_ms, now_ms) then startable = startable + 1 end
      end
      if F then F.put_back(id, counted_from) else call('RPUSH', pending, id) end
      backlog = backlog + 1
    elseif kind == WAIT then
      local waitlist = string.sub(item.key, #base + #'waiting:' + 1)
      defer(id, key, waitlist, item.key, item.waits)
    end
    if item.attempt and kind ~= DONE then -- one entry is written and the oldest is dropped: the others are not touched
      local most, at = string.match(item.attempt, '^.(%d+) ()')
      local first, after = string.match(call('HGET', key, 'attempt:kept') or '', '^(%d+) (%d+)$')
      first, after = tonumber(first or 0), tonumber(after or 0)
      if first > after or after > MAX_NUMBER then first, after = 0, 0 end
      local oldest = math.max(first, after + 1 - most)
      call('HSET', key, 'attempt:' .. after, string.sub(item.attempt, at), 'attempt:kept', oldest .. ' ' .. after + 1)
      for n = math.max(first, oldest - MAX_ATTEMPTS), oldest - 1 do
        call('HDEL', key, 'attempt:' .. n)
      end
    end
    if item.key and kind ~= WAIT and try('GET', item.key) == id then call('DEL', item.key) end
  end
  if F then F.left(ids, number) end
  if L then -- results are read from the hashes
    local linked, details = L.take_successes(ids, items, number, lost > 0)
    for n = 1, #linked do
      local id, item = linked[n], details[n]
      if type(item) ~= 'table' then
        L.succeeded(id, item)
      else
        local kind = item.kind
        if kind == DONE and item.time == '1' then
          L.ended(id, false, item.result ~= '' and item.result or 'revoked', nil, true)
        elseif kind == DONE or kind == COMPLETE or kind == COMPLETE_WITH_RESULT then
          L.succeeded(id, item.result)
        elseif kind == ARCHIVE or kind == ARCHIVE_AS_IS then
          L.retain_again(id)
          L.ended(id, false, item.result ~= '' and item.result or 'archived')
        elseif kind == RETRY or kind == RETRY_FAILED or kind == SLEEP then
          L.retain_again(id)
        end
      end
    end
  end
  spread('DEL', nil, KEYS, HASHES + 1, HASHES + done)
  if L then
    L.work()
    backlog = call('LLEN', pending)
    in_pending = backlog
  end
  if F then backlog = F.backlog(in_pending) end

  -- 4. Count what was processed.

  local processed = number - unfinished
  if processed > 0 then
    local more = processed == count and count_text or processed
    if call('INCRBY', processed_on, more) == processed then call('EXPIREAT', processed_on, tonumber(now) + COUNTER_SECONDS) end
    if failures > 0 and call('INCRBY', failed_on, failures) == failures then call('EXPIREAT', failed_on, tonumber(now) + COUNTER_SECONDS) end
    -- Go starts both totals again from 1 when `processed`, as a double, has reached the maximum.
    if total + processed < FAR_FROM_MAX then
      call('INCRBY', processed_total, more)
      if failures > 0 then call('INCRBY', failed_total, failures) end
    else
      for i = 1, processed do
        local wraps = tonumber(call('GET', processed_total)) == MAX_TOTAL
        if wraps then call('SET', processed_total, 1) else call('INCR', processed_total) end
        if i > processed - failures then
          if wraps then call('SET', failed_total, 1) else call('INCR', failed_total) end
        end
      end
    end
  end
end

reply[1], reply[3] = backlog, lost
if paused then reply[1] = 0 end
wanted = math.min(take + ahead, (take < backlog and take or backlog) + held_wanted)
if wanted == 0 then
  if F then F.finish(reply) end
  return L and L.reply(reply) or cmsgpack.pack(reply)
end
if number == 0 then call('LLEN', active) end -- its type; a settlement has checked it already

-- 5. Apply the limits.

if max_active > 0 then
  local free = math.max(0, max_active - call('LLEN', active))
  if free < wanted then wanted, reply[2] = free, LIMIT_RETRY_MS end
end
if startable and startable < wanted then
  wanted, reply[2] = startable, math.max(reply[2], fewer_in)
end
if wanted == 0 then
  if F then F.finish(reply) end
  return L and L.reply(reply) or cmsgpack.pack(reply)
end

-- 6. Claim. Ids without a task are removed.


local with_since, with_bare = since_wanted == '1' or since_wanted == '3', since_wanted == '2' or since_wanted == '3'
-- The links that the hashes of the claimed tasks have, in order.
local steps = L and L.has_runs and {} or nil
local leases, popped, n, bytes, running, at, put_aside = {}, 0, 0, 0, 0, lost + 3, 0

-- Those of waitlists come first, the longest waiting one of each. One that has left `retry` since no longer waits.
-- Those that it lacks are not put aside.
local woken, claimed, lacking
if claims then
  woken, claimed, lacking = {}, {}, {}
  for i = 2, #claims, 2 do
    local list = base .. 'waiting:' .. claims[i]
    local most, first, passed = math.min(#woken + claims[i + 1], wanted), #woken, 0
    while #woken < most and passed < MAX_DANGLING do
      local id = call('ZPOPMIN', list)[1]
      if not id then break end
      call('ZREM', held, id)
      local text = try('HGET', task_prefix .. id, 'waits')
      local till = type(text) == 'string' and string.match(text, '^(%d+) %d+$')
      if till and till == call('ZSCORE', retry, id) then
        call('ZREM', retry, id)
        woken[#woken + 1] = id
      else
        passed = passed + 1
      end
    end
    local left = call('ZCARD', list)
    if left == 0 then call('SREM', waitlists, claims[i]) end
    claimed[i - 1], claimed[i] = #woken - first, left
    lacking[claims[i]] = claims[i + 1] - claimed[i - 1]
  end
  wanted = math.min(wanted, #woken + take - math.min(#woken, held_wanted - ahead))
end

-- What waits for a limit that is reached is not claimed for nothing. The type is the first field of a message.
local is_aside = aside and function(id, key, message)
  local first, length = string.byte(message, 1, 2)
  local entry = first == 10 and length and length < 128 and aside[string.sub(message, 3, length + 2)]
  if not entry then return false end
  local more = lacking and lacking[entry.waitlist] or 0
  if more > 0 then
    lacking[entry.waitlist] = more - 1
    return false
  end
  defer(id, key, entry.waitlist, entry.list, call('HGET', key, 'waits'))
  call('HDEL', key, 'pending_since')
  entry.count, put_aside = entry.count + 1, put_aside + 1
  return true
end
repeat
  local ids, had_turn
  local waited = woken
  if waited then
    ids, woken = waited, nil
  elseif F then
    ids, had_turn = F.next(pending, wanted - n)
  else
    ids = call('RPOP', pending, wanted == take and n == 0 and take_text or wanted - n)
  end
  if not ids then break end
  local taken = 0
  for i = 1, #ids do
    local id = ids[i]
    local key = task_prefix .. id
    local message, since, step
    if with_since then
      local fields = try('HMGET', key, 'msg', 'pending_since', 'step')
      if fields.err then message = fields else message, since, step = fields[1], fields[2] or '', fields[3] end
    elseif steps then
      local fields = try('HMGET', key, 'msg', 'step')
      if fields.err then message = fields else message, step = fields[1], fields[2] end
    else
      message = try('HGET', key, 'msg')
    end
    if type(message) == 'string' then
      if not aside or waited or not is_aside(id, key, message) then
        call('HSET', key, 'state', 'active')
        if waited then
          since = now_nanos
        elseif not F then
          call('HDEL', key, 'pending_since')
        elseif i > had_turn then
          call('HDEL', key, 'pending_since', 'group')
        else
          call('HDEL', key, 'pending_since', 'turn')
        end
        taken, n = taken + 1, n + 1
        if steps then steps[n] = step end
        ids[taken], leases[2 * n - 1], leases[2 * n] = id, expiry, id
        reply[at + 1], reply[at + 2] = id, message
        at = at + 2
        if with_since then
          at = at + 1
          reply[at] = since
        end
        if with_bare then
          at = at + 1
          reply[at] = call('HLEN', key) == BARE_FIELDS and 1 or 0
        end
      end
      bytes = bytes + #message
      if bytes + #message > MAX_BYTES then
        local rest = {}
        for j = #ids, i + 1, -1 do
          rest[#rest + 1] = ids[j]
          if waited then call('HSET', task_prefix .. ids[j], 'state', 'pending', 'pending_since', now_nanos) end
        end
        if F then F.leave(pending, rest) else spread('RPUSH', pending, rest) end
        popped, wanted = popped - #rest, n
        break
      end
    elseif not message then
      call('DEL', key) -- a hash without a message; a key of another type is not ours to delete
    end
  end
  if not waited then popped = popped + #ids end
  running = spread('LPUSH', active, ids, 1, taken) or running
until n == wanted or popped > wanted + MAX_DANGLING or put_aside >= MAX_ASIDE
reply[1] = F and F.backlog(call('LLEN', pending)) or backlog - popped
if n > 0 then
  if startable then
    local at = latest_start(tonumber(max_starts), tonumber(window), time, tonumber(allowance), behind)
    count_starts(rate, n, at, tonumber(window), time, gone)
  end
  if running > FEW_ACTIVE then
    local unlisted = string.rep('\255', TOO_LONG)
    call('ZADD', lease, '0', unlisted)
    spread('ZADD', lease, leases)
    call('ZREM', lease, unlisted)
  else
    spread('ZADD', lease, leases)
  end
end
if F then F.finish(reply) end
local packed
if put_aside > 0 or claimed then
  local counts = {}
  for i = 1, put_aside > 0 and #asides or 0, 2 do
    counts[#counts + 1] = aside[asides[i]].count
  end
  packed = claimed and cmsgpack.pack(reply, counts, claimed) or cmsgpack.pack(reply, counts)
end
if L then return L.reply(reply, leases, steps, packed) end
return packed or cmsgpack.pack(reply)
