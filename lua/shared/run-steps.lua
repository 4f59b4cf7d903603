-- Runs of workflows and their steps: part of links.lua, behind runs.lua. What a step is follows from those before it; a step that ends
-- changes its own fields, and the counts of those after it.
do
  local call = redis.call
  local R = L.runs
  -- So many messages are read at once; the messages of so few steps are read before it is known that they begin.
  local MESSAGES, FEW = 500, 2

  -- What a step means to those after it: a failed one that is optional is done.
  function R.outcome(step)
    local state = step.state
    if state == 's' then return 'ok' end
    if state == 'x' then return 'bad' end
    if state == 'f' or state == 'a' then return step.optional and 'ok' or 'bad' end
    return 'open'
  end

  -- The state of a step that has no task, by those before it.
  local function state_by_counts(step)
    if step.policy == 'c' and step.bad > 0 then return 'x' end
    return step.open == 0 and (step.bad == 0 or step.policy == 'r') and 'r' or 'w'
  end

  function R.decide(run, name)
    local step = run.steps[name]
    if step.state ~= 'w' and step.state ~= 'x' then return end
    local state, before = state_by_counts(step), R.outcome(step)
    if state == step.state then return end
    if state == 'x' then run.open = run.open - 1 end
    if step.state == 'x' then run.open = run.open + 1 end
    step.state = state
    R.change(run, name)
    if state == 'r' then
      run.ready = run.ready + 1
      run.released[#run.released + 1] = name
    end
    if R.outcome(step) ~= before then run.changed[#run.changed + 1] = { name, before } end
  end

  function R.tell(run, name, before, after)
    if before == after then return end
    local step = run.steps[name]
    if before ~= 'ok' then step[before] = step[before] - 1 end
    if after ~= 'ok' then step[after] = step[after] + 1 end
    R.change(run, name)
    R.decide(run, name)
  end

  -- Tells those after changed steps what these mean now, and so on.
  function R.propagate(run)
    local at = 1
    while run.changed[at] do
      local name, before = unpack(run.changed[at])
      at = at + 1
      local step = run.steps[name]
      local after = R.outcome(step)
      local following = after ~= before and R.graph(step).o
      if following then
        R.load(run.id, following, #following <= FEW)
        for i = 1, #following do
          if run.steps[following[i]] then R.tell(run, following[i], before, after) end
        end
      end
    end
    run.changed = {}
  end

  local function count_failed(run, step, by)
    run.failed = run.failed + by
    if not step.optional then run.bad = run.bad + by end
  end

  -- The task of a step has ended at `at`: the same end twice is one.
  function R.end_step(run, name, ok, why, result, at)
    local step = run.steps[name]
    local state = step and step.state
    local ready = state == 'r' or state == 'a'
    if not ready and state ~= 'f' then return end
    if not ok and (state == 'f' or (state == 'a' and step.ended_at == R.text_of(at))) then return end
    local before = R.outcome(step)
    if ready then
      run.open, run.ready = run.open - 1, run.ready - 1
    else
      count_failed(run, step, -1)
    end
    step.state = ok and 's' or (run.state == 'c' and 'x' or 'f')
    if step.state == 'f' then count_failed(run, step, 1) end
    step.ended_at = R.text_of(at)
    R.change(run, name)
    if ok then
      if state ~= 'r' then R.remove(run, 'e:' .. name) end
      if result and result ~= '' then R.set(run, 'r:' .. name, result) end
    else
      R.set(run, 'e:' .. name, why or '')
    end
    if run.state == 'c' then return end
    run.changed[#run.changed + 1] = { name, before }
    R.propagate(run)
  end

  -- A failed step is ready again. Until it succeeds, it means to those after it what it meant.
  function R.again(run, name)
    local step = run.steps[name]
    count_failed(run, step, -1)
    step.state, run.open, run.ready = 'a', run.open + 1, run.ready + 1
    R.change(run, name)
  end

  local function watcher_of(run, name)
    return { k = 'r', to = L.place, run = run.id, step = name }
  end

  -- Lets a step begin: its task is created here, or a parcel asks its queue for it.
  function R.begin(run, name, message)
    local step = run.steps[name]
    local graph, now = R.graph(step), R.millis()
    local at = graph.a or 0
    if graph.y and graph.y > 0 then at = math.max(at, math.ceil((now + graph.y) / 1000)) end
    step.ready_at = R.text_of(now)
    R.change(run, name)
    local task = { id = R.task_of(run.id, name), uniqueKey = graph.u, uniqueTtl = graph.l, watchers = { watcher_of(run, name), graph.k } }
    if at * 1000 > now then task.processAt = at end
    if graph.q then
      R.remove(run, 'm:' .. name)
      L.post(graph.q, 'release ' .. task.id, { kind = 'release', task = task }, message)
      return
    end
    task.message = message
    local status = L.create(task)
    if status == 'enqueued' then
      R.remove(run, 'm:' .. name)
    else
      R.set(run, 'm:' .. name, message)
      R.end_step(run, name, false, R.REFUSED[status], '', now)
    end
  end

  R.REFUSED = { duplicate = 'its unique lock is held by another task', conflict = 'there is another task with its id' }

  local function begin_one(run, name, message)
    if message then
      R.begin(run, name, message)
    else
      R.end_step(run, name, false, 'its message is lost', '', R.millis())
    end
  end

  local function begin_released(run)
    while #run.released > 0 do
      local names, unread = run.released, {}
      run.released = {}
      for i = 1, #names do
        local name = names[i]
        if run.steps[name].message then
          R.begin(run, name, run.steps[name].message)
        else
          unread[#unread + 1] = name
        end
      end
      for from = 1, #unread, MESSAGES do
        local to, fields = math.min(from + MESSAGES - 1, #unread), {}
        for i = from, to do
          fields[i - from + 1] = 'm:' .. unread[i]
        end
        local messages = call('HMGET', run.key, unpack(fields))
        for i = from, to do
          begin_one(run, unread[i], messages[i - from + 1])
        end
      end
    end
  end

  -- Finds out whether the run has ended, or runs again.
  local function settle(run)
    local before = run.state
    if before == 'c' then return end
    run.state = run.ready > 0 and 'r' or (run.bad > 0 or run.open > 0) and 'f' or 's'
    if run.state == before then return end
    run.ended = run.state == 'r' and '-' or R.text_of(R.millis())
    local options = R.options(run)
    -- Whoever revives a run after its deadline wants it to end all the same.
    if before == 'f' and options.deadline and options.deadline <= L.seconds then
      options.deadline = nil
      R.set(run, 'o', cjson.encode(options))
    end
    R.set_timer(run, options)
    if run.state ~= 'r' then R.note_end(run, options) end
  end

  -- Begins the steps that are ready, and writes what has changed.
  function R.flush()
    local list = R.take_touched()
    for i = 1, #list do
      local run = list[i]
      if not run.deleted then
        begin_released(run)
        settle(run)
        R.write(run)
        -- Nothing can proceed, and nothing has failed.
        if run.state == 'f' and run.open > 0 and run.bad == 0 then R.mend(run.id) end
      end
    end
  end
  L.afterwards[#L.afterwards + 1] = R.flush

  L.on.step = function(body, data)
    local run = R.load(body.run, { body.step })
    if not run then return end
    local step = run.steps[body.step]
    if step and not body.refused then
      local queue = R.graph(step).q
      -- The parcel that asked for its task has arrived, whether or not anybody has noticed.
      if queue then call('HDEL', L.outbox, queue .. ' release ' .. R.task_of(body.run, body.step)) end
    end
    if body.refused and step and (step.state == 'r' or step.state == 'a') then R.set(run, 'm:' .. body.step, data) end
    R.end_step(run, body.step, body.ok, body.why, body.refused and '' or data, body.at)
  end
end
