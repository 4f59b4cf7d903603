-- Waiting tasks and marks: part of links.lua.
--
-- A waiting task has `after` in its hash, JSON { f: failure policy, t: timeout policy, d: deadline, s: processAt, n: edges }, `left`, the number of
-- edges it waits for, and a field `w<n>` per edge: a letter (? waits, + succeeded, - failed) and JSON [place, name, reason] of
-- the prerequisite. `cancelled` is since when (seconds) it is archived because one failed; one that was run since, and has failed
-- itself, is archived since another time. The deadline is the identity of the wait: what the end of a prerequisite tells an earlier
-- task of the same id says nothing to this one.
do
  local call, try, type = redis.call, redis.pcall, type
  -- How long the end of a prerequisite waits for a task that is not stored yet.
  local EARLY_SECONDS = 86400
  local DAY = 86400
  local TIMED_OUT = 'asynq: waited for as long as it may, and not every prerequisite has succeeded'
  local FAILED = 'asynq: prerequisite failed: '
  -- How many of those that have not succeeded in time are named at most.
  local NAMED = 3

  local function varint(number)
    local bytes = {}
    while number >= 128 do
      bytes[#bytes + 1] = string.char(number % 128 + 128)
      number = math.floor(number / 128)
    end
    bytes[#bytes + 1] = string.char(number)
    return table.concat(bytes)
  end

  -- Type is the first field that any program writes into a message.
  local function type_of(message)
    local tag, low, high = string.byte(message, 1, 3)
    if tag ~= 10 or not high then return '' end
    if low < 128 then return string.sub(message, 3, 2 + low) end
    return string.sub(message, 4, 3 + low - 128 + high * 128)
  end

  -- The wait of a task has ended: see WaitEnd.
  local function note(id, message, how, state, reason)
    L.note({ kind = 'wait', id = id, type = type_of(message), ['end'] = how, state = state, reason = reason })
  end

  local function leave_waiting(id)
    call('ZREM', L.waiting, id)
    call('HDEL', L.task_prefix .. id, 'group')
  end

  -- The wait is over: the task becomes pending, or scheduled when its time has not come.
  local function release(id, after, how)
    local later = after.s and after.s > L.seconds
    leave_waiting(id)
    if later then
      L.make_scheduled(id, after.s)
    else
      L.make_pending(id)
    end
    note(id, call('HGET', L.task_prefix .. id, 'msg') or '', how, later and 'scheduled' or 'pending')
  end

  -- Archives a waiting task; the reason is its error. Of a field that a message has twice, the last counts.
  local function archive(id, reason, how)
    local key = L.task_prefix .. id
    local message = call('HGET', key, 'msg') .. '\58' .. varint(#reason) .. reason .. '\88' .. varint(L.seconds)
    leave_waiting(id)
    call('HSET', key, 'msg', message, 'state', 'archived')
    call('ZADD', L.archived, L.now, id)
    note(id, message, how, 'archived', reason)
    L.ended(id, false, reason)
  end

  local function name_of(prerequisite)
    local known, text = pcall(cjson.decode, prerequisite)
    if not known or type(text) ~= 'table' then return '?' end
    if string.sub(text[1], 1, 1) == '~' then return string.sub(text[1], 2) .. ' "' .. text[2] .. '"' end
    return 'task "' .. text[2] .. '" of queue "' .. text[1] .. '"'
  end

  -- The prerequisites that a task still waits for: the first by name, the others by their number, which is in `left`.
  local function missing_of(key, after, left)
    local names = {}
    for n = 0, (tonumber(after.n) or 0) - 1 do
      local edge = try('HGET', key, 'w' .. n)
      local state = type(edge) == 'string' and string.sub(edge, 1, 1)
      if state == '?' or (state == '-' and after.f ~= 'run') then
        names[#names + 1] = name_of(string.sub(edge, 2)) .. (state == '-' and ' (failed)' or '')
      end
      if #names == NAMED then break end
    end
    local more = left - #names
    return table.concat(names, ', ') .. (more > 0 and ' and ' .. more .. ' more' or '')
  end

  -- Of a chain of failures the first is named, not each.
  local function reason_of(of, why)
    if string.sub(why, 1, #FAILED) == FAILED then return why end
    return FAILED .. name_of(of) .. (why ~= '' and ': ' .. why or '')
  end

  -- The end of the prerequisite `body.of` for the edge `body.n` of a task that has waited or waits. Returns false when that is not
  -- stored, or when the one of its id is another.
  local function settle(id, body)
    local key, field = L.task_prefix .. id, 'w' .. body.n
    local stored = try('HMGET', key, 'after', 'left', field, 'state', 'group', 'cancelled')
    local known, after = pcall(cjson.decode, stored[1] or '')
    if not known or type(after) ~= 'table' or after.d ~= body.d then return false end
    local edge, of = stored[3], cjson.encode(body.of)
    if not edge then return end
    local state, rest = string.sub(edge, 1, 1), string.sub(edge, 2)
    if state == '+' then return end
    -- The reason of an earlier failure comes behind the prerequisite.
    if string.sub(rest, 1, #of - 1) ~= string.sub(of, 1, -2) then return end
    local left = tonumber(stored[2])
    if not left then return end
    if body.ok then
      if not (after.f == 'run' and state == '-') then left = left - 1 end
      call('HSET', key, field, '+' .. of, 'left', left)
    else
      if after.f == 'run' and state == '?' then left = left - 1 end
      call('HSET', key, field, '-' .. cjson.encode({ body.of[1], body.of[2], body.why or '' }), 'left', left)
    end
    local waits = stored[4] == 'aggregating' and stored[5] == 'asynq:waiting'
    if waits and left == 0 then
      release(id, after, 'released')
    elseif waits and not body.ok and after.f == 'cancel' then
      call('HSET', key, 'cancelled', L.now)
      archive(id, reason_of(of, body.why or ''), 'cancelled')
    elseif stored[6] and left == 0 and call('ZSCORE', L.archived, id) == stored[6] then
      call('ZREM', L.archived, id)
      call('HDEL', key, 'cancelled')
      release(id, after, 'revived')
    end
  end

  L.on.edge = function(body)
    if settle(body.id, body) ~= false then return end
    local early, name = L.base .. 'early:' .. body.id, cjson.encode({ body.n, body.d, body.of })
    local known = try('HGET', early, name)
    if type(known) == 'string' then
      local ended, before = pcall(cjson.decode, known)
      if ended and before.ok then return end
    end
    if L.guard(call, 'HSET', early, name, cjson.encode(body)) then call('EXPIRE', early, EARLY_SECONDS) end
  end

  -- Lets a task wait that was just created. `after`: { refs = [[place, name], …], onFailure, onTimeout, deadline }.
  function L.await(id, after, process_at)
    local key = L.task_prefix .. id
    local wait = { f = after.onFailure, t = after.onTimeout, d = after.deadline, s = process_at, n = #after.refs }
    call('HSET', key, 'state', 'aggregating', 'group', 'asynq:waiting', 'after', cjson.encode(wait), 'left', #after.refs)
    call('ZADD', L.waiting, after.deadline, id)
    for i = 1, #after.refs do
      local ref, n = after.refs[i], i - 1
      call('HSET', key, 'w' .. n, '?' .. cjson.encode(ref))
      if string.sub(ref[1], 1, 1) == '~' then
        local body = { kind = 'watchmark', key = ref[2], w = { to = L.place, id = id, n = n, d = after.deadline } }
        L.post(ref[1], 'watchmark ' .. cjson.encode(body.w), body)
      end
    end
    local early = L.base .. 'early:' .. id
    local ends = try('HVALS', early)
    for i = 1, #ends do
      local known, body = pcall(cjson.decode, ends[i])
      if known then settle(id, body) end
    end
    if #ends > 0 then call('DEL', early) end
  end

  local function tell_edge(w, of, ok, why)
    local body = { kind = 'edge', id = w.id, n = w.n, d = w.d, of = of, ok = ok, why = why }
    L.post(w.to, 'edge ' .. cjson.encode({ w.id, w.n, w.d, of[2] }), body)
  end

  L.tell.w = function(w, id, ok, why)
    if why == L.UNSEEN and w.lost == 'succeeded' then ok, why = true, nil end
    tell_edge(w, { L.place, id }, ok, why)
  end

  L.tell.m = function(w, id, ok, why)
    -- The end of another task of this key is another parcel: its failure must not take the place of a success.
    L.post(w.to, 'mark ' .. cjson.encode({ w.key, id }), { kind = 'mark', key = w.key, ok = ok, why = why, ttl = w.ttl, task = id })
  end

  -- Registers watcher `w` with a task. Returns whether there is such a task. The end of one that has ended is posted at once. `missing`: how it
  -- counts if nobody can see its end.
  function L.watch(id, w, missing)
    local stored = try('HMGET', L.task_prefix .. id, 'msg', 'state', 'result')
    local message, state = stored[1], stored[2]
    if not message then return false end
    if state == 'completed' then
      L.tell[w.k](w, id, true, nil, stored[3] or '')
      return true
    end
    local unkept = L.retain(id, message)
    if state == 'active' then L.mark_unseen(id, w, unkept, missing) end
    L.add_watcher(id, w)
    if state == 'archived' then L.tell[w.k](w, id, false, 'archived', '') end
    return true
  end

  -- The time of a waiting task is over, by its score.
  function L.time_out(id, score)
    local key = L.task_prefix .. id
    local stored = try('HMGET', key, 'state', 'group', 'after', 'msg', 'left')
    if stored[1] ~= 'aggregating' or stored[2] ~= 'asynq:waiting' then
      call('ZREM', L.waiting, id)
      return
    end
    local known, after = pcall(cjson.decode, stored[3] or '')
    if not known or type(after) ~= 'table' or tonumber(score) ~= after.d or not stored[4] then
      -- It does not wait: somebody ran it, and then Go's forwarder put it back into its group. Or it is damaged: who claims it sees that.
      leave_waiting(id)
      L.make_pending(id)
    elseif after.t == 'run' then
      release(id, after, 'timedOut')
    else
      archive(id, TIMED_OUT .. ': ' .. missing_of(key, after, tonumber(stored[5]) or 0), 'timedOut')
    end
  end

  -- What is remembered for a key, if anything.
  local function mark_of(name)
    local stored = try('GET', L.base .. 'mark:' .. name)
    if type(stored) ~= 'string' then return nil end
    local known, mark = pcall(cjson.decode, stored)
    return known and mark.till > L.seconds and mark or nil
  end

  -- The end of the task of this key; it is remembered for `ttl` seconds. A success is not undone by a later failure.
  L.on.mark = function(body)
    local before = mark_of(body.key)
    if not body.ok and before and before.ok then return end
    local mark = { ok = body.ok, why = body.why, task = body.task, till = L.seconds + body.ttl }
    call('SET', L.base .. 'mark:' .. body.key, cjson.encode(mark), 'EX', body.ttl)
    L.on.tellwaiters({ kind = 'tellwaiters', key = body.key, ok = body.ok, why = body.why })
  end

  L.on.tellwaiters = function(body)
    local mark, of = mark_of(body.key) or body, { L.place, body.key } -- it may be forgotten meanwhile
    local key = 'tellwaiters ' .. (mark.ok and '+' or '-') .. body.key
    L.fan_out(L.base .. 'waiters:' .. body.key, key, body, mark.ok, function(w)
      tell_edge({ to = w[1], id = w[2], n = w[3], d = w[4] }, of, mark.ok, mark.why)
    end)
  end

  -- A task waits for the end of the task of this key. A failure that is remembered answers, too; a success may still follow it.
  L.on.watchmark = function(body)
    local mark = mark_of(body.key)
    if mark then tell_edge(body.w, { L.place, body.key }, mark.ok, mark.why) end
    if mark and mark.ok then return end
    local waiters = L.base .. 'waiters:' .. body.key
    if not L.guard(call, 'HSET', waiters, cjson.encode({ body.w.to, body.w.id, body.w.n, body.w.d }), '') then return end
    local left = math.max(body.w.d - L.seconds + DAY, DAY)
    if call('TTL', waiters) < left then call('EXPIRE', waiters, string.format('%.0f', left)) end
  end
end
