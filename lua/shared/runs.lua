-- Runs of workflows: part of links.lua.
--
-- `run:<id>` is a hash. `c`: "state total open ready failed bad startedAt endedAt", where bad counts the failed steps that are not optional;
-- `o`: JSON { name, retention, deadline, reason }. Per step, by its name:
--   s: "<state><policy><optional> open bad readyAt endedAt": the counts are of the steps before it that have not ended, and that have failed
--   d: JSON { n position, t type, q queue (left out: this one), o names of the steps after it, y delay, a processAt, u lock, l its TTL }
--   m: the message until the task is created; r: the result; e: the error
-- States: w waiting, r ready, a ready again after a failure, s succeeded, f failed, x cancelled. Policies: c cancel, r run, w wait.
-- Times are milliseconds, '-' when there is none. What a script changes is kept in tables, and written once, by `flush`.
do
  local call, try, type = redis.call, redis.pcall, type
  local PROBE_SECONDS = 600
  local TASK_FIELDS = 500

  local runs, touched = {}, {}
  local R = {}
  L.runs = R
  R.RETRY_PROBE_SECONDS = 60

  local function millis()
    return tonumber(string.sub(L.now_nanos, 1, -7))
  end

  local function number_of(text)
    return text ~= '-' and tonumber(text) or nil
  end

  local function text_of(time)
    return time and string.format('%.0f', time) or '-'
  end

  local function read_step(text)
    local state, policy, optional, open, bad, ready_at, ended_at = string.match(text, '^(.)(.)(.) (%d+) (%d+) (%S+) (%S+)$')
    return state and {
      state = state,
      policy = policy,
      optional = optional == '1',
      open = tonumber(open),
      bad = tonumber(bad),
      ready_at = ready_at,
      ended_at = ended_at,
    }
  end

  local function write_step(step)
    local optional = step.optional and '1' or '0'
    return step.state .. step.policy .. optional .. ' ' .. step.open .. ' ' .. step.bad .. ' ' .. step.ready_at .. ' ' .. step.ended_at
  end

  -- The run with these steps, as far as there are such; nil when there is no run.
  function R.load(id, names)
    local run = runs[id]
    if run == nil then
      run = { id = id, key = L.base .. 'run:' .. id, steps = {}, changed = {}, released = {}, dirty = {}, fields = {}, gone = {} }
    end
    if not run then return nil end
    local wanted, fields = {}, {}
    if not run.state then fields[1] = 'c' end
    local first = #fields
    for i = 1, #names do
      if run.steps[names[i]] == nil then
        wanted[#wanted + 1] = names[i]
        fields[#fields + 1] = 's:' .. names[i]
        fields[#fields + 1] = 'd:' .. names[i]
      end
    end
    for from = 1, #fields, 1001 do
      local to = math.min(from + 1000, #fields)
      local values = try('HMGET', run.key, unpack(fields, from, to))
      if values.err then return nil end -- another program's key
      for i = from, to do
        fields[i] = values[i - from + 1]
      end
    end
    if not run.state then
      local state, total, open, ready, failed, bad, started, ended = string.match(fields[1] or '', '^(.) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+)$')
      if not state then
        runs[id] = false
        return nil
      end
      run.state, run.total, run.open, run.ready = state, tonumber(total), tonumber(open), tonumber(ready)
      run.failed, run.bad, run.started, run.ended = tonumber(failed), tonumber(bad), started, ended
      runs[id] = run
    end
    for i = 1, #wanted do
      local s, d = fields[first + 2 * i - 1], fields[first + 2 * i]
      local step = false
      if s and d then
        step = read_step(s) or false
        if step then step.d = d end
      end
      run.steps[wanted[i]] = step
    end
    return run
  end

  local function touch(run)
    if not run.touched then
      run.touched = true
      touched[#touched + 1] = run
    end
  end

  function R.set(run, field, value)
    touch(run)
    run.fields[#run.fields + 1] = field
    run.fields[#run.fields + 1] = value
  end

  function R.remove(run, field)
    touch(run)
    run.gone[#run.gone + 1] = field
  end

  function R.change(run, name)
    touch(run)
    run.dirty[name] = true
  end

  function R.graph(step)
    if not step.graph then
      local known, graph = pcall(cjson.decode, step.d)
      step.graph = known and type(graph) == 'table' and graph or {}
    end
    return step.graph
  end

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
        R.load(run.id, following)
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
    if not ok and (state == 'f' or (state == 'a' and step.ended_at == text_of(at))) then return end
    local before = R.outcome(step)
    if ready then
      run.open, run.ready = run.open - 1, run.ready - 1
    else
      count_failed(run, step, -1)
    end
    step.state = ok and 's' or (run.state == 'c' and 'x' or 'f')
    if step.state == 'f' then count_failed(run, step, 1) end
    step.ended_at = text_of(at)
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
    local graph, now = R.graph(step), millis()
    local at = graph.a or 0
    if graph.y and graph.y > 0 then at = math.max(at, math.ceil((now + graph.y) / 1000)) end
    step.ready_at = text_of(now)
    R.change(run, name)
    local task = { id = run.id .. '~' .. name, uniqueKey = graph.u, uniqueTtl = graph.l, watchers = { watcher_of(run, name), graph.k } }
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

  local function begin_released(run)
    while #run.released > 0 do
      local names, fields = run.released, {}
      run.released = {}
      for from = 1, #names, TASK_FIELDS do
        local to = math.min(from + TASK_FIELDS - 1, #names)
        for i = from, to do
          fields[i - from + 1] = 'm:' .. names[i]
        end
        local messages = call('HMGET', run.key, unpack(fields, 1, to - from + 1))
        for i = from, to do
          local message = messages[i - from + 1]
          if message then
            R.begin(run, names[i], message)
          else
            R.end_step(run, names[i], false, 'its message is lost', '', millis())
          end
        end
      end
    end
  end

  function R.options(run)
    local known, options = pcall(cjson.decode, call('HGET', run.key, 'o') or '{}')
    return known and options or {}
  end

  function R.set_timer(run, options, probe_after)
    local at = L.seconds + (probe_after or PROBE_SECONDS)
    if run.ended ~= '-' then
      at = math.floor(number_of(run.ended) / 1000) + (options.retention or 0)
    elseif options.deadline and options.deadline < at then
      at = options.deadline
    end
    call('ZADD', L.timers, string.format('%.0f', at), 'run ' .. run.id)
  end

  -- Finds out whether the run has ended, or runs again.
  local function settle(run)
    local before = run.state
    if before == 'c' then return end
    run.state = run.ready > 0 and 'r' or (run.bad > 0 or run.open > 0) and 'f' or 's'
    if run.state == before then return end
    run.ended = run.state == 'r' and '-' or text_of(millis())
    local options = R.options(run)
    -- Whoever revives a run after its deadline wants it to end all the same.
    if before == 'f' and options.deadline and options.deadline <= L.seconds then
      options.deadline = nil
      R.set(run, 'o', cjson.encode(options))
    end
    R.set_timer(run, options)
  end

  function R.write(run)
    local fields = run.fields
    local n = #fields
    for name in pairs(run.dirty) do
      fields[n + 1], fields[n + 2] = 's:' .. name, write_step(run.steps[name])
      n = n + 2
    end
    fields[n + 1] = 'c'
    fields[n + 2] = table.concat({ run.state, run.total, run.open, run.ready, run.failed, run.bad, run.started, run.ended }, ' ')
    for from = 1, n + 2, 1000 do
      call('HSET', run.key, unpack(fields, from, math.min(from + 999, n + 2)))
    end
    for from = 1, #run.gone, 1000 do
      call('HDEL', run.key, unpack(run.gone, from, math.min(from + 999, #run.gone)))
    end
    run.fields, run.dirty, run.gone, run.touched = {}, {}, {}, nil
  end

  -- A step that waits for `open` steps before it. `flags`: its policy and whether it is optional.
  function R.new_step(flags, open, graph)
    local step = read_step('w' .. flags .. ' ' .. open .. ' 0 - -')
    step.d = graph
    return step
  end

  -- Begins the steps that are ready, and writes what has changed.
  function R.flush()
    local list = touched
    touched = {}
    for i = 1, #list do
      local run = list[i]
      if not run.deleted then
        begin_released(run)
        settle(run)
        R.write(run)
      end
    end
    touched = {}
  end
  -- The run was deleted in this script.
  function R.forget(run)
    runs[run.id], run.deleted = false, true
  end

  L.afterwards[#L.afterwards + 1] = R.flush

  L.on.step = function(body, data)
    local run = R.load(body.run, { body.step })
    if not run then return end
    local step = run.steps[body.step]
    if step and not body.refused then
      local queue = R.graph(step).q
      -- The parcel that asked for its task has arrived, whether or not anybody has noticed.
      if queue then call('HDEL', L.outbox, queue .. ' release ' .. body.run .. '~' .. body.step) end
    end
    if body.refused and step and step.state == 'r' then R.set(run, 'm:' .. body.step, data) end
    R.end_step(run, body.step, body.ok, body.why, body.refused and '' or data, body.at)
  end
end
