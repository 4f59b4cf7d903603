-- What enqueue.lua does. `note_rows`, if there is one, is called once everything is checked. `room`, if there is one, is how many tasks
-- may become pending, and `before` how many are. `F` has the lines of a fair queue (shared/fair.lua).
--
-- Uses shared/spread.lua
-- Uses shared/delayed-groups.lua

local DUPLICATE, CONFLICT, FULL, PRESENT = 1, 2, 3, 4
local PENDING, GROUP, LATER, FAIR, LOWER_CASE, TO_LOWER_CASE = 112, 103, 108, 102, 97, 32 -- p, g, l, f, a; A is 65
local BY_ID = 105 -- i

local call, try = redis.call, redis.pcall

-- A lone task with nothing special: most calls of a program that waits for each. What follows prepares for a thousand, and costs more
-- than these commands.
if ARGV[5] == 'p' and ARGV[4] == '0' and not (note_rows or room or F) then
  call('LLEN', KEYS[1])
  if call('EXISTS', KEYS[4]) == 1 then return { 1, CONFLICT } end
  call('HSET', KEYS[4], 'msg', ARGV[6], 'state', 'pending', 'pending_since', ARGV[3])
  call('LPUSH', KEYS[1], string.sub(KEYS[4], #ARGV[1] + 1))
  return {}
end

local routes, count, id_start = ARGV[5], #ARGV[5], #ARGV[1] + 1
local resent = ARGV[4] ~= '0'

-- Pending tasks with a lock each, when no task and no lock is there already: what follows prepares for any route, and for what is in the way.
-- No two of the call may have one id or one lock.
if not (note_rows or room or F or string.find(routes, '[^P]')) then
  local keys, argv, last, seen, there = KEYS, ARGV, 3 + 2 * count, {}, 0
  for first = 4, last, 1000 do
    there = there + call('EXISTS', unpack(keys, first, math.min(first + 999, last)))
  end
  for i = 4, there == 0 and last or 0 do
    local key = keys[i]
    if seen[key] then there = there + 1 end
    seen[key] = true
  end
  if there == 0 then
    call('LLEN', keys[1])
    local now_nanos, ids = argv[3], {}
    for i = 1, count do
      local key, lock = keys[3 + i], keys[3 + count + i]
      local id = string.sub(key, id_start)
      call('SETEX', lock, argv[5 + count + i], id)
      call('HSET', key, 'msg', argv[5 + i], 'state', 'pending', 'pending_since', now_nanos, 'unique_key', lock)
      ids[i] = id
    end
    spread('LPUSH', keys[1], ids)
    return {}
  end
end

local existing = 0
for first = 1, count, 1000 do
  existing = existing + call('EXISTS', unpack(KEYS, first + 3, math.min(first + 999, count) + 3))
end

-- The task keys and locks that this call creates, and how many of its locks are held.
local created, locked, held = {}, {}, 0

-- Whether the earlier call of a resent batch has stored this, and nobody has changed it since.
local function is_present(key, message)
  return resent and existing > 0 and try('HGET', key, 'msg') == message
end

-- In any state: it may have failed or completed since, and its lock may be gone.
local function is_known_by_id(i, key)
  return resent and existing > 0 and string.byte(ARGV[4], i) == BY_ID and call('EXISTS', key) == 1
end

local function check(i, key, message, lock)
  if is_known_by_id(i, key) then return PRESENT end
  if lock and (locked[lock] or held > 0 and call('EXISTS', lock) == 1) then
    local ours = not locked[lock] and is_present(key, message) and try('GET', lock) == string.sub(key, id_start)
    return ours and PRESENT or DUPLICATE
  end
  if created[key] then return CONFLICT end
  if existing > 0 and call('EXISTS', key) == 1 then return is_present(key, message) and PRESENT or CONFLICT end
  return nil
end

-- What else belongs to a task: its lock with its time to live, its time or group, the set of the group or the group it joins later.
local locks, ttls, places, sets, later, fair, delayed_groups = {}, {}, {}, {}, {}, F and {}, nil
local every_lock = {}
local next_key, next_argument = count + 4, count + 6
local fair_keys, fair_groups = {}, {}
for i = 1, count do
  local route = string.byte(routes, i)
  if route < LOWER_CASE then
    route = route + TO_LOWER_CASE
    locks[i], ttls[i] = KEYS[next_key], ARGV[next_argument]
    every_lock[#every_lock + 1] = KEYS[next_key]
    next_key, next_argument = next_key + 1, next_argument + 1
  end
  if route ~= PENDING then
    places[i] = ARGV[next_argument]
    next_argument = next_argument + 1
    if route == GROUP then
      sets[i] = KEYS[next_key]
      next_key = next_key + 1
      call('ZCARD', sets[i])
    elseif route == LATER then
      later[i], delayed_groups = ARGV[next_argument], KEYS[#KEYS]
      next_argument = next_argument + 1
    elseif route == FAIR then
      local share = places[i]
      local key = fair_keys[share]
      if not key then
        key = string.match(share, '^%S+ %d+ %d+ %d+ (.+)$')
        if key then fair_keys[share], fair_groups[key] = key, F.group_of(key) end
      end
      fair[i] = key
    end
  end
end
for first = 1, #every_lock, 1000 do
  held = held + call('EXISTS', unpack(every_lock, first, math.min(first + 999, #every_lock)))
end

-- Checks all. Of a call to which nothing is in the way each task is just noted.
local statuses = {}
for i = 1, count do
  local key, lock = KEYS[i + 3], locks[i]
  local status
  if existing > 0 or held > 0 or created[key] or lock and locked[lock] then status = check(i, key, ARGV[i + 5], lock) end
  if room and not status and not places[i] then
    if room > 0 then room = room - 1 else status = FULL end
  end
  statuses[i] = status
  if not status or status == PRESENT then
    created[key] = true
    if lock then locked[lock] = true end
  end
end
local in_pending = call('LLEN', KEYS[1])
call('ZCARD', KEYS[2])
call('SCARD', KEYS[3])
if delayed_groups then call('ZCARD', delayed_groups) end

-- Everything is checked. From here on the script writes.
if note_rows then note_rows() end
if F and next(fair_groups) then F.let_first(KEYS[1], in_pending) end
local refused, pending, scheduled, delayed = {}, {}, {}, {}
local is_written_again = false
for i = 1, count do
  local status = statuses[i]
  if not status then
    local key, lock, place = KEYS[i + 3], locks[i], places[i]
    local id = string.sub(key, id_start)
    if lock then call('SETEX', lock, ttls[i], id) end
    if lock and place then call('HSET', key, 'unique_key', lock) end
    if not place then
      if lock then
        call('HSET', key, 'msg', ARGV[i + 5], 'state', 'pending', 'pending_since', ARGV[3], 'unique_key', lock)
      else
        call('HSET', key, 'msg', ARGV[i + 5], 'state', 'pending', 'pending_since', ARGV[3])
      end
      pending[#pending + 1] = id
    elseif F and fair[i] then
      call('HSET', key, 'msg', ARGV[i + 5], 'state', 'aggregating', 'pending_since', ARGV[3], 'group', fair_groups[fair[i]])
      F.add(fair[i], place, id)
    elseif not sets[i] then
      call('HSET', key, 'msg', ARGV[i + 5], 'state', 'scheduled')
      scheduled[#scheduled + 1] = place
      scheduled[#scheduled + 1] = id
      if later[i] then
        call('HSET', key, 'group', later[i])
        delayed[#delayed + 1] = place
        delayed[#delayed + 1] = later[i]
      end
    else
      call('HSET', key, 'msg', ARGV[i + 5], 'state', 'aggregating', 'group', place)
      call('ZADD', sets[i], ARGV[2], id)
      call('SADD', KEYS[3], place)
    end
  elseif status ~= PRESENT then
    refused[#refused + 1] = i
    refused[#refused + 1] = status
  elseif not is_written_again then
    -- Who waits for replicas waits for the writes of this connection alone: one, as who has it has all before it.
    local state = try('HGET', KEYS[i + 3], 'state')
    if type(state) == 'string' then call('HSET', KEYS[i + 3], 'state', state) end
    is_written_again = true
  end
end
spread('LPUSH', KEYS[1], pending)
spread('ZADD', KEYS[2], scheduled)
note_delayed_groups(delayed_groups, ARGV[2], delayed)
if F then
  F.push_all()
  F.finish()
end
if before then refused[#refused + 1] = before + #pending end
return refused
