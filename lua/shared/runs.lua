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

  local runs, touched = {}, {}
  local R = {}
  L.runs = R
  R.RETRY_PROBE_SECONDS = 60

  local prefixes = {}

  -- The id of the task of a step, without a slash: see taskIdOfStep.
  function R.task_of(run, name)
    local prefix = prefixes[run]
    if not prefix then
      prefix = string.gsub(run, '/', '~', 1) .. '~'
      prefixes[run] = prefix
    end
    return string.find(name, '/', 1, true) and prefix .. string.gsub(name, '/', '~') or prefix .. name
  end

  function R.millis()
    return tonumber(string.sub(L.now_nanos, 1, -7))
  end

  local function number_of(text)
    return text ~= '-' and tonumber(text) or nil
  end

  function R.text_of(time)
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

  -- The run with these steps, as far as there are such, with their messages when wanted; nil when there is no run.
  function R.load(id, names, with_messages)
    local run = runs[id]
    if run == nil then
      run = { id = id, key = L.base .. 'run:' .. id, steps = {}, changed = {}, released = {}, dirty = {}, fields = {}, gone = {} }
    end
    if not run then return nil end
    local wanted, fields = {}, {}
    if not run.state then fields[1] = 'c' end
    local first, n, each = #fields, #fields, with_messages and 3 or 2
    for i = 1, #names do
      local name = names[i]
      if run.steps[name] == nil then
        wanted[#wanted + 1] = name
        fields[n + 1], fields[n + 2] = 's:' .. name, 'd:' .. name
        if with_messages then fields[n + 3] = 'm:' .. name end
        n = n + each
      end
    end
    for from = 1, n, 1000 do
      local to = math.min(from + 999, n)
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
        return R.mend(id)
      end
      run.state, run.total, run.open, run.ready = state, tonumber(total), tonumber(open), tonumber(ready)
      run.failed, run.bad, run.started, run.ended = tonumber(failed), tonumber(bad), started, ended
      runs[id] = run
    end
    for i = 1, #wanted do
      local at = first + each * (i - 1)
      local s, d = fields[at + 1], fields[at + 2]
      local step = s and d and read_step(s) or false
      if step then step.d, step.message = d, with_messages and fields[at + 3] end
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
  R.touch = touch

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

  function R.options(run)
    local known, options = pcall(cjson.decode, call('HGET', run.key, 'o') or '{}')
    return known and type(options) == 'table' and options or {}
  end

  -- Until when an ended run is kept.
  function R.kept_until(run, options)
    return math.floor(number_of(run.ended) / 1000) + (options.retention or 0)
  end

  function R.set_timer(run, options, probe_after)
    local at = L.seconds + (probe_after or PROBE_SECONDS)
    if run.ended ~= '-' then
      at = R.kept_until(run, options)
    elseif options.deadline and options.deadline < at then
      at = options.deadline
    end
    call('ZADD', L.timers, string.format('%.0f', at), 'run ' .. run.id)
  end

  local STATES = { s = 'succeeded', f = 'failed', c = 'cancelled' }

  function R.note_end(run, options)
    local news = { kind = 'run', id = run.id, name = options.name or '', state = STATES[run.state] }
    news.steps, news.failed, news.startedAt, news.endedAt = run.total, run.failed, number_of(run.started) or 0, number_of(run.ended)
    L.note(news)
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

  -- What this script has read of the run is out of date.
  function R.reread(id)
    runs[id] = nil
  end

  -- The run was deleted in this script.
  function R.forget(run)
    runs[run.id], run.deleted = false, true
  end

  -- The runs that this script has changed since the last call.
  function R.take_touched()
    local list = touched
    touched = {}
    return list
  end
end
