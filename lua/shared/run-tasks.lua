-- Runs of workflows and the tasks of their steps: part of links.lua, behind runs.lua.
do
  local call, try, type = redis.call, redis.pcall, type
  local R = L.runs
  local DELETED = R.DELETED
  -- How many fields of runs one pass of the keeper looks at, per thing that it looks at otherwise.
  local LOOKED_AT = 6
  local UNCLAIMED = { pending = true, scheduled = true, retry = true }

  local function key_of(w)
    return 'step ' .. w.run .. ' ' .. w.step .. ' ' .. (w.since or '') .. (w.again and ' ' .. w.again or '')
  end

  local function tell_run(w, ok, why, data, refused)
    local body = { kind = 'step', run = w.run, since = w.since, step = w.step, ok = ok, why = why, at = L.millis, refused = refused }
    body.again = w.again
    L.post(w.to, key_of(w), body, data)
  end

  L.tell.r = function(w, _, ok, why, result)
    tell_run(w, ok, why, result)
  end

  -- The watchers of a task, where that of the run of `w` is among them (nil when it is none of them), and whether they were notified.
  local function watchers_for(id, w)
    L.has_runs = true -- `running` may no longer have the run
    local list, told = L.read_watchers(id)
    if not list then return {}, nil end
    for i = 1, #list do
      local other = list[i]
      local same = other.k == 'r' and other.run == w.run and other.to == w.to
      if same and (not other.since or other.since == w.since) then return list, i, told end
    end
    return list, nil, told
  end

  -- Whether the end of this step is on the way.
  local function is_told(w)
    return call('HEXISTS', L.outbox, w.to .. ' ' .. key_of(w)) == 1
  end

  -- Whether the watcher `w` of a step is of a later attempt than `other`.
  local function is_later(w, other)
    return (w.again or 0) > (other.again or 0)
  end

  -- Creates the task of a step; the run is notified when there cannot be one. A task that notifies the run already is this one. `again`:
  -- the step has failed; its task runs again if it is there.
  L.granted.step = function(what, message)
    local task, w = what.task, what.task.watchers[1]
    local list, at = watchers_for(task.id, w)
    if what.again then
      local state = try('HGET', L.task_prefix .. task.id, 'state')
      local is_new = not at or is_later(w, list[at]) -- it may have been run, and have failed, since
      if state == 'archived' and is_new and call('ZREM', L.archived, task.id) == 1 then L.make_pending(task.id) end
      if state or message == '' then return L.on.probe({ id = task.id, w = w }) end
    elseif at then
      return
    end
    task.message = message
    local status = L.create(task)
    if status ~= 'enqueued' then tell_run(w, false, R.REFUSED[status], message, true) end
  end

  -- Makes sure that the task of a step notifies its run of its end, and answers at once when it has ended. What is on the way already answers.
  L.on.probe = function(body)
    local w = body.w
    if is_told(w) then return end
    local stored = try('HMGET', L.task_prefix .. body.id, 'msg', 'state', 'result')
    if not stored[1] then
      L.ended(body.id, false, DELETED, nil, true) -- all who watch it
      return tell_run(w, false, DELETED)
    end
    if stored[2] == 'completed' then return tell_run(w, true, nil, stored[3]) end
    local list, at, told = watchers_for(body.id, w)
    local archived = stored[2] == 'archived'
    local is_new = not at or is_later(w, list[at])
    if is_new then list[at or #list + 1] = w end
    if is_new or (told and not archived) then L.write_watchers(body.id, list, archived) end
    if archived then tell_run(w, false, 'archived') end
  end

  local function delete_task(id, state, set)
    local key = L.task_prefix .. id
    local lock = try('HGET', key, 'unique_key')
    if type(lock) == 'string' and string.sub(lock, 1, #L.base) == L.base and try('GET', lock) == id then call('DEL', lock) end
    if state == 'pending' then
      L.push_pending()
      call('LREM', L.pending, '-1', id)
    else
      try('ZREM', set, id)
      if state == 'retry' then try('ZREM', L.base .. 'held', id) end
    end
    L.ended(id, false, DELETED, nil, true)
    call('DEL', key)
  end

  -- A run needs the task of a step no more: it is deleted if nobody has claimed it (`unclaimed`) and its steps are not being undone, or if it
  -- is archived (`archived`). After the latter it does not notify the run.
  L.on.drop = function(body)
    local id = body.id
    local list, at, told = watchers_for(id, body.w)
    L.forget_offer(body.home, 'step', body.offered)
    if not at then
      -- It was never created: the parcel that asks for it was taken back.
      local key = L.task_prefix .. id
      if body.what == 'unclaimed' and call('EXISTS', key) == 0 and not is_told(body.w) then tell_run(body.w, false, DELETED) end
      return
    end
    if body.what ~= 'unclaimed' then
      table.remove(list, at)
      L.write_watchers(id, list, told)
    end
    local stored = try('HMGET', L.task_prefix .. id, 'state', 'did:!undo')
    local state, undo = stored[1], stored[2]
    -- Its steps are being undone, as it has failed for good: that goes on.
    local undoes = undo and not string.find(undo, '"over":true', 1, true)
    if body.what == 'unclaimed' and undoes then return end
    if body.what == 'unclaimed' and UNCLAIMED[state] or body.what == 'archived' and state == 'archived' then
      delete_task(id, state, L.base .. state)
    end
  end

  local function is_ready(step)
    return step.state == 'r' or step.state == 'a'
  end

  -- All steps of a run, by their names.
  function R.load_all(id)
    local names, fields = {}, try('HKEYS', L.base .. 'run:' .. id)
    if fields.err then return nil end -- another program's key
    for _, field in ipairs(fields) do
      if string.sub(field, 1, 2) == 's:' then names[#names + 1] = string.sub(field, 3) end
    end
    local run, mended = R.load(id, names)
    if not run or mended then return run, mended end
    local whole = #names == run.total
    for i = 1, #names do
      whole = whole and run.steps[names[i]]
    end
    if not whole then return R.mend(id) end
    return run, names
  end

  -- Returns queue and id of the tasks that may be under way.
  function R.cancel(run, names, reason)
    local options = R.options(run)
    R.touch(run)
    options.reason = reason
    R.set(run, 'o', cjson.encode(options))
    run.state, run.ended = 'c', L.millis
    local begun = {}
    for _, name in ipairs(names) do
      local step = run.steps[name]
      if is_ready(step) and step.ready_at > 0 then
        begun[#begun + 1] = name
      elseif step.state == 'w' or step.state == 'r' then
        if step.state == 'r' then run.ready = run.ready - 1 end
        step.state = 'x'
        run.open = run.open - 1
        R.change(run, name, step)
        table.insert(run.gone, 'v:' .. name)
      end
    end
    R.post_to_tasks(run, begun, 'unclaimed')
    R.set_timer(run, options)
    R.note_end(run, options)
    L.work()
    local left = {}
    for _, name in ipairs(begun) do
      local step = run.steps[name]
      if is_ready(step) then
        left[#left + 1] = R.queue_of(step) or L.place
        left[#left + 1] = R.task_of(run.id, name)
      end
    end
    return left
  end

  -- Runs the failed steps again. Returns how many there are.
  function R.retry(run, names)
    local failed = {}
    if run.state == 's' or run.state == 'c' then return 0 end
    for _, name in ipairs(names) do
      if run.steps[name].state == 'f' then failed[#failed + 1] = name end
    end
    local count = #failed
    if count == 0 then return 0 end
    R.begin_again(run, failed)
    R.settle(run)
    return count
  end

  -- The archived tasks of its steps are deleted, too: they would refuse those of the next run with its id.
  function R.delete(run, names)
    local begun = {}
    for _, name in ipairs(names) do
      local step = run.steps[name]
      if step.state ~= 's' and step.ready_at > 0 then begun[#begun + 1] = name end
    end
    R.post_to_tasks(run, begun, 'archived')
    R.forget(run)
    call('UNLINK', run.key)
    call('HDEL', L.running, R.task_of(run.id, ''))
    call('ZREM', L.base .. 'runs', run.id)
    call('ZREM', L.timers, 'run ' .. run.id)
  end

  local function is_begun(step)
    return is_ready(step) and step.plain and step.ready_at > 0
  end

  -- The step of a run of this place whose task has this id, by the id; nil when there is none.
  local function step_of(id)
    local stop = string.find(id, '~', 1, true)
    while stop do
      local prefix = string.sub(id, 1, stop)
      local run_id = try('HGET', L.running, prefix)
      if type(run_id) == 'string' then
        local name = string.gsub(string.sub(id, stop + 1), '~', '/')
        local run = R.load(run_id, { name })
        if run and run.steps[name] then return run, name end
      end
      stop = string.find(id, '~', stop + 1, true)
    end
  end

  -- The task of this id is gone, and nobody has noticed its end. Returns whether a run waits for it.
  function R.notice_gone(id)
    local run, name = step_of(id)
    if not run or not is_begun(run.steps[name]) then return false end
    R.post_end(run.id, name, false, DELETED)
    return true
  end

  -- Finds tasks of steps that are gone, of some runs, in random order. Returns how many.
  L.audits[#L.audits + 1] = function(limit)
    local settled, budget = 0, LOOKED_AT * limit
    local runs = L.has_runs and call('HRANDFIELD', L.running, limit, 'WITHVALUES') or {}
    for i = 2, #runs, 2 do
      if budget <= 0 then break end
      local id = runs[i]
      local fields, names = try('HRANDFIELD', L.base .. 'run:' .. id, budget), {}
      for j = 1, fields.err and 0 or #fields do
        local name = string.match(fields[j], '^s:(.*)$')
        if name then names[#names + 1] = name end
      end
      budget = budget - #names - 1
      local steps, keys, begun = R.peek(id, names), {}, {}
      for j = 1, #names do
        local step = steps[names[j]]
        if step and is_begun(step) then
          keys[#keys + 1], begun[#begun + 1] = L.task_prefix .. R.task_of(id, names[j]), names[j]
        end
      end
      for from = 1, #keys, 1000 do
        local to = math.min(from + 999, #keys)
        if call('EXISTS', unpack(keys, from, to)) <= to - from then
          for j = from, to do
            if call('EXISTS', keys[j]) == 0 then
              R.post_end(id, begun[j], false, DELETED)
              settled = settled + 1
            end
          end
        end
      end
    end
    return settled
  end

  L.due.run = function(id)
    local run, names = R.load_all(id)
    if not run then
      call('ZREM', L.base .. 'runs', id)
      return
    end
    local options = R.options(run)
    R.note_running(run)
    if run.ended > 0 then
      if R.kept_until(run, options) <= L.seconds then return R.delete(run, names) end
      return R.set_timer(run, options)
    end
    if options.deadline and options.deadline <= L.seconds then
      R.cancel(run, names, 'it did not end in time')
      return
    end
    local begun, waiting = {}, {}
    for _, name in ipairs(names) do
      local step = run.steps[name]
      local list = is_ready(step) and (step.ready_at > 0 and begun or waiting) or {}
      list[#list + 1] = name
    end
    R.post_to_tasks(run, begun, 'probe')
    -- Those whose turn to begin somebody has lost.
    if #waiting > 0 then R.begin_first(run, waiting) end
    R.set_timer(run, options)
  end
end
