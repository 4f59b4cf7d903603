-- Runs of workflows: part of links.lua.
--
-- `run:<id>` is a hash. `c` is packed, as COUNTS has it: state, the steps that are open, ready and failed, those of the failed that are not
-- optional (bad), when it ended and started, the steps in all; `o`: JSON { name, retention, deadline, reason }. Per step, by its name:
--   s: packed, as STEP has it: state, endedAt, policy, flags, readyAt, how many of the steps before it have not ended, how many have failed;
--      of a step that waits, then L.neighbours, so that d need not be read when it begins
--   d: the names of the steps after it, a NUL behind each; when there are steps before it, a NUL and their names in the same way; then JSON
--      { n position, t type, q queue (left out: this one), y delay, a processAt, u lock, l its TTL, k the watcher for its mark, r how often it
--      was run again }
--   v: its message until it succeeds, then its result (empty: none); e: the error; g: when another place creates its task, or it was run again: how
--      often, a blank, and the nonce for which that was granted, see offers.lua
-- States: w waiting, r ready, a ready again after a failure, s succeeded, S succeeded with a result, f failed, x cancelled.
-- Policies: c cancel, r run, w wait.
-- Times are milliseconds, 0 when there is none. What a script changes is kept in tables, and written once, by R.flush.
do
  local call, try, type = redis.call, redis.pcall, type
  local pack, unpack_bytes = struct.pack, struct.unpack
  local STEP = '<c1dc1BdI4I4'

  local STATES = { w = true, r = true, a = true, s = true, S = true, f = true, x = true }
  -- One that is cancelled may wait again.
  local WAITS = { w = true, x = true }
  local POLICIES = { c = true, r = true, w = true }

  local runs, touched = {}, {}
  local R = L.runs
  local STEP_SIZE = R.STEP_SIZE
  -- Flags of a step: its failure counts as done; its task is one of this place with nothing special.
  local OPTIONAL, PLAIN = 1, R.PLAIN

  -- Who watches the task of a step, unless it is a link. `since`, when the run has started, distinguishes it from an earlier run of the same id,
  -- of which a parcel may still be on the way; `again`, how often the step was run again, distinguishes it from an earlier attempt.
  function R.watcher_of(run, step, again)
    run.since = run.since or string.format('%.0f', run.started)
    return { k = 'r', to = L.place, run = run.id, since = run.since, step = step, again = again }
  end

  local prefixes = {}

  -- The id of the task of a step, without a slash: see taskIdOfStep.
  function R.task_of(run, name)
    local prefix = prefixes[run]
    if not prefix then
      prefix = string.gsub(string.gsub(run, '/', '~', 1), '/', '~~') .. '~'
      prefixes[run] = prefix
    end
    return string.find(name, '/', 1, true) and prefix .. string.gsub(name, '/', '~') or prefix .. name
  end

  -- The step of this field with this text; false when it is none.
  function R.unpack_step(field, text)
    if type(text) ~= 'string' or #text < STEP_SIZE then return false end
    local state, ended_at, policy, flags, ready_at, open, bad = unpack_bytes(STEP, text)
    if not (STATES[state] and POLICIES[policy]) then return false end
    return {
      field = field,
      state = state == 'S' and 's' or state,
      has_result = state == 'S',
      policy = policy,
      flags = flags,
      optional = flags % 2 == OPTIONAL,
      plain = flags >= PLAIN,
      open = open,
      bad = bad,
      ready_at = ready_at,
      ended_at = ended_at,
      names = string.sub(text, STEP_SIZE + 1),
    }
  end

  function R.pack_step(step)
    local state = step.state == 's' and step.has_result and 'S' or step.state
    local packed = pack(STEP, state, step.ended_at, step.policy, step.flags, step.ready_at, step.open, step.bad)
    return WAITS[state] and packed .. step.names or packed
  end

  -- Reads fields of a run, in order; nil when its key is another program's.
  local function read(key, fields)
    if #fields <= 1000 then
      local values = try('HMGET', key, unpack(fields))
      return not values.err and values or nil
    end
    local all = {}
    for from = 1, #fields, 1000 do
      local values = try('HMGET', key, unpack(fields, from, math.min(from + 999, #fields)))
      if values.err then return nil end
      for i = 1, #values do
        all[from + i - 1] = values[i]
      end
    end
    return all
  end

  -- Adds to `fields` those of these steps: their own, and d, their place in the graph, or v, their message.
  local function add_fields(fields, names, also)
    local n = #fields
    for i = 1, #names do
      local name = names[i]
      fields[n + 1] = 's:' .. name
      n = n + 1
      if also then
        fields[n + 1] = also .. ':' .. name
        n = n + 1
      end
    end
  end

  -- One that does not exist becomes false.
  local function add_steps(steps, names, also, fields, values, at)
    for i = 1, #names do
      local step = R.unpack_step(fields[at], values[at])
      at = at + 1
      if also then
        if step then step[also] = values[at] end
        at = at + 1
      end
      steps[names[i]] = step
    end
  end

  -- Reads steps that are not read yet, with `also`: d or v; or without.
  function R.read_steps(run, names, also)
    if #names == 0 then return end
    local fields = { nil, nil }
    add_fields(fields, names, also)
    add_steps(run.steps, names, also, fields, read(run.key, fields), 1)
  end

  -- Reads `what` of steps that have been read without: d or v.
  function R.read_more(run, names, what)
    local wanted, fields = {}, {}
    for i = 1, #names do
      if run.steps[names[i]][what] == nil then
        wanted[#wanted + 1] = names[i]
        fields[#fields + 1] = what .. ':' .. names[i]
      end
    end
    if #wanted == 0 then return end
    local values = read(run.key, fields)
    for i = 1, #wanted do
      run.steps[wanted[i]][what] = values[i]
    end
  end

  local function read_run(id, names)
    local key, fields, steps = L.base .. 'run:' .. id, { 'c', nil, nil }, {}
    add_fields(fields, names, 'd')
    local values = read(key, fields)
    local counts = values and values[1]
    if not counts or #counts ~= R.COUNTS_SIZE then return false end
    add_steps(steps, names, 'd', fields, values, 2)
    return R.with_counts(id, key, counts, steps)
  end

  -- These steps of a run, by name, as Redis has them: also where this script has read the run, and is about to change it.
  function R.peek(id, names)
    local fields, steps = {}, {}
    add_fields(fields, names)
    add_steps(steps, names, nil, fields, #fields > 0 and read(L.base .. 'run:' .. id, fields) or {}, 1)
    return steps
  end

  -- Whether this script has read the run.
  function R.is_read(id)
    return runs[id] ~= nil
  end

  -- The run with these steps and their places in the graph, as far as there are such; nil when there is no run. Of one that was
  -- damaged all steps, and their names, see R.mend.
  function R.load(id, names)
    local run = runs[id]
    if run == nil then
      run = read_run(id, names)
      runs[id] = run
      if run then return run end
      return R.mend(id)
    elseif not run then
      return nil
    end
    local unread, known = {}, {}
    for i = 1, #names do
      local list = run.steps[names[i]] and known or unread
      list[#list + 1] = names[i]
    end
    R.read_steps(run, unread, 'd')
    R.read_more(run, known, 'd')
    return run
  end

  -- The run is to be written by the next R.flush.
  function R.touch(run)
    if run.touched then return end
    run.touched = true
    touched[#touched + 1] = run
  end

  -- The step is to be written with its run.
  function R.change(run, name, step)
    if step.is_dirty then return end
    step.is_dirty = true
    local dirty = run.dirty
    dirty[#dirty + 1] = name
  end

  function R.set(run, field, value)
    local fields = run.fields
    local n = #fields
    fields[n + 1], fields[n + 2] = field, value
  end

  -- What `d` says of the steps after this one, each name with a NUL behind it; of those before it, with a NUL in front; and the JSON.
  local function split(d)
    local after = string.match(d, '^%z') and '' or string.match(d, '^(.-%z)%z') or string.match(d, '^.*%z') or ''
    local before = string.match(d, '^.*%z', #after + 1) or ''
    return after, before, string.sub(d, #after + #before + 1)
  end

  -- The names of the steps after the one with this place in the graph, and what is special about it: nil when that is damaged.
  function R.unpack_graph(d)
    local names, after, _, json = {}, split(d or '')
    for name in string.gmatch(after, '%Z+') do
      names[#names + 1] = name
    end
    local readable, graph = pcall(cjson.decode, json)
    return names, readable and type(graph) == 'table' and graph or nil
  end

  -- `rest`: what comes behind the names of the steps after it.
  function R.pack_graph(names, rest)
    return (#names > 0 and table.concat(names, '\0') .. '\0' or '') .. rest
  end

  -- The names of the steps after this one.
  function R.following(step)
    return (R.unpack_graph(step.d))
  end

  function R.set_following(run, name, names)
    local step = run.steps[name]
    local _, before, json = split(step.d or '')
    step.d = R.pack_graph(names, before .. json)
    step.following, step.names = nil, L.neighbours(step.d)
    R.set(run, 'd:' .. name, step.d)
    R.change(run, name, step)
  end

  -- What is special about the step, see `d`.
  function R.graph(step)
    if not step.graph then
      local _, graph = R.unpack_graph(step.d)
      step.graph = graph or {}
    end
    return step.graph
  end

  -- How often a step was run again; nil: never.
  function R.times_again(step)
    return tonumber(R.graph(step).r)
  end

  function R.note_again(run, name)
    local step = run.steps[name]
    local graph = R.graph(step)
    graph.r = (tonumber(graph.r) or 0) + 1
    local after, before = split(step.d or '')
    step.d = after .. before .. cjson.encode(graph)
    R.set(run, 'd:' .. name, step.d)
  end

  function R.write(run)
    local fields, gone, steps = run.fields, run.gone, run.steps
    local n = #fields
    local dirty = run.dirty
    for i = 1, #dirty do
      local step = steps[dirty[i]]
      step.is_dirty = false
      fields[n + 1] = step.field
      fields[n + 2] = R.pack_step(step)
      n = n + 2
    end
    fields[n + 1] = 'c'
    fields[n + 2] = R.pack_counts(run)
    if n < 1000 then
      call('HSET', run.key, unpack(fields))
    else
      for from = 1, n + 2, 1000 do
        call('HSET', run.key, unpack(fields, from, math.min(from + 999, n + 2)))
      end
    end
    for from = 1, #gone, 1000 do
      call('HDEL', run.key, unpack(gone, from, math.min(from + 999, #gone)))
    end
    run.fields, run.dirty, run.gone, run.touched = {}, {}, {}, false
  end

  -- A step that waits for `open` steps before it. `flags`: its policy, and whether it is optional and plain, each a digit.
  function R.new_step(name, flags, open, graph)
    local optional, plain = string.sub(flags, 2, 2) == '1', string.sub(flags, 3, 3) == '1'
    local bits = (optional and OPTIONAL or 0) + (plain and PLAIN or 0)
    local step = R.unpack_step('s:' .. name, pack(STEP, 'w', 0, string.sub(flags, 1, 1), bits, 0, open, 0))
    step.d, step.names = graph, L.neighbours(graph or '')
    return step
  end

  -- What this script has read of the run is out of date.
  function R.reread(id)
    runs[id] = nil
  end

  -- The run was deleted in this script.
  function R.forget(run)
    runs[run.id], run.deleted, run.changed = false, true, {}
  end

  -- The runs that this script has changed since the last call.
  function R.take_touched()
    local list = touched
    touched = {}
    return list
  end
end
