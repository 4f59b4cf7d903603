-- The counts of runs, and their ends. Part of links.lua, behind new-tasks.lua; runs.lua says what is stored.
do
  local call, type = redis.call, type
  local pack, unpack_bytes = struct.pack, struct.unpack
  local PROBE_SECONDS = 600
  local COUNTS = '<c1I4I4I4I4ddI4'
  local R = L.runs

  -- `run` has the counts by name.
  function R.pack_counts(run)
    return pack(COUNTS, run.state, run.open, run.ready, run.failed, run.bad, run.ended, run.started, run.total)
  end

  -- The run with these counts, and these steps of it.
  function R.with_counts(id, key, counts, steps)
    local state, open, ready, failed, bad, ended, started, total = unpack_bytes(COUNTS, counts)
    -- `changed`: the steps that mean something else now, `dirty`: those to write, both by name; `fields` and `gone`: what else to write
    -- and to delete. A list with room for a few costs less than one that grows.
    return {
      id = id,
      key = key,
      steps = steps,
      state = state,
      open = open,
      ready = ready,
      total = total,
      failed = failed,
      bad = bad,
      started = started,
      ended = ended,
      changed = { nil, nil },
      released = { nil, nil },
      dirty = { nil, nil, nil, nil },
      fields = { nil, nil, nil, nil, nil, nil, nil, nil },
      gone = {},
    }
  end

  local function number(value)
    return type(value) == 'number' and value or nil
  end

  function R.options(run)
    local known, options = pcall(cjson.decode, call('HGET', run.key, 'o') or '{}')
    options = known and type(options) == 'table' and options or {}
    options.retention, options.deadline = number(options.retention), number(options.deadline)
    return options
  end

  -- Until when an ended run is kept.
  function R.kept_until(run, options)
    return math.floor(run.ended / 1000) + (options.retention or 0)
  end

  function R.set_timer(run, options)
    local at = L.seconds + PROBE_SECONDS
    if run.ended > 0 then
      at = R.kept_until(run, options)
    elseif options.deadline and options.deadline < at then
      at = options.deadline
    end
    call('ZADD', L.timers, string.format('%.0f', at), 'run ' .. run.id)
  end

  -- Whether its steps may have tasks that nobody has seen the end of.
  function R.note_running(run)
    local prefix = R.task_of(run.id, '')
    if run.state == 's' and run.failed == 0 then
      call('HDEL', L.running, prefix)
    else
      call('HSET', L.running, prefix, run.id)
    end
  end

  function R.note_end(run, options)
    L.note_run(run.id, cjson.encode({ name = options.name or '' }), R.pack_counts(run))
  end

  -- Finds out whether the run has ended, or runs again.
  function R.settle(run)
    local before = run.state
    if before == 'c' then return end
    run.state = run.ready > 0 and 'r' or (run.bad > 0 or run.open > 0) and 'f' or 's'
    if run.state == before then return end
    run.ended = run.state == 'r' and 0 or L.millis
    local options = R.options(run)
    -- Whoever revives a run after its deadline wants it to end all the same.
    if before == 'f' and options.deadline and options.deadline <= L.seconds then
      options.deadline = nil
      R.set(run, 'o', cjson.encode(options))
    end
    R.set_timer(run, options)
    R.note_running(run)
    if run.state ~= 'r' then R.note_end(run, options) end
  end
end
