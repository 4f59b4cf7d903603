-- The callbacks of a batch: L.decide calls back. Part of links.lua.
--
-- The hash of the batch has for each callback `task:<name>` (JSON), `message:<name>`, and `fired:<name>`: made, offered, or the
-- nonce of the offer that was accepted.
--
-- A callback goes to another place in three steps, as a parcel may come twice, and late: it is offered; the place accepts with a
-- nonce that it keeps; the home, which knows what it has granted, sends the task for this nonce. So it is created exactly once,
-- and nobody has to remember it.
do
  local call, try = redis.call, redis.pcall
  local OFFER_SECONDS = 604800
  local CALLBACKS = { 'death', 'complete', 'success' }

  local function batch_key(id)
    return L.base .. 'batch:' .. id
  end

  local function offer(id, name, task)
    local body = { kind = 'offer', batch = id, name = name, home = L.place }
    L.post(task.queue, 'offer ' .. id .. ' ' .. name, body)
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

  -- A place that is offered a callback accepts, always with the same nonce until it has an answer.
  L.on.offer = function(body)
    local key = L.base .. 'offer:' .. body.batch .. '~' .. body.name
    local nonce = try('GET', key)
    if type(nonce) ~= 'string' then
      local time = call('TIME')
      nonce = time[1] .. '.' .. time[2]
      call('SET', key, nonce, 'EX', OFFER_SECONDS)
    end
    local answer = { kind = 'accept', batch = body.batch, name = body.name, nonce = nonce, place = L.place }
    L.post(body.home, 'accept ' .. body.batch .. ' ' .. body.name, answer)
  end

  L.on.accept = function(body)
    local key = batch_key(body.batch)
    local fired = try('HGET', key, 'fired:' .. body.name)
    if fired == body.nonce then return end
    local answer = { batch = body.batch, name = body.name, nonce = body.nonce }
    if fired ~= 'offered' then
      answer.kind = 'refuse'
      return L.post(body.place, 'refuse ' .. body.batch .. ' ' .. body.name, answer)
    end
    answer.kind, answer.task = 'grant', cjson.decode(call('HGET', key, 'task:' .. body.name))
    local message = call('HGET', key, 'message:' .. body.name)
    call('HSET', key, 'fired:' .. body.name, body.nonce)
    call('HDEL', key, 'message:' .. body.name)
    L.arm_batch(body.batch)
    L.post(body.place, 'grant ' .. body.batch .. ' ' .. body.name, answer, message)
  end

  -- Whether an offer is still that of this nonce; it is over then.
  local function takes(body)
    local key = L.base .. 'offer:' .. body.batch .. '~' .. body.name
    return try('GET', key) == body.nonce and call('DEL', key) == 1
  end

  L.on.refuse = takes

  L.on.grant = function(body, message)
    if takes(body) then create(body.task, message) end
  end
end
