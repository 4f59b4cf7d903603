-- The policies that change the task that is there. Part of enqueue-unique.lua, for calls that have one of them: to make a function has its
-- price, and most calls have one policy.

-- Moves of a debounced task that are longer keep its lock alive: others end long before it.
local LONG_DELAY = 86400

-- Most tasks of a call have the same time, which is text.
local last_at, last_is_long
local function is_long(at)
  if at ~= last_at then last_at, last_is_long = at, at - now > LONG_DELAY end
  return last_is_long
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
    if is_held then try('ZREM', string.sub(task_prefix, 1, -#'t:' - 1) .. 'held', id) end
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

function replace(i, owner, own, policy, message, ttl, at, limit)
  local wanted = at
  local lock, stored = keys[LOCKS + i], with_id(message, owner.id)
  if policy == DEBOUNCE and limit ~= '' then
    local start_by = owner.state ~= 'retry' and field(owner, 'start_by') or limit
    if tonumber(at) > tonumber(start_by) then at = start_by end
    call('HSET', owner.key, 'msg', stored, 'trigger', own, 'start_by', start_by)
  else
    call('HSET', owner.key, 'msg', stored, 'trigger', own)
  end
  if (taken[lock] or holders[i]) ~= owner.id then
    take_lock(i, owner.id, ttl)
  elseif policy ~= DEBOUNCE or is_long(at) then
    call('EXPIRE', lock, ttl)
  end
  local moved
  if policy == LATEST and waits_for_tasks(owner) then
    moved = latest.mend(owner, at)
  else
    moved = move(owner, at, policy)
  end
  if moved and at == wanted then return note_short(i, MOVED, owner.id) end
  if moved then
    return note(i, REPLACED, owner.id, at and 'scheduled' or 'pending', at)
  end
  note_as_is(i, REPLACED, owner.id, owner)
end
