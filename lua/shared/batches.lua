-- Batches: what one is where it lives, its home. Part of links.lua, as are parts.lua, what it has in each queue, and
-- callbacks.lua.
--
-- `batch:<batch>` is a hash: name, state (open, closed, succeeded, completed), openedAt and endedAt (milliseconds), closeBy and
-- retention (seconds); next, the next free number; total, the members in chunks; unconfirmed, the number of the chunks in
-- `c:<base>` ("count queue"), which nobody has confirmed; queues, JSON; per queue `q:<queue>`, its confirmed members, and
-- `p:<queue>` ("v made ok dead lost died"), what it reported last; per callback the fields of callbacks.lua.
-- `batches` holds the ids, by openedAt.
do
  local call, try = redis.call, redis.pcall
  local AUDIT_SECONDS, RETENTION_SECONDS = 60, 604800
  local STATES = { open = true, closed = true, succeeded = true, completed = true }

  local function batch_key(id)
    return L.base .. 'batch:' .. id
  end

  function L.arm_batch(id)
    local stored = call('HMGET', batch_key(id), 'state', 'closeBy', 'endedAt', 'retention')
    local at = L.seconds + AUDIT_SECONDS
    if stored[1] == 'open' then
      at = tonumber(stored[2]) or L.seconds
    elseif stored[1] ~= 'closed' and not L.is_offering(id) then
      at = math.ceil((tonumber(stored[3]) or L.seconds * 1000) / 1000) + (tonumber(stored[4]) or RETENTION_SECONDS)
    end
    call('ZADD', L.timers, at, 'batch ' .. id)
  end

  local function read_report(text)
    local v, made, ok, dead, lost, died = string.match(text or '', '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d)$')
    local part = { v = tonumber(v or 0), made = tonumber(made or 0), ok = tonumber(ok or 0), dead = tonumber(dead or 0) }
    part.lost, part.died = tonumber(lost or 0), died == '1'
    return part
  end

  local function each_queue(id, visit)
    local key = batch_key(id)
    local known, queues = pcall(cjson.decode, call('HGET', key, 'queues') or '')
    if not known or type(queues) ~= 'table' then queues = L.count_again(id) end
    for i = 1, #queues do
      local stored = call('HMGET', key, 'p:' .. queues[i], 'q:' .. queues[i])
      visit(queues[i], read_report(stored[1]), tonumber(stored[2]) or 0)
    end
  end

  local function note_end(id, state, total, failed)
    local stored = call('HMGET', batch_key(id), 'name', 'openedAt', 'endedAt')
    local news = { kind = 'batch', id = id, name = stored[1] or '', state = state, total = total, failed = failed }
    news.openedAt, news.endedAt = tonumber(stored[2]) or 0, tonumber(stored[3])
    L.note(news)
  end

  -- Calls back what is due, and ends the batch when all have ended.
  function L.decide(id)
    local key = batch_key(id)
    local stored = call('HMGET', key, 'state', 'total', 'unconfirmed')
    local state = stored[1]
    if not state or state == 'open' or state == 'succeeded' then return end
    local ok, failed, died, running = 0, 0, false, false
    each_queue(id, function(_, part)
      ok, failed, died = ok + part.ok, failed + part.dead + part.lost, died or part.died or part.lost > 0
      running = running or part.ok + part.dead < part.made -- also when Redis has lost that there are so many
    end)
    if died then L.call_back(id, 'death') end
    if stored[3] == '0' and not running and ok + failed >= (tonumber(stored[2]) or 0) then
      local ends = failed == 0 and 'succeeded' or 'completed'
      if ends ~= state then
        call('HSET', key, 'state', ends, 'endedAt', string.sub(L.now_nanos, 1, -7))
        note_end(id, ends, ok + failed, failed)
      end
      L.call_back(id, 'complete')
      if failed == 0 then L.call_back(id, 'success') end
    end
    L.arm_batch(id)
  end

  -- `batch`: { id, name, closeBy, retention, callbacks = { name = { queue, id, … } } }; `messages` by the name of the callback.
  function L.open_batch(batch, messages)
    local key = batch_key(batch.id)
    if call('EXISTS', key) == 1 then return false end
    local at = string.sub(L.now_nanos, 1, -7)
    call('HSET', key, 'name', batch.name, 'state', 'open', 'openedAt', at, 'closeBy', batch.closeBy, 'retention', batch.retention)
    call('HSET', key, 'next', 0, 'total', 0, 'unconfirmed', 0, 'queues', '[]')
    for name, task in pairs(batch.callbacks) do
      call('HSET', key, 'task:' .. name, cjson.encode(task), 'message:' .. name, messages[name])
    end
    call('ZADD', L.base .. 'batches', at, batch.id)
    L.arm_batch(batch.id)
    return true
  end

  function L.close_batch(id)
    local key = batch_key(id)
    local state = call('HGET', key, 'state')
    if state == 'open' then
      call('HSET', key, 'state', 'closed')
      L.decide(id)
    end
    return state and true or false
  end

  -- A chunk has so many members. Its first confirmation counts.
  function L.confirm_chunk(id, base, created)
    local key = batch_key(id)
    local note = try('HGET', key, 'c:' .. base)
    if type(note) ~= 'string' then return end
    local count, queue = string.match(note, '^(%d+) (.*)$')
    call('HDEL', key, 'c:' .. base)
    call('HINCRBY', key, 'unconfirmed', -1)
    call('HINCRBY', key, 'total', created - tonumber(count))
    call('HINCRBY', key, 'q:' .. queue, created)
    call('ZREM', L.timers, 'chunk ' .. id .. ' ' .. base)
  end

  -- Deletes a batch that has ended, once its callbacks are where they run. Returns deleted, missing or running.
  function L.delete_batch(id)
    local key = batch_key(id)
    local state = call('HGET', key, 'state')
    if not state then return 'missing' end
    if state == 'open' or state == 'closed' or L.is_offering(id) then return 'running' end
    each_queue(id, function(queue)
      L.post(queue, 'forget ' .. id, { kind = 'forget', batch = id })
    end)
    call('DEL', key)
    call('ZREM', L.base .. 'batches', id)
    call('ZREM', L.timers, 'batch ' .. id)
    return 'deleted'
  end

  L.on.chunk = function(body)
    L.confirm_chunk(body.batch, body.base, body.created)
    L.decide(body.batch)
  end

  L.on.part = function(body)
    local key = batch_key(body.batch)
    local stored = try('HMGET', key, 'state', 'p:' .. body.queue)
    if stored.err then return end
    if not stored[1] then return L.post(body.queue, 'forget ' .. body.batch, { kind = 'forget', batch = body.batch }) end
    local before = read_report(stored[2])
    if body.v <= before.v then return end
    local made, ok, dead, lost = body.made or 0, body.ok or 0, body.dead or 0, before.lost
    if body.gone then
      ok, dead, lost = before.ok, 0, math.max(0, body.asked - before.ok)
    elseif body.asked then
      lost = math.max(0, body.asked - made)
    end
    local died = (body.died or before.died) and 1 or 0
    call('HSET', key, 'p:' .. body.queue, string.format('%.0f %.0f %.0f %.0f %.0f %d', body.v, made, ok, dead, lost, died))
    L.decide(body.batch)
  end

  L.due.batch = function(id)
    local key = batch_key(id)
    local fields = try('HLEN', key)
    if type(fields) ~= 'number' or fields == 0 then -- or another program's key
      call('ZREM', L.base .. 'batches', id)
      return
    end
    local state = call('HGET', key, 'state')
    if not STATES[state] then
      call('HSET', key, 'state', 'closed')
      state = 'closed'
    end
    if state == 'open' then
      L.close_batch(id)
    elseif state == 'closed' then
      L.count_again(id)
      L.decide(id)
      each_queue(id, function(queue, part, confirmed)
        if part.ok + part.dead + part.lost >= math.max(confirmed, part.made) then return end
        local body = { kind = 'audit', batch = id, home = L.place, asked = confirmed, v = part.v }
        L.post(queue, 'audit ' .. id, body)
      end)
      L.offer_again(id)
      L.arm_batch(id)
    elseif L.offer_again(id) then
      L.arm_batch(id)
    else
      L.delete_batch(id)
    end
  end

  L.due.chunk = function(about)
    local id, base = string.match(about, '^(%S+) (%d+)$')
    local note = try('HGET', batch_key(id), 'c:' .. base)
    if type(note) ~= 'string' then return end
    local count, queue = string.match(note, '^(%d+) (.*)$')
    local body = { kind = 'ask', batch = id, base = tonumber(base), count = tonumber(count), home = L.place }
    L.post(queue, 'ask ' .. id .. ' ' .. base, body)
    call('ZADD', L.timers, L.seconds + AUDIT_SECONDS, 'chunk ' .. about)
  end
end
