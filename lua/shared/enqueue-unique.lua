-- What enqueue-unique.lua does. `L` is the engine of links, if there is one.
--
-- Uses shared/spread.lua
-- Uses shared/hold.lua

local EXISTING, REPLACE, DEBOUNCE, LATEST, SUPERSEDE, ONCE = 'e', 'p', 'd', 'l', 's', 'o'
-- What became of a task, for its reply.
local DUPLICATE, CONFLICT, FOUND, REPLACED, FOLLOWS, FULL = 1, 2, 3, 4, 5, 6
-- The same in fewer words, for most tasks: found, with a message and in such a state; replaced, and as its call wants it.
local FOUND_IN, MOVED = { pending = 7, active = 8, completed = 9 }, 10
local MADE_ID = 'i'

local call, try, type, keys, argv = redis.call, redis.pcall, type, KEYS, ARGV
local pending, scheduled, retry, waiting = unpack(KEYS, 1, 4)
local task_prefix, now, now_nanos, resent, policies, cancel, room, copied = unpack(ARGV, 1, 8)
local count, id_start = (#KEYS - 4) / 2, #task_prefix + 1
local HASHES, LOCKS, MESSAGES = 4, 4 + count, 8
local is_first_call = resent == '0'

local known -- the holders of all locks, once they are read
-- Includes shared/enqueue-existing.lua

local holders = {} -- the id that the lock of each task holds, or false
local existing -- how many ids of the call exist, if that is known
local fresh, delayed, created, superseded = {}, {}, {}, {}
local taken = {} -- by the name of a lock: the id that this call has put into it
local reply, noted, messages = {}, 0, {}

local function field(task, name)
  local value = try('HGET', task.key, name)
  return type(value) == 'string' and value or nil
end

-- A task, if it exists. Its other fields are read when they are needed.
local function read(id)
  local key = task_prefix .. id
  local found = try('HMGET', key, 'state', 'group', 'did:!undo')
  if not found[1] then return nil end
  return { id = id, key = key, state = found[1], group = found[2], undo = found[3] }
end

local function waits_for_tasks(task)
  return task.state == 'aggregating' and task.group == 'asynq:waiting'
end

-- A member of a group becomes part of another task, which may have read its payload already.
local function is_unstarted(task)
  local state = task and task.state
  if state == 'pending' or state == 'retry' then return true end
  if state ~= 'scheduled' and state ~= 'aggregating' then return false end
  local group = task.group
  return not group or group == '' or group == 'asynq:waiting'
end

-- Whether its steps are being undone, as it has failed for good: nobody changes it.
local function is_undoing(task)
  return task and task.undo and not string.find(task.undo, '"over":true', 1, true)
end

local function is_live(task)
  return task and (task.state == 'active' or is_unstarted(task))
end

-- Calls `visit` for tasks in a row that have the same policy and times.
local function each_run(visit)
  local first, at = 1, MESSAGES + count + 1
  while first <= count do
    local last = tonumber(argv[at])
    visit(first, last, unpack(argv, at + 1, at + 4))
    first, at = last + 1, at + 5
  end
end

local function note(i, code, id, state, score)
  local n = noted
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4], reply[n + 5] = i, code, id, state or '', score or ''
  noted = n + 5
end

local function note_short(i, code, id)
  local n = noted
  reply[n + 1], reply[n + 2], reply[n + 3] = i, code, id
  noted = n + 3
end

local function flush()
  spread('LPUSH', pending, fresh)
  spread('ZADD', scheduled, delayed)
  fresh, delayed = {}, {}
end

-- A task that has not started, or has ended, as it is.
local function note_as_is(i, code, id, task)
  if not task then return note(i, code, id) end
  if #delayed > 0 then flush() end
  local is_waiting = waits_for_tasks(task)
  local set = task.state == 'scheduled' and scheduled or task.state == 'retry' and retry or is_waiting and waiting
  local state, score = is_waiting and 'waiting' or task.state, set and call('ZSCORE', set, id)
  if state == 'retry' and hold(task.key, score) then state = 'held' end
  note(i, code, id, state, score)
end

-- What an earlier call has written may be too new to be anywhere else, and Redis waits for the writes of this connection alone: one small
-- write, as who has it has all before it.
local function write_again(i, id, state)
  if copied ~= '1' then return end
  copied = '0'
  if state then
    call('HSET', task_prefix .. id, 'state', state)
  elseif keys[LOCKS + i] ~= keys[HASHES + i] then
    call('SET', keys[LOCKS + i], id, 'KEEPTTL')
  end
end

-- A task that is there already, with its message.
local function note_found(i, id)
  local found = try('HMGET', task_prefix .. id, 'state', 'msg')
  local state, message = found[1], found[2]
  messages[#messages + 1] = message or ''
  write_again(i, id, state)
  local short = message and FOUND_IN[state]
  if short then return note_short(i, short, id) end
  note_as_is(i, FOUND, id, state and read(id))
end

local function push(id, at)
  if at then
    delayed[#delayed + 1], delayed[#delayed + 2] = at, id
  else
    fresh[#fresh + 1] = id
  end
end

local function take_lock(i, own, ttl)
  local lock = keys[LOCKS + i]
  call('SETEX', lock, ttl, own)
  taken[lock] = own
  return lock
end

local function create(i, own, key, message, ttl, at, start_by)
  created[key] = true
  local fields, n = { 'msg', message, 'state', 'pending', 'pending_since', now_nanos }, 6
  if at then fields[4], n = 'scheduled', 4 end
  if ttl ~= '' then
    fields[n + 1], fields[n + 2] = 'unique_key', take_lock(i, own, ttl)
    n = n + 2
  end
  if start_by ~= '' then
    fields[n + 1], fields[n + 2] = 'start_by', start_by
    n = n + 2
  end
  call('HSET', key, unpack(fields, 1, n))
  push(own, at)
end

-- Whether an earlier call has done this: it made the id, or stored the message under the id. A lock that names the id tells of one that
-- is over by now, and gone.
local function note_known(i, own, message, holder)
  local task = read(own)
  if not task then return holder == own and string.sub(resent, i, i) == MADE_ID end
  if string.sub(resent, i, i) ~= MADE_ID and field(task, 'msg') ~= message then return false end
  write_again(i, own, task.state)
  if waits_for_tasks(task) then note_as_is(i, FOLLOWS, own, task) end
  return true
end

local function exists(key)
  return created[key] or existing ~= 0 and call('EXISTS', key) == 1
end

local function is_full(at)
  return room ~= '' and not at and call('LLEN', pending) + #fresh >= tonumber(room)
end

local function note_full(i, own)
  note(i, FULL, own, nil, tostring(call('LLEN', pending) + #fresh))
end

local replace, latest
if string.find(policies, '[pdls]') then
  -- Includes shared/replacing.lua
end
if string.find(policies, LATEST, 1, true) then
  -- Includes shared/following.lua
end

local function enqueue(i, policy, ttl, at, limit)
  local key, lock = keys[HASHES + i], keys[LOCKS + i]
  local holder = taken[lock] or holders[i]
  if holder and policy == EXISTING and is_first_call then return note_found(i, holder) end
  local message, own = argv[MESSAGES + i], string.sub(key, id_start)
  if not is_first_call and (holder == own or exists(key)) and note_known(i, own, message, holder) then return end
  if policy == ONCE then
    local is_there = exists(key)
    if is_there and (created[key] or call('HEXISTS', key, 'msg') == 1) then return note_found(i, own) end
    if is_full(at) then return note_full(i, own) end
    if is_there then call('DEL', key) end -- a hash without a message, such as a result that Go has written late
    return create(i, own, key, message, '', at, '')
  end
  if holder and policy == EXISTING then return note_found(i, holder) end
  local owner = holder and read(holder)
  if policy == LATEST and not is_live(owner) then
    owner = latest.read_runner(lock) or owner
    holder = owner and owner.id or holder
  end
  if owner and not is_first_call and field(owner, 'trigger') == own then
    write_again(i, holder, owner.state)
    return note_as_is(i, REPLACED, holder, owner)
  end
  local replaces = policy == REPLACE or policy == DEBOUNCE or policy == LATEST or policy == SUPERSEDE
  local undoes = replaces and is_undoing(owner)
  if replaces and not undoes and is_unstarted(owner) then return replace(i, owner, own, policy, message, ttl, at, limit) end
  if holder and (not replaces or policy == REPLACE) then return note_as_is(i, DUPLICATE, holder, owner) end
  if exists(key) then return note(i, CONFLICT, own) end
  if policy == LATEST and owner and owner.state == 'active' then
    return latest.follow(i, owner, own, key, message, ttl, at, limit)
  end
  if is_full(at) then return note_full(i, own) end
  create(i, own, key, message, ttl, at, policy == DEBOUNCE and limit or '')
  if policy == SUPERSEDE and owner and owner.state == 'active' and not undoes then
    call('HSET', owner.key, 'superseded_by', own) -- it does not come again: shared/exchange.lua
    superseded[#superseded + 1] = holder
  end
end

call('LLEN', pending)
call('ZCARD', scheduled)
call('ZCARD', retry)
call('ZCARD', waiting)
if L then L.open(task_prefix, now, now_nanos) end

-- The locks that nobody holds; whether a task needs the engine of links.
local free, wants_links = {}, false
each_run(function(first, last, policy)
  if policy == ONCE then return end
  for from = first, last, 1000 do
    local to = math.min(from + 999, last)
    local found = known or call('MGET', unpack(keys, LOCKS + from, LOCKS + to))
    for i = from, to do
      local holder = found[i - from + 1]
      holders[i] = holder
      if not holder then free[#free + 1] = keys[LOCKS + i] end
      if policy == LATEST and not L then
        wants_links = wants_links or latest.needs_links(keys[LOCKS + i], holder and read(holder))
      end
    end
  end
end)
-- For MGET a key of another type holds nothing; GET fails.
local held = 0
for first = 1, #free, 1000 do
  held = held + call('EXISTS', unpack(free, first, math.min(first + 999, #free)))
end
for n = 1, held > 0 and #free or 0 do
  call('GET', free[n])
end
if wants_links then return nil end

-- Unknown when all locks are held, as few tasks are created then.
local has_once = string.find(policies, ONCE, 1, true)
if has_once or #free > 0 or not is_first_call then
  existing = 0
  for first = 1, count, 1000 do
    existing = existing + call('EXISTS', unpack(keys, HASHES + first, HASHES + math.min(first + 999, count)))
  end
end
-- A key of another type is no task that has run.
if has_once and existing > 0 then
  each_run(function(first, last, policy)
    for i = first, policy == ONCE and last or 0 do
      call('HLEN', keys[HASHES + i])
    end
  end)
end

-- Everything is checked. From here on the script writes. Each task of the call sees those before it.
each_run(function(first, last, policy, ttl, at, limit)
  if at == '' then at = nil end
  for i = first, last do
    enqueue(i, policy, ttl, at, limit)
  end
end)
flush()
if L then L.work() end
-- Who may not publish here is found later: every server searches for what runs there.
for n = 1, #superseded do
  try('PUBLISH', cancel, superseded[n])
end
local result = { noted > 0 and cmsgpack.pack(reply) or '', L and L.parcels() or '' }
for n = 1, #messages do
  result[n + 2] = messages[n]
end
return result
