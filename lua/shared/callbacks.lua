-- The callbacks of a batch: L.decide calls back. Part of links.lua.
--
-- The hash of the batch has for each callback `task:<name>` (JSON), `message:<name>`, and `fired:<name>`: made, offered (to another place, see
-- offers.lua), or the nonce for which it was granted.
do
  local call, try = redis.call, redis.pcall
  local CALLBACKS = { 'death', 'complete', 'success' }

  local function batch_key(id)
    return L.base .. 'batch:' .. id
  end

  local function offer(id, name, task)
    L.offer(task.queue, 'callback', id .. ' ' .. name, { batch = id, name = name })
  end

  -- What a callback waits for, and for how long, counts from when it is called.
  local function create(task, message)
    if task.after then task.after.deadline = L.seconds + task.after.within end
    task.message, task.resent = message, 'i'
    L.create(task)
  end

  -- nil when there is none, or when it is damaged
  local function callback_of(text)
    local known, task = pcall(cjson.decode, text or '')
    return known and type(task) == 'table' and type(task.queue) == 'string' and task or nil
  end

  -- Creates the task of a callback, or offers it to the place where it belongs; once.
  function L.call_back(id, name)
    local key = batch_key(id)
    local stored = call('HMGET', key, 'fired:' .. name, 'task:' .. name, 'name')
    local task = callback_of(stored[2])
    if stored[1] or not task then return end
    L.note({ kind = 'callback', id = id, name = stored[3] or '', callback = name })
    if task.queue ~= L.place then
      call('HSET', key, 'fired:' .. name, 'offered')
      return offer(id, name, task)
    end
    local message = call('HGET', key, 'message:' .. name)
    call('HSET', key, 'fired:' .. name, 'made')
    call('HDEL', key, 'message:' .. name)
    create(task, message)
  end

  -- Offers again what no place has accepted yet. Returns whether there is any.
  function L.offer_again(id)
    local key, any = batch_key(id), false
    for _, name in ipairs(CALLBACKS) do
      local stored = call('HMGET', key, 'fired:' .. name, 'task:' .. name)
      local task = stored[1] == 'offered' and callback_of(stored[2])
      if task then
        any = true
        offer(id, name, task)
      end
    end
    return any
  end

  -- Whether a callback has been offered, and no place has accepted it.
  function L.is_offering(id)
    local fired = call('HMGET', batch_key(id), 'fired:death', 'fired:complete', 'fired:success')
    return fired[1] == 'offered' or fired[2] == 'offered' or fired[3] == 'offered'
  end

  L.grants.callback = function(about, nonce)
    local key, name = batch_key(about.batch), about.name
    local fired = try('HGET', key, 'fired:' .. name)
    if fired == nonce then return true end
    if fired ~= 'offered' then return nil end
    local task = cjson.decode(call('HGET', key, 'task:' .. name))
    local message = call('HGET', key, 'message:' .. name)
    call('HSET', key, 'fired:' .. name, nonce)
    call('HDEL', key, 'message:' .. name)
    L.arm_batch(about.batch)
    return task, message
  end

  L.granted.callback = create
end
