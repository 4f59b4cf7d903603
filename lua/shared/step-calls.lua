-- Tasks that steps of handlers call: part of links.lua. The task of the handler has the answer of each in a field `answer:<name>`: JSON { ok, why }, a line
-- feed, and the result. The name distinguishes the calls of one task. Until then `call:<name>` has a task of another place: as it is to be created,
-- JSON, a line feed, and the message; or the nonce for which it was granted (see offers.lua).
do
  local call, try = redis.call, redis.pcall
  -- Of many tasks that one script calls in its own place the others are offered to it: that takes further scripts.
  local CREATED_AT_ONCE = 1000
  local created = 0
  -- Includes shared/end-sleep.lua

  local function name_of(w)
    return w.id .. ' ' .. w.answer
  end

  local function key_of(w)
    return 'answer ' .. name_of(w)
  end

  local function field_of(w)
    return 'call:' .. w.answer
  end

  local function tell(w, ok, why, result)
    L.post(w.to, key_of(w), { kind = 'answer', id = w.id, answer = w.answer, ok = ok, why = why }, result)
  end

  L.tell.s = function(w, _, ok, why, result)
    tell(w, ok, why, result)
  end

  -- Says what has become of a task. What is on the way already answers.
  L.on.recall = function(body)
    local w = body.w
    if call('HEXISTS', L.outbox, w.to .. ' ' .. key_of(w)) == 1 then return end
    if not L.watch(body.id, w) then tell(w, false, 'deleted') end
  end

  -- Its last watcher is the step that calls it.
  local function create(task, message)
    local w = task.watchers[#task.watchers]
    task.message = message
    local status = L.create(task)
    if status == 'conflict' then return L.on.recall({ id = task.id, w = w }) end
    if status ~= 'enqueued' then tell(w, false, L.runs.REFUSED[status]) end
  end

  L.granted.call = create

  local function offer(queue, w)
    L.offer(queue, 'call', name_of(w), { id = w.id, answer = w.answer })
  end

  -- Has a queue create the task that `w` waits for, once.
  function L.call_task(queue, task, w, message)
    task.watchers = task.watchers or {}
    table.insert(task.watchers, w)
    created = created + 1
    if queue == L.place and created <= CREATED_AT_ONCE then return create(task, message) end
    call('HSET', L.task_prefix .. w.id, field_of(w), cjson.encode(task) .. '\n' .. message)
    offer(queue, w)
  end

  local function is_granted(kept)
    return string.sub(kept, 1, 1) ~= '{'
  end

  -- Asks a queue what has become of the task that `w` waits for.
  function L.ask_for_task(queue, id, w)
    local kept = call('HGET', L.task_prefix .. w.id, field_of(w))
    if kept and not is_granted(kept) then return offer(queue, w) end
    -- It is not created yet.
    if kept and L.is_granting(queue, 'call', name_of(w)) then return end
    L.post(queue, 'recall ' .. name_of(w), { kind = 'recall', id = id, w = w })
  end

  L.grants.call = function(about, nonce)
    local key, field = L.task_prefix .. about.id, field_of(about)
    local kept = try('HGET', key, field)
    if kept == nonce then return true end
    if type(kept) ~= 'string' or is_granted(kept) then return nil end
    local stop = string.find(kept, '\n', 1, true)
    local task = cjson.decode(string.sub(kept, 1, stop - 1))
    call('HSET', key, field, nonce)
    return task, string.sub(kept, stop + 1)
  end

  -- A called task has ended. A success is not undone by a failure that comes later; and the first failure says why.
  L.on.answer = function(body, data)
    local key, field = L.task_prefix .. body.id, 'answer:' .. body.answer
    local stored = try('HMGET', key, 'msg', 'state', field, 'awaits')
    local state, before = stored[2], stored[3]
    if not stored[1] or state == 'completed' then return end
    if before and (not body.ok or string.find(before, '"ok":true', 1, true)) then return end
    local head = cjson.encode({ ok = body.ok, why = body.why })
    call('HSET', key, field, head .. '\n' .. data)
    call('HDEL', key, field_of(body))
    if end_sleep(key, body.id, L.scheduled, state, stored[4], field) then L.make_pending(body.id) end
  end
end
