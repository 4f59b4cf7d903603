-- Tasks that steps of handlers call: part of links.lua. The task of the handler has the answer of each in a field `answer:<name>`: JSON { ok, why }, a line
-- feed, and the result. The name distinguishes the calls of one task.
do
  local call, try = redis.call, redis.pcall
  -- Includes shared/end-sleep.lua

  local function key_of(w)
    return 'answer ' .. w.id .. ' ' .. w.answer
  end

  local function call_key(w)
    return 'call ' .. w.id .. ' ' .. w.answer
  end

  local function tell(w, ok, why, result)
    L.post(w.to, key_of(w), { kind = 'answer', id = w.id, answer = w.answer, ok = ok, why = why, from = L.place }, result)
  end

  L.tell.s = function(w, _, ok, why, result)
    tell(w, ok, why, result)
  end

  -- Asks a queue to create the task that `w` waits for; without a message to say what has become of it.
  function L.post_call(queue, task, w, message)
    if message == '' then return L.post(queue, 'recall' .. call_key(w), { kind = 'recall', id = task.id, w = w }) end
    task.watchers = task.watchers or {}
    table.insert(task.watchers, w)
    L.post(queue, call_key(w), { kind = 'call', task = task, w = w }, message)
  end

  -- Whether the task notifies `w` of its end, or has done so.
  local function is_watched(id, w)
    for _, other in ipairs(L.read_watchers(id) or {}) do
      if other.k == 's' and other.to == w.to and other.id == w.id and other.answer == w.answer then return true end
    end
    return false
  end

  -- Once: a task of this id is the one that an earlier delivery has created.
  L.on.call = function(body, data)
    local task, w = body.task, body.w
    if is_watched(task.id, w) then return end
    task.message = data
    local status = L.create(task)
    if status == 'conflict' then return L.on.recall({ id = task.id, w = w }) end
    if status ~= 'enqueued' then tell(w, false, L.runs.REFUSED[status]) end
  end

  L.on.recall = function(body)
    local w = body.w
    if call('HEXISTS', L.outbox, w.to .. ' ' .. key_of(w)) == 1 then return end
    if not L.watch(body.id, w) then tell(w, false, 'deleted') end
  end

  -- A called task has ended. A success is not undone by a failure that comes later.
  L.on.answer = function(body, data)
    local key, field = L.task_prefix .. body.id, 'answer:' .. body.answer
    -- The call has arrived: it must not be delivered once more.
    call('HDEL', L.outbox, body.from .. ' ' .. call_key(body))
    local stored = try('HMGET', key, 'msg', 'state', field, 'awaits')
    local state, before = stored[2], stored[3]
    if not stored[1] or state == 'completed' or before and string.find(before, '"ok":true', 1, true) then return end
    local head = cjson.encode({ ok = body.ok, why = body.why })
    call('HSET', key, field, head .. '\n' .. data)
    if end_sleep(key, body.id, L.scheduled, state, stored[4], field) then L.make_pending(body.id) end
  end
end
