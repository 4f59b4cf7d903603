-- The policy `latest`: a task follows the one that runs, and waits for its end. Part of enqueue-unique.lua, for calls that have the policy.

latest = {}
local base = string.sub(task_prefix, 1, -3)
local LOCK_START = #base + #'unique:' + 1

-- Who runs while another task follows it: that one may be moved by hand, with its lock.
local function runner_key(lock)
  return base .. 'followed:' .. string.sub(lock, LOCK_START)
end

-- The task of this lock that runs, or has not started, if there is one behind that which follows it.
function latest.read_runner(lock)
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
function latest.needs_links(lock, owner)
  if not is_live(owner) then owner = latest.read_runner(lock) end
  if not owner then return false end
  if owner.state == 'active' then return true end
  local followed = waits_for_tasks(owner) and read_followed(owner)
  return followed and is_forgotten(owner, followed)
end

-- A task that waits for one that is over, or whose end nobody would tell it, would wait until its time is over. Returns whether it has moved.
function latest.mend(owner, at)
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

-- The follower of an active task waits until that has ended, however it ends.
function latest.follow(i, owner, own, key, message, ttl, at, deadline)
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
