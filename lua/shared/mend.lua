-- Runs and batches that somebody has damaged: part of links.lua, behind all others.
do
  local call, try = redis.call, redis.pcall
  local R = L.runs
  local mended = {} -- by this script

  -- Steps in the order of `names`, and by name. One that cannot be read has failed.
  local function read_steps(key, names)
    local steps, by_name = {}, {}
    for i = 1, #names do
      local name = names[i]
      local stored = call('HMGET', key, 's:' .. name, 'd:' .. name)
      local step = R.unpack_step('s:' .. name, stored[1])
      local after, graph = R.unpack_graph(stored[2])
      if not graph then
        step = false
        call('HSET', key, 'd:' .. name, R.pack_graph(after, cjson.encode({ n = i, t = '' })))
      end
      if not step then
        step = R.new_step(name, 'c00', 0)
        step.state, step.ended_at = 'f', L.millis
        call('HSET', key, 'e:' .. name, R.DAMAGED)
      end
      step.after, step.open, step.bad = after, 0, 0
      steps[i], by_name[name] = step, step
    end
    return steps, by_name
  end

  -- Makes a run whole: what cannot be read has failed, and all that is counted is counted again. Returns it with all its steps; nil
  -- when there is none.
  function R.mend(id)
    if mended[id] then return nil end
    mended[id] = true
    R.flush()
    local key, now, names = L.base .. 'run:' .. id, L.millis, {}
    local fields = try('HKEYS', key)
    if fields.err or #fields == 0 then return nil end
    local seen = {}
    for i = 1, #fields do
      local kind, name = string.match(fields[i], '^([sd]):(.*)$')
      if kind and not seen[name] then
        seen[name] = true
        names[#names + 1] = name
      end
    end
    local steps, by_name = read_steps(key, names)
    local count = { w = 0, r = 0, a = 0, s = 0, f = 0, x = 0, bad = 0 }
    for i = 1, #steps do
      local step = steps[i]
      local state, counts = step.state, not step.optional
      count[state] = count[state] + 1
      if state == 'f' and counts then count.bad = count.bad + 1 end
      local means = (state == 'x' or (state == 'f' or state == 'a') and counts) and 'bad' or (state == 'w' or state == 'r') and 'open'
      for _, name in ipairs(means and step.after or {}) do
        local following = by_name[name]
        if following then following[means] = following[means] + 1 end
      end
    end
    for i = 1, #steps do
      local step = steps[i]
      call('HSET', key, step.field, R.pack_step(step))
    end
    local ready, started = count.r + count.a, tonumber(call('ZSCORE', L.base .. 'runs', id) or now)
    local counts = { state = 'r', open = count.w + ready, ready = ready, total = #names, failed = count.f, bad = count.bad, started = started, ended = 0 }
    call('HSET', key, 'c', R.pack_counts(counts))
    call('ZADD', L.base .. 'runs', 'NX', now, id)
    L.damage = 'run "' .. id .. '" was damaged, and its steps are counted again'
    R.reread(id)
    local run = R.load(id, names)
    local options = R.options(run)
    R.touch(run)
    R.note_running(run)
    if options.reason then
      run.state, run.ended = 'c', now
      R.set_timer(run, options)
    else
      for i = 1, #names do
        R.decide(run, names[i])
      end
      R.propagate(run)
    end
    R.flush()
    if run.state == 'r' then R.set_timer(run, options) end
    return run, names
  end

  local CHUNK_SECONDS = 60

  -- Counts again what a batch counts, in case somebody has damaged it, and sees to it that its chunks are asked for. Returns its queues.
  function L.count_again(id)
    local key, queues, known = L.base .. 'batch:' .. id, {}, {}
    local total, chunks = 0, 0
    for _, field in ipairs(call('HKEYS', key)) do
      local kind, queue = string.match(field, '^([cpq]):(.*)$')
      local value = kind and call('HGET', key, field) or ''
      if kind == 'c' then
        call('ZADD', L.timers, 'NX', L.seconds + CHUNK_SECONDS, 'chunk ' .. id .. ' ' .. queue)
        local count
        count, queue = string.match(value, '^(%d+) (.*)$')
        chunks, total = chunks + (count and 1 or 0), total + (tonumber(count) or 0)
      elseif kind == 'q' then
        total = total + (tonumber(value) or 0)
      end
      if queue and not known[queue] then
        known[queue] = true
        queues[#queues + 1] = queue
      end
    end
    call('HSET', key, 'total', total, 'unconfirmed', chunks, 'queues', #queues > 0 and cjson.encode(queues) or '[]')
    return queues
  end
end
