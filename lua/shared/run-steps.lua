-- Runs of workflows and their steps: part of links.lua, behind runs.lua. What a step is follows from those before it; a step that ends
-- changes its own fields, and the counts of those after it.
do
  local call = redis.call
  local R = L.runs
  -- The messages of so few steps are read before it is known that they begin.
  local FEW = 4

  -- What a step means to those after it: a failed one that is optional is done.
  function R.outcome(step)
    local state = step.state
    if state == 's' then return 'ok' end
    if state == 'x' then return 'bad' end
    if state == 'f' or state == 'a' then return step.optional and 'ok' or 'bad' end
    return 'open'
  end

  -- A step is about to change, and with it what it means to those after it.
  local function note_change(run, name)
    local step = run.steps[name]
    if step.meant then return end
    step.meant = R.outcome(step)
    run.changed[#run.changed + 1] = name
  end

  -- The state of a step that has no task, by those before it.
  local function state_by_counts(step)
    if step.policy == 'c' and step.bad > 0 then return 'x' end
    return step.open == 0 and (step.bad == 0 or step.policy == 'r') and 'r' or 'w'
  end

  function R.decide(run, name)
    local step = run.steps[name]
    local before = step.state
    if before ~= 'w' and before ~= 'x' then return end
    local state = state_by_counts(step)
    if state == before then return end
    if state == 'x' or before == 'x' then
      note_change(run, name)
      run.open = run.open + (state == 'x' and -1 or 1)
    end
    step.state = state
    R.change(run, name, step)
    if state == 'r' then
      run.ready = run.ready + 1
      run.released[#run.released + 1] = name
    end
  end

  function R.tell(run, name, before, after)
    local step = run.steps[name]
    if before ~= 'ok' then step[before] = step[before] - 1 end
    if after ~= 'ok' then step[after] = step[after] + 1 end
    R.change(run, name, step)
    R.decide(run, name)
  end

  -- Tells those after changed steps what these mean now, and so on, wave by wave: what one needs is read at once.
  function R.propagate(run)
    local steps = run.steps
    while run.changed[1] do
      local wave, wanted = run.changed, { nil, nil }
      run.changed = { nil, nil }
      R.read_more(run, wave, 'd')
      for i = 1, #wave do
        local step = steps[wave[i]]
        if R.outcome(step) == step.meant then
          step.meant = nil
        else
          step.following = step.following or R.following(step)
          local names = step.following
          for j = 1, #names do
            local name = names[j]
            if steps[name] == nil then
              steps[name] = false -- until it is read
              wanted[#wanted + 1] = name
            end
          end
        end
      end
      R.read_steps(run, wanted, #wanted <= FEW and 'v' or nil)
      for i = 1, #wave do
        local step = steps[wave[i]]
        local before, after = step.meant, R.outcome(step)
        if before then
          step.meant = nil
          local names = step.following
          for j = 1, #names do
            if steps[names[j]] then R.tell(run, names[j], before, after) end
          end
        end
      end
    end
  end

  local function count_failed(run, step, by)
    run.failed = run.failed + by
    if not step.optional then run.bad = run.bad + by end
  end

  -- The task of a step has ended at `at`. R.flush does what follows.
  function R.end_step(run, name, ok, why, result, at)
    local step = run.steps[name]
    local state = step.state
    local ready = state == 'r' or state == 'a'
    if not ready and state ~= 'f' then return end
    if not ok and state == 'f' then return end
    if run.state ~= 'c' then note_change(run, name) end
    if ready then
      run.open, run.ready = run.open - 1, run.ready - 1
    else
      count_failed(run, step, -1)
    end
    step.state = ok and 's' or (run.state == 'c' and 'x' or 'f')
    if step.state == 'f' then count_failed(run, step, 1) end
    step.ended_at = at
    R.change(run, name, step)
    if ok then
      if state ~= 'r' then table.insert(run.gone, 'e:' .. name) end
      step.has_result = result and result ~= ''
      R.set(run, 'v:' .. name, result or '')
    elseif run.state == 'c' and why == R.DELETED then -- why the run was cancelled says more
      if state == 'a' then table.insert(run.gone, 'e:' .. name) end
    else
      R.set(run, 'e:' .. name, why)
    end
  end

  -- A failed step is ready again. Until it succeeds, it means to those after it what it meant.
  function R.again(run, name)
    local step = run.steps[name]
    count_failed(run, step, -1)
    step.state, run.open, run.ready = 'a', run.open + 1, run.ready + 1
    R.note_again(run, name)
    R.change(run, name, step)
  end

  R.DELETED = 'deleted'
  R.DAMAGED = 'its record in Redis is damaged'
  R.REFUSED = { duplicate = 'its unique lock is held by another task', conflict = 'there is another task with its id' }

  -- The tasks of steps that begin and have something special, as L.create takes them, with `run` (its id) and `step`.
  local beginning = {}

  -- The task of a step that has begun, as L.create takes it, without its message.
  local function special_task(run, name)
    local step = run.steps[name]
    local graph = R.graph(step)
    local task = { id = R.task_of(run.id, name), uniqueKey = graph.u, uniqueTtl = graph.l }
    task.watchers = { R.watcher_of(run, name, R.times_again(step)), graph.k }
    local at = graph.a or 0
    if graph.y and graph.y > 0 then at = math.max(at, math.ceil((step.ready_at + graph.y) / 1000)) end
    if at * 1000 > L.millis then task.processAt = at end
    return task
  end

  -- Of a step whose task another place creates, or one that is run again: which of its attempts this is, and for which nonce it was granted.
  local function grant_field(name)
    return 'g:' .. name
  end

  local function attempt_of(step)
    return (R.times_again(step) or 0) .. ' '
  end

  local function about_step(run, name)
    return { run = run.id, since = R.watcher_of(run, name).since, step = name, again = R.times_again(run.steps[name]) }
  end

  -- Has the queue of a step create its task, or run it again, once.
  function R.offer(run, name)
    L.offer_step(R.queue_of(run.steps[name]) or L.place, about_step(run, name))
  end

  -- Whether the queue of a step has been granted its task: 'no', 'soon' when that is on its way, 'yes' also when it needs no grant.
  function R.is_granted(run, name)
    local step = run.steps[name]
    local queue = R.queue_of(step)
    if not queue and not R.times_again(step) then return 'yes' end
    local kept, attempt = call('HGET', run.key, grant_field(name)) or '', attempt_of(step)
    if string.sub(kept, 1, #attempt) ~= attempt then return 'no' end
    return L.is_granting(queue or L.place, 'step', L.name_of_step(about_step(run, name))) and 'soon' or 'yes'
  end

  L.grants.step = function(about, nonce)
    local name = about.step
    local run = R.load(about.run, { name })
    local step = run and run.steps[name]
    if not step or run.state == 'c' or R.watcher_of(run, name).since ~= about.since or R.times_again(step) ~= about.again then return nil end
    if step.state ~= 'r' and step.state ~= 'a' then return nil end
    local field, attempt = grant_field(name), attempt_of(step)
    local kept = call('HGET', run.key, field) or ''
    if kept == attempt .. nonce then return true end
    if string.sub(kept, 1, #attempt) == attempt then return nil end
    call('HSET', run.key, field, attempt .. nonce)
    local stored = call('HMGET', run.key, 'v:' .. name, 'e:' .. name)
    -- What was refused before has no task.
    local again = about.again and stored[2] ~= R.REFUSED.duplicate and stored[2] ~= R.REFUSED.conflict
    return { task = special_task(run, name), again = again or nil }, stored[1] or ''
  end

  -- Lets a step begin: its task is created here, or offered to its queue. `again`: it has had one, which runs again.
  function R.begin(run, name, message, again)
    local step = run.steps[name]
    local now, id = L.millis, R.task_of(run.id, name)
    step.ready_at = now
    R.change(run, name, step)
    if not message and not again then return R.end_step(run, name, false, 'its message is lost', '', now) end
    R.read_more(run, { name }, 'd')
    if step.plain and not again then return L.begin_plain(run.id, name, id, message, L.hint(R.pack_counts(run), R.pack_step(step), L.neighbours(step.d or ''))) end
    if R.graph(step).q or again then return R.offer(run, name) end
    local task = special_task(run, name)
    task.message, task.run, task.step = message, run.id, name
    beginning[#beginning + 1] = task
  end

  -- Creates the tasks of steps that begin here. One that cannot be created has failed.
  local function create_beginning()
    L.create_begun()
    local tasks = beginning
    beginning = {}
    L.find_absent(tasks)
    for i = 1, #tasks do
      local task = tasks[i]
      local status = L.guard(L.create, task)
      if status ~= 'enqueued' then R.post_end(task.run, task.step, false, R.REFUSED[status] or R.DAMAGED) end
    end
  end

  local function begin_released(run)
    while run.released[1] do
      local names = run.released
      run.released = {}
      R.begin_first(run, names)
    end
  end

  -- What tasks have told their runs, by run, seven values each: step, whether it has succeeded, why not, result, when; whether it
  -- could not be created, when a parcel had asked for it: then the result is its message; and of an end that comes by parcel, how often the
  -- step had been run again.
  local ends, ended_runs = {}, {}

  function R.post_end(id, name, ok, why, result, at, refused, again)
    local list = ends[id]
    if not list then
      ends[id] = { name, ok, why or '', result or '', at or L.millis, refused or false, again or false }
      ended_runs[#ended_runs + 1] = id
      return
    end
    local n = #list
    list[n + 1], list[n + 2], list[n + 3], list[n + 4] = name, ok, why or '', result or ''
    list[n + 5], list[n + 6], list[n + 7] = at or L.millis, refused or false, again or false
  end

  -- Whether this is the failure of an earlier attempt, which comes twice or late. What is not said by a parcel comes once.
  local function is_stale(step, ok, again)
    return not ok and again and again < (R.times_again(step) or 0)
  end

  local function apply_ends(id, list)
    local names = { list[1] }
    for i = 8, #list, 7 do
      names[#names + 1] = list[i]
    end
    local run = R.load(id, names)
    if not run then return end
    R.touch(run)
    for i = 1, #list, 7 do
      local name, refused = list[i], list[i + 5]
      local step = run.steps[name]
      if step and is_stale(step, list[i + 1], list[i + 6]) then step = nil end
      if step and refused then
        if step.state == 'r' or step.state == 'a' then R.set(run, 'v:' .. name, list[i + 3]) end
      elseif step and not step.plain then
        if R.graph(step).q then table.insert(run.gone, grant_field(name)) end
      end
      if step then R.end_step(run, name, list[i + 1], list[i + 2], not refused and list[i + 3] or '', list[i + 4]) end
    end
  end

  local function finish(run)
    if run.deleted then return end
    R.settle(run)
    R.write(run)
    -- Nothing can proceed, and nothing has failed.
    if run.state == 'f' and run.open > 0 and run.bad == 0 then R.mend(run.id) end
  end

  local function advance(run)
    if run.deleted then return end
    R.propagate(run)
    begin_released(run)
  end

  -- Applies what tasks have told, lets the steps begin that are ready, and writes what has changed.
  function R.flush()
    L.apply_successes()
    local changed = {}
    repeat
      local ids = ended_runs
      ended_runs = {}
      for i = 1, #ids do
        local list = ends[ids[i]]
        ends[ids[i]] = nil
        L.guard(apply_ends, ids[i], list)
      end
      local touched = R.take_touched()
      for i = 1, #touched do
        local run = touched[i]
        if not run.flushing then
          run.flushing = true
          changed[#changed + 1] = run
        end
      end
      for i = 1, #changed do
        local run = changed[i]
        local _, problem = L.guard(advance, run)
        if problem then
          run.changed, run.released = {}, {}
          R.reread(run.id)
        end
      end
      create_beginning()
      local busy = ended_runs[1] ~= nil
      for i = 1, #changed do
        busy = busy or changed[i].changed[1] ~= nil
      end
    until not busy
    for i = 1, #changed do
      local run = changed[i]
      run.flushing = nil
      L.guard(finish, run)
    end
  end
  L.afterwards[#L.afterwards + 1] = R.flush

  L.on.step = function(body, data)
    local run = body.since and R.load(body.run, {})
    if body.since and not (run and R.watcher_of(run).since == body.since) then return end
    R.post_end(body.run, body.step, body.ok, body.why, data, body.at, body.refused, body.again or 0)
  end
end
