-- What is done to many steps of a run, some hundred per script: part of links.lua, behind run-tasks.lua. What is left is a parcel to this
-- place, with the names of the steps: the next delivery goes on.
do
  local call = redis.call
  local R = L.runs
  -- How many steps one script lets begin, and of how many it posts to their tasks: some milliseconds each.
  local BEGUN_AT_ONCE, POSTED_AT_ONCE = 1000, 250

  -- Texts with a NUL behind each.
  local function split(text)
    local list = {}
    for one in string.gmatch(text, '(%Z*)%z') do
      list[#list + 1] = one
    end
    return list
  end

  -- Keeps the first `count` texts in the list, and leaves the others to the next delivery.
  local function leave(list, count, body)
    if #list <= count then return list end
    local key = { 'page', body.kind, body.what or '', body.run, body.since, list[count + 1] }
    L.defer(table.concat(key, ' '), body, table.concat(list, '\0', count + 1) .. '\0')
    for i = #list, count + 1, -1 do
      list[i] = nil
    end
    return list
  end

  -- The queue of a step, unless it is this one.
  function R.queue_of(step)
    return not step.plain and R.graph(step).q or nil
  end

  local function body_of(run, kind, what)
    return { kind = kind, what = what, run = run.id, since = R.watcher_of(run, '').since }
  end

  -- Lets steps begin that are ready.
  function R.begin_first(run, names)
    R.touch(run)
    if #names > BEGUN_AT_ONCE then leave(names, BEGUN_AT_ONCE, body_of(run, 'begin', 'first')) end
    R.read_more(run, names, 'v')
    for _, name in ipairs(names) do
      R.begin(run, name, run.steps[name].v)
    end
  end

  -- Runs failed steps again.
  function R.begin_again(run, names)
    R.touch(run)
    leave(names, BEGUN_AT_ONCE, body_of(run, 'begin', 'again'))
    R.read_more(run, names, 'v')
    for _, name in ipairs(names) do
      local error = call('HGET', run.key, 'e:' .. name)
      R.again(run, name)
      R.begin(run, name, run.steps[name].v, error ~= R.REFUSED.duplicate and error ~= R.REFUSED.conflict)
    end
  end

  -- `what`: the steps begin for the first time, or again. A step that has begun since is left alone.
  L.on.begin = function(body, data)
    local run = R.load(body.run, {})
    if not run or run.state == 'c' or R.watcher_of(run, '').since ~= body.since then return end
    local names, due = leave(split(data), BEGUN_AT_ONCE, body), {}
    R.load(body.run, names)
    for _, name in ipairs(names) do
      local step = run.steps[name]
      local is_due = step and (body.what == 'again' and step.state == 'f' or step.state == 'r' and step.ready_at == 0)
      if is_due then due[#due + 1] = name end
    end
    local begin = body.what == 'again' and R.begin_again or R.begin_first
    begin(run, due)
  end

  -- A probe offers what was not granted; a drop takes back an offer. `again`: see R.watcher_of.
  local function post(body, name, queue, run, again)
    local id, to = R.task_of(body.run, name), queue ~= '' and queue or L.place
    local w = R.watcher_of({ id = body.run, since = body.since }, name, again)
    if body.what ~= 'probe' then
      local offered = L.name_of_step({ run = body.run, step = name, since = body.since, again = again })
      L.take_back(to, 'step', offered)
      return L.post(to, 'drop ' .. id, { kind = 'drop', id = id, w = w, what = body.what, offered = offered, home = L.place }, '')
    end
    local granted = run and run.steps[name] and R.is_granted(run, name) or 'yes'
    if granted == 'yes' then L.post(to, 'probe ' .. id, { kind = 'probe', id = id, w = w }, '') end
    if granted == 'no' then R.offer(run, name) end
  end

  -- Posts to the tasks of these steps, wherever they are. `what`: `probe`, or what L.on.drop does. The run may be deleted meanwhile.
  function R.post_to_tasks(run, names, what)
    local list = {}
    for _, name in ipairs(names) do
      list[#list + 1], list[#list + 2] = name, R.queue_of(run.steps[name]) or ''
    end
    L.on.posts(body_of(run, 'posts', what), nil, list)
  end

  L.on.posts = function(body, data, list)
    list = leave(list or split(data), 2 * POSTED_AT_ONCE, body)
    local names = {}
    for i = 1, #list, 2 do
      names[#names + 1] = list[i]
    end
    local run = R.load(body.run, names)
    for i = 1, #list, 2 do
      local step = run and run.steps[list[i]]
      post(body, list[i], list[i + 1], run, step and R.times_again(step))
    end
  end
end
