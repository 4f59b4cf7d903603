-- What enqueue-unique.lua does. `L` is the engine of links, if there is one.
--
-- Uses shared/spread.lua
-- Uses shared/hold.lua

local EXISTING, REPLACE, DEBOUNCE, LATEST, SUPERSEDE, ONCE = 'e', 'p', 'd', 'l', 's', 'o'
-- What became of a task, for its reply.
local DUPLICATE, CONFLICT, FOUND, REPLACED, FOLLOWS, FULL = 1, 2, 3, 4, 5, 6
local MADE_ID = 'i'

local call, try, type = redis.call, redis.pcall, type
local pending, scheduled, retry, waiting = unpack(KEYS, 1, 4)
local task_prefix, now, now_nanos, resent, policies, cancel, room, copied = unpack(ARGV, 1, 8)
local count, id_start = (#KEYS - 4) / 2, #task_prefix + 1
local HASHES, LOCKS, MESSAGES = 4, 4 + count, 8
local is_first_call = resent == '0'

call('LLEN', pending)
call('ZCARD', scheduled)
call('ZCARD', retry)
call('ZCARD', waiting)
if L then L.open(task_prefix, now, now_nanos) end

-- Moves of a debounced task that are longer keep its lock alive: others end long before it.
local LONG_DELAY = 86400

local function field(task, name)
  local value = try('HGET', task.key, name)
  return type(value) == 'string' and value or nil
end

-- A task, if it exists. Its other fields are read when they are needed.
local function read(id)
  local key = task_prefix .. id
  local found = try('HMGET', key, 'state', 'group')
  if not found[1] then return nil end
  return { id = id, key = key, state = found[1], group = found[2] }
end

local function waits_for_tasks(task)
  return task.state == 'aggregating' and task.group == 'asynq:waiting'
end

local base = string.sub(task_prefix, 1, -3)
local LOCK_START = #base + #'unique:' + 1

-- Who runs while another task follows it: that one may be moved by hand, with its lock.
local function runner_key(lock)
  return base .. 'followed:' .. string.sub(lock, LOCK_START)
end

-- A member of a group becomes part of another task, which may have read its payload already.
local function is_unstarted(task)
  local state = task and task.state
  if state == 'pending' or state == 'retry' then return true end
  if state ~= 'scheduled' and state ~= 'aggregating' then return false end
  local group = task.group
  return not group or group == '' or group == 'asynq:waiting'
end

local function is_live(task)
  return task and (task.state == 'active' or is_unstarted(task))
end

-- The task of this lock that runs, or has not started, if there is one behind that which follows it.
local function read_runner(lock)
  local id = try('GET', runner_key(lock))
  local runner = type(id) == 'string' and read(id)
  return runner and is_live(runner) and field(runner, 'unique_key') == lock and runner or nil
end

-- The task that a waiting one follows, while that has not ended; and the identity of its wait.
local function read_followed(task)
  local edge, after = field(task, 'w0'), field(task, 'after')
  local known, ref = pcall(cjson.decode, string.sub(edge or '', 2))
  local found, wait = pcall(cjson.decode, after or '')
  if not known or not found or type(ref) ~= 'table' or type(wait) ~= 'table' then return nil end
  local followed = read(ref[2])
  if is_live(followed) then return followed, wait.d end
end

-- Whether nobody would notify a task that waits for `followed`: its wait or its link is lost.
local function is_forgotten(task, followed)
  local link = try('HGET', base .. 'links', followed.id)
  if type(link) ~= 'string' or not string.find(link, '"' .. task.id .. '"', 1, true) then return true end
  return not call('ZSCORE', waiting, task.id)
end

-- What a task that follows an active one, or has lost it, needs the engine of links for.
local function needs_links(lock, owner)
  if not is_live(owner) then owner = read_runner(lock) end
  if not owner then return false end
  if owner.state == 'active' then return true end
  local followed = waits_for_tasks(owner) and read_followed(owner)
  return followed and is_forgotten(owner, followed)
end

-- Calls `visit` for tasks in a row that have the same policy and times.
local function each_run(visit)
  local first, at = 1, MESSAGES + count + 1
  while first <= count do
    local last = tonumber(ARGV[at])
    visit(first, last, unpack(ARGV, at + 1, at + 4))
    first, at = last + 1, at + 5
  end
end

-- The id that the lock of each task holds, or false; the locks that nobody holds; whether a task needs the engine of links.
local holders, free, wants_links = {}, {}, false
each_run(function(first, last, policy)
  if policy == ONCE then return end
  for from = first, last, 1000 do
    local to = math.min(from + 999, last)
    local found = call('MGET', unpack(KEYS, LOCKS + from, LOCKS + to))
    for i = from, to do
      local holder = found[i - from + 1]
      holders[i] = holder
      if not holder then free[#free + 1] = KEYS[LOCKS + i] end
      if policy == LATEST and not L then
        wants_links = wants_links or needs_links(KEYS[LOCKS + i], holder and read(holder))
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

-- How many ids of the call exist; unknown when all locks are held, as few tasks are created then.
local existing
local has_once = string.find(policies, ONCE, 1, true)
if has_once or #free > 0 or not is_first_call then
  existing = 0
  for first = 1, count, 1000 do
    existing = existing + call('EXISTS', unpack(KEYS, HASHES + first, HASHES + math.min(first + 999, count)))
  end
end
-- A key of another type is no task that has run.
if has_once and existing > 0 then
  each_run(function(first, last, policy)
    for i = first, policy == ONCE and last or 0 do
      call('HLEN', KEYS[HASHES + i])
    end
  end)
end

-- Everything is checked. From here on the script writes. Each task of the call sees those before it.

local fresh, delayed, created, superseded = {}, {}, {}, {}
local taken = {} -- by the name of a lock: the id that this call has put into it
local reply, noted, messages = {}, 0, {}

local function note(i, code, id, state, score)
  local n = noted
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4], reply[n + 5] = i, code, id, state or '', score or ''
  noted = n + 5
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
  elseif KEYS[LOCKS + i] ~= KEYS[HASHES + i] then
    call('SET', KEYS[LOCKS + i], id, 'KEEPTTL')
  end
end

-- A task that is there already, with its message.
local function note_found(i, id)
  local found = try('HMGET', task_prefix .. id, 'state', 'msg')
  local state = found[1]
  messages[#messages + 1] = found[2] or ''
  write_again(i, id, state)
  if state == 'pending' or state == 'active' or state == 'completed' then return note(i, FOUND, id, state) end
  note_as_is(i, FOUND, id, state and read(id))
end

local function push(id, at)
  if at then
    delayed[#delayed + 1], delayed[#delayed + 2] = at, id
  else
    fresh[#fresh + 1] = id
  end
end

-- Moves a task to where its new request belongs. Returns whether it has moved.
local function move(task, at, policy)
  local id, key = task.id, task.key
  if task.state == 'pending' then
    -- Its wait is over. To search the list for it on every trigger would hold Redis while there is a backlog.
    if not at or policy == DEBOUNCE then return false end
    flush()
    call('LREM', pending, 1, id)
    call('HDEL', key, 'pending_since')
  elseif task.state == 'scheduled' then
    if not at then
      flush()
      call('ZREM', scheduled, id)
    end
  elseif task.state == 'retry' then
    local score = call('ZSCORE', retry, id)
    -- It waits for a limit of its handler, and keeps its position.
    local is_held = hold(task.key, score)
    if is_held and not at then return false end
    call('ZREM', retry, id)
    if is_held then try('ZREM', base .. 'held', id) end
  else
    return false
  end
  if not at then
    call('HSET', key, 'state', 'pending', 'pending_since', now_nanos)
  elseif task.state ~= 'scheduled' then
    call('HSET', key, 'state', 'scheduled')
  end
  push(id, at)
  return true
end

-- The message with another id as its last field: of a field that a message has twice, the last counts.
local function with_id(message, id)
  local length = #id
  if length < 128 then return message .. '\26' .. string.char(length) .. id end
  local bytes = { message, '\26' }
  while length >= 128 do
    bytes[#bytes + 1] = string.char(length % 128 + 128)
    length = math.floor(length / 128)
  end
  bytes[#bytes + 1] = string.char(length)
  return table.concat(bytes) .. id
end

local function take_lock(i, own, ttl)
  local lock = KEYS[LOCKS + i]
  call('SETEX', lock, ttl, own)
  taken[lock] = own
  return lock
end

-- A task that waits for one that is over, or whose end nobody would tell it, would wait until its time is over. Returns whether it has moved.
local function mend(owner, at)
  local followed, deadline = read_followed(owner)
  if followed then
    if not L or not is_forgotten(owner, followed) then return false end
    L.watch(followed.id, { k = 'w', to = L.place, id = owner.id, n = 0, d = deadline }, 'succeeded')
    call('ZADD', waiting, deadline, owner.id)
    return false
  end
  call('ZREM', waiting, owner.id)
  call('HDEL', owner.key, 'group')
  if at then
    call('HSET', owner.key, 'state', 'scheduled')
  else
    call('HSET', owner.key, 'state', 'pending', 'pending_since', now_nanos)
  end
  push(owner.id, at)
  return true
end

local function replace(i, owner, own, policy, message, ttl, at, limit)
  local lock, stored = KEYS[LOCKS + i], with_id(message, owner.id)
  if policy == DEBOUNCE and limit ~= '' then
    local start_by = owner.state ~= 'retry' and field(owner, 'start_by') or limit
    if tonumber(at) > tonumber(start_by) then at = start_by end
    call('HSET', owner.key, 'msg', stored, 'trigger', own, 'start_by', start_by)
  else
    call('HSET', owner.key, 'msg', stored, 'trigger', own)
  end
  if (taken[lock] or holders[i]) ~= owner.id then
    take_lock(i, owner.id, ttl)
  elseif policy ~= DEBOUNCE or at - now > LONG_DELAY then
    call('EXPIRE', lock, ttl)
  end
  local moved
  if policy == LATEST and waits_for_tasks(owner) then
    moved = mend(owner, at)
  else
    moved = move(owner, at, policy)
  end
  if moved then
    return note(i, REPLACED, owner.id, at and 'scheduled' or 'pending', at)
  end
  note_as_is(i, REPLACED, owner.id, owner)
end

local function create(i, own, key, message, ttl, at, start_by)
  created[key] = true
  local fields = { 'msg', message, 'state', at and 'scheduled' or 'pending' }
  local function add(name, value)
    fields[#fields + 1], fields[#fields + 2] = name, value
  end
  if not at then add('pending_since', now_nanos) end
  if ttl ~= '' then add('unique_key', take_lock(i, own, ttl)) end
  if start_by ~= '' then add('start_by', start_by) end
  call('HSET', key, unpack(fields))
  push(own, at)
end

-- The follower of an active task waits until that has ended, however it ends.
local function follow(i, owner, own, key, message, ttl, at, deadline)
  local till = tonumber(deadline)
  local refs = { { L.place, owner.id } }
  local after = { refs = refs, onFailure = 'run', onTimeout = 'run', deadline = till }
  L.watch(owner.id, { k = 'w', to = L.place, id = own, n = 0, d = till }, 'succeeded')
  L.create({ id = own, message = message, processAt = at and tonumber(at), after = after })
  local lock = take_lock(i, own, ttl)
  call('HSET', key, 'unique_key', lock)
  call('SET', runner_key(lock), owner.id, 'EX', ttl)
  created[key] = true
  note(i, FOLLOWS, own, 'waiting', deadline)
end

-- Whether an earlier call has done this: it made the id, or stored the message under the id.
local function note_known(i, own, message)
  local task = read(own)
  if not task then return false end
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

local function enqueue(i, policy, ttl, at, limit)
  local key, lock = KEYS[HASHES + i], KEYS[LOCKS + i]
  local holder = taken[lock] or holders[i]
  if holder and policy == EXISTING and is_first_call then return note_found(i, holder) end
  local message, own = ARGV[MESSAGES + i], string.sub(key, id_start)
  if not is_first_call and exists(key) and note_known(i, own, message) then return end
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
    owner = read_runner(lock) or owner
    holder = owner and owner.id or holder
  end
  if owner and not is_first_call and field(owner, 'trigger') == own then
    write_again(i, holder, owner.state)
    return note_as_is(i, REPLACED, holder, owner)
  end
  local replaces = policy == REPLACE or policy == DEBOUNCE or policy == LATEST or policy == SUPERSEDE
  if replaces and is_unstarted(owner) then return replace(i, owner, own, policy, message, ttl, at, limit) end
  if holder and (not replaces or policy == REPLACE) then return note_as_is(i, DUPLICATE, holder, owner) end
  if exists(key) then return note(i, CONFLICT, own) end
  if policy == LATEST and owner and owner.state == 'active' then
    return follow(i, owner, own, key, message, ttl, at, limit)
  end
  if is_full(at) then return note_full(i, own) end
  create(i, own, key, message, ttl, at, policy == DEBOUNCE and limit or '')
  if policy == SUPERSEDE and owner and owner.state == 'active' then
    call('HSET', owner.key, 'superseded_by', own) -- it does not come again: shared/exchange.lua
    superseded[#superseded + 1] = holder
  end
end

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
