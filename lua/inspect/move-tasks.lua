-- Runs, archives, deletes or reschedules tasks, wherever they wait: AdministrationRole.moveTasks and rescheduleTasks, one step.
-- Each task is checked before it is changed. One that does not fit is left alone and does not stop the others.
--
-- KEYS
--   1 pending
--   2 scheduled
--   3 retry
--   4 archived
--   5 completed
--   6 groups
--   7 lease
--   8 delayedGroups
--   9 fairTotal
--   10 held
-- ARGV
--   1 taskPrefix
--   2 groupPrefix
--   3 action: 'run', 'archive', 'delete' or 'schedule'
--   4 now: seconds
--   5 nowNanos
--   6 state: only tasks that are in it; '' for any
--   7 group: only tasks of this group
--   8 at: the time they are scheduled for, in seconds
--   9 maxArchived: archives only while fewer are archived; '' for any number
--   10 waitingGroup: the group of the tasks that wait for others
--   11 fairGroup: how the groups begin that are the lines of a fair queue, whose tasks are pending
--   12… ids
-- Returns
--   a letter per id: m moved, n no such task, a active, s in that state already, e elsewhere, c in an aggregation set,
--   w waits for others, so that no time can be set, f the archive is full
--
-- Uses shared/spread.lua
-- Uses shared/delayed-groups.lua
-- Uses shared/hold.lua

local call, try = redis.call, redis.pcall
local action, only, only_group, max_archived, waiting_group = ARGV[3], ARGV[6], ARGV[7], tonumber(ARGV[9]), ARGV[10]
local pending, archived, groups, lease = KEYS[1], KEYS[4], KEYS[6], KEYS[7]
local sorted = { scheduled = KEYS[2], retry = KEYS[3], archived = archived, completed = KEYS[5] }
local known = { pending = true, aggregating = true, held = true }
local held = KEYS[10]
for state, set in pairs(sorted) do
  known[state] = true
  call('ZCARD', set)
end
call('LLEN', pending)
call('SCARD', groups)
call('ZCARD', lease)
call('ZCARD', KEYS[8])
call('GET', KEYS[9])
call('ZCARD', held)

local function leave_set(set, id, group)
  if try('ZREM', set, id) ~= 1 then return false end
  if group and call('ZCARD', set) == 0 then call('SREM', groups, group) end
  return true
end

-- From which end a long list is searched for one task: it is in the order in which tasks became pending, but for those that
-- were put back to the front.
local function nearer_end(id, since)
  local length = call('LLEN', pending)
  if only ~= '' or length < 1000 or call('LPOS', pending, id, 'RANK', -1, 'MAXLEN', 1000) then return -1 end
  local middle = try('HGET', ARGV[1] .. call('LINDEX', pending, math.floor(length / 2)), 'pending_since')
  local here, there = tonumber(since), type(middle) == 'string' and tonumber(middle)
  return here and there and here > there and 1 or -1
end

-- Tasks that are moved together stand close to each other. Where the list is long they are found by one look at that part, and
-- removed together, as each LREM would search the list for one of them.
local LONG, SPAN = 1000, 1000
local GONE = '\0moved\0' .. ARGV[5]
local places, gone = {}, 0

local function find_places()
  local length = call('LLEN', pending)
  if only ~= 'pending' or length < LONG or #ARGV < 12 then return end
  local wanted, known_place = {}, nil
  for i = 12, #ARGV do
    wanted[ARGV[i]] = true
    if not known_place and try('HGET', ARGV[1] .. ARGV[i], 'state') == 'pending' then
      known_place = call('LPOS', pending, ARGV[i], 'RANK', -1)
    end
  end
  if not known_place then return end
  local first = math.max(0, known_place - SPAN)
  for offset, id in ipairs(call('LRANGE', pending, first, known_place + SPAN)) do
    if wanted[id] then places[id] = first + offset - 1 - length end
  end
end

-- Removed at the end, so that the others keep their places.
local function mark_gone(id)
  local place = places[id]
  if not place or call('LINDEX', pending, place) ~= id then return false end
  -- Redis refuses LSET, but not LREM, when its memory is full.
  local set = try('LSET', pending, place, GONE)
  if type(set) ~= 'table' or not set.ok then return false end
  gone = gone + 1
  return true
end

local function leave_pending(id, since)
  return mark_gone(id) or call('LREM', pending, nearer_end(id, since), id) > 0
end

local function leave(state, group, id, since)
  if state == 'pending' then return leave_pending(id, since) end
  if state == 'aggregating' then return leave_set(ARGV[2] .. group, id, group) end
  if state == 'held' then
    try('ZREM', held, id)
    state = 'retry'
  end
  return leave_set(sorted[state], id)
end

-- Deletes a dangling id, or one whose key is no task, wherever it is listed. In a long `pending` it is searched for near the
-- front only: the ids of tasks that have run meanwhile must not each cost a search through the list.
-- A key that is no hash is left alone when no list has the id: with some names of queues it belongs to another queue.
local function clear(key, id)
  if call('ZSCORE', lease, id) then return 'a' end
  local found = call('TYPE', key).ok == 'hash'
  if only == 'aggregating' then
    found = leave_set(ARGV[2] .. only_group, id, only_group) or found
  elseif only ~= '' and only ~= 'pending' then
    found = leave(only, '', id) or found
  else
    if only == '' then
      for _, set in pairs(sorted) do
        found = leave_set(set, id) or found
      end
    end
    if call('LPOS', pending, id, 'RANK', -1, 'MAXLEN', only == '' and 0 or 1000) then
      found = call('LREM', pending, -1, id) > 0
    end
  end
  if found then call('DEL', key) end
  return found and 'm' or 'n'
end

-- A lock lasts longer by as much as its task is put off.
local function extend_lock(lock, id, seconds)
  -- A requested time is within the range of a Date; a score may not be.
  if not lock or lock == '' or seconds <= 0 or seconds > 1e13 or try('GET', lock) ~= id then return end
  local left = call('PTTL', lock)
  if left > 0 then call('PEXPIRE', lock, string.format('%.0f', left + seconds * 1000)) end
end

local runnable, joining, left_lines = {}, {}, 0

-- A task in `retry` stays there; one with a group joins it at that time.
local function reschedule(key, id, state, group, lock, due)
  call('ZADD', state == 'retry' and KEYS[3] or KEYS[2], ARGV[8], id)
  if state ~= 'retry' then call('HSET', key, 'state', 'scheduled') end
  call('HDEL', key, 'pending_since')
  if group ~= '' then
    joining[#joining + 1] = ARGV[8]
    joining[#joining + 1] = group
  end
  extend_lock(lock, id, tonumber(ARGV[8]) - tonumber(due or ARGV[4]))
end

local function move(id)
  local key = ARGV[1] .. id
  local fields = try('HMGET', key, 'msg', 'state', 'group', 'unique_key', 'pending_since')
  local message, state, group, lock = fields[1], fields[2], fields[3] or '', fields[4]
  if state == 'active' then return 'a' end
  local line = state == 'aggregating' and string.sub(group, 1, #ARGV[11]) == ARGV[11] and group
  if line then
    state, group = 'pending', ''
  end
  if state == 'retry' and hold(key, call('ZSCORE', KEYS[3], id)) then state = 'held' end
  if not message or not known[state] then return action == 'delete' and clear(key, id) or 'n' end
  if only ~= '' and state ~= only then return 'e' end
  if only == 'aggregating' then
    if type(try('ZSCORE', ARGV[2] .. only_group, id)) ~= 'string' then return group == only_group and 'c' or 'e' end
    group = only_group
  end
  if (action == 'run' and state == 'pending') or (action == 'archive' and state == 'archived') then return 's' end
  local waits = state == 'aggregating' and group == waiting_group
  if waits and action == 'schedule' then return 'w' end
  if action == 'archive' and max_archived and call('ZCARD', archived) >= max_archived then return 'f' end
  local due = (state == 'scheduled' or state == 'retry') and call('ZSCORE', sorted[state], id) -- a held one is due now
  if line then
    if not leave_set(ARGV[2] .. line, id) then return 'e' end
    left_lines = left_lines + 1
    call('HDEL', key, 'group')
  elseif not leave(state, group, id, fields[5]) then
    return state == 'aggregating' and 'c' or 'e'
  end
  -- Or it would wait again after a retry.
  if waits then call('HDEL', key, 'group') end
  if action == 'delete' then
    -- The name of the lock comes from the hash: a wrong one must not stop the deletion.
    if lock and lock ~= '' and try('GET', lock) == id then call('DEL', lock) end
    call('DEL', key)
  elseif action == 'archive' then
    call('ZADD', archived, ARGV[4], id)
    call('HSET', key, 'state', 'archived')
    call('HDEL', key, 'pending_since')
  elseif action == 'schedule' then
    reschedule(key, id, state, group, lock, due)
  else
    runnable[#runnable + 1] = id
    call('HSET', key, 'state', 'pending', 'pending_since', ARGV[5])
  end
  return 'm'
end

find_places()
local statuses = {}
for i = 12, #ARGV do
  statuses[#statuses + 1] = move(ARGV[i])
end
if gone > 0 then call('LREM', pending, -gone, GONE) end
spread('LPUSH', pending, runnable)
if left_lines > 0 then call('SET', KEYS[9], math.max(0, (tonumber(call('GET', KEYS[9]) or 0) or 0) - left_lines)) end
note_delayed_groups(KEYS[8], ARGV[4], joining)
return table.concat(statuses)
