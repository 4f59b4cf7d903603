-- The engine of links: what happens in one place, in one script. LinksRole says what they are for.
--
-- A script that includes it has an empty table `L`, and calls L.open first. What is sent to a place is a body (a table with
-- `kind`) and bytes: L.post works it off here when the place is this one, else stores it in the outbox and returns it as a
-- parcel. Each kind has a handler in L.on, and each kind of watcher a function in L.tell that posts the end of a task to it.
-- Handlers apply by identity: twice is once. Everything a handler needs is checked by L.open, before the first write.
do
  local call = redis.call

  -- What goes to other places, or to the process that has sent this script: four texts each, see L.parcels.
  local posted = {}
  L.posted = posted

  -- `task_prefix`, `now` (seconds) and `now_nanos` as text.
  function L.open(task_prefix, now, now_nanos)
    L.task_prefix, L.base = task_prefix, string.sub(task_prefix, 1, -3)
    L.place = string.match(L.base, ':{(.*)}:$')
    L.now, L.seconds, L.now_nanos, L.damage = now, tonumber(now), now_nanos, false
    L.millis = tonumber(string.sub(now_nanos, 1, -7))
    L.pending, L.scheduled, L.archived = L.base .. 'pending', L.base .. 'scheduled', L.base .. 'archived'
    L.completed, L.waiting = L.base .. 'completed', L.base .. 'g:asynq:waiting'
    L.links, L.outbox, L.timers = L.base .. 'links', L.base .. 'outbox', L.base .. 'timers'
    L.running = L.base .. 'running'
    L.has_links, L.has_runs = call('HLEN', L.links) > 0, call('HLEN', L.running) > 0
    call('HLEN', L.outbox)
    call('LLEN', L.pending)
    for _, set in ipairs({ L.scheduled, L.archived, L.completed, L.waiting, L.timers }) do
      call('ZCARD', set)
    end
  end

  -- Redis refuses a call so before it has written anything; the call fails as a whole.
  local REFUSALS = { 'OOM ', 'MISCONF ', 'NOREPLICAS ', 'READONLY ' }

  -- Calls `work`, and returns what it returns. What fails because somebody has damaged what is stored does not stop the others: it is
  -- noted in L.damage, and returned behind nil.
  function L.guard(work, ...)
    local done, problem = pcall(work, ...)
    if done then return problem end
    local text = type(problem) == 'table' and problem.err or tostring(problem)
    for i = 1, #REFUSALS do
      if string.find(text, REFUSALS[i], 1, true) then error(problem, 0) end
    end
    L.damage = text
    return nil, text
  end

  -- What the process that has sent this script learns, for its events: LinkNews. It is among the parcels, and goes nowhere.
  function L.note(news)
    local n = #posted
    posted[n + 1], posted[n + 2], posted[n + 3], posted[n + 4] = '', '', cjson.encode(news), ''
  end

  -- A run has ended: its options and counts, as runs.lua has them.
  function L.note_run(id, options, counts)
    local n = #posted
    posted[n + 1], posted[n + 2], posted[n + 3], posted[n + 4] = '', id, options, counts
  end

  -- Applies what has succeeded, works off what was posted to this place, and writes the rest.
  function L.work()
    L.apply_successes()
    if L.has_parts then L.work_posted() end
    L.push_pending()
    L.write_timers()
    if L.has_waits then L.write_links() end
  end

  -- What this script has stored in the outbox, packed: to, key, body and data of each; and what it has noted.
  function L.parcels()
    return posted[1] and cmsgpack.pack(posted) or ''
  end
end
-- Includes shared/link-fields.lua
-- Includes shared/plain-tasks.lua
-- Includes shared/run-successes.lua
-- All else is made when it is first asked for, in parts: to make its functions would cost most calls of exchange.lua more than all they do,
-- and those that end a wait more than a third of what they do.
do
  local lazy = {}
  L.has_parts, L.has_waits = false, false

  local function set_lazy(metatable)
    for _, list in ipairs({ L.on, L.tell, L.due, L.audits, L.afterwards, L.grants, L.granted }) do
      setmetatable(list, metatable)
    end
  end

  -- What the ends of members need, and no more.
  function L.load_parts()
    if L.has_parts then return end
    L.has_parts = true
    -- Includes shared/posts.lua
    -- Includes shared/membership.lua
    -- Includes shared/parts.lua
    set_lazy(lazy)
  end

  -- What watchers, marks, tasks that wait and offers need, and no more.
  local function load_waits()
    if L.has_waits then return end
    L.load_parts()
    L.has_waits = true
    -- Includes shared/link-values.lua
    -- Includes shared/watchers.lua
    -- Includes shared/unseen.lua
    -- Includes shared/new-tasks.lua
    -- Includes shared/waits.lua
    -- Includes shared/offers.lua
  end

  -- For those that go through a list, where nothing is asked for by its name.
  function L.load_all()
    if not getmetatable(L) then return end
    load_waits()
    setmetatable(L, nil)
    setmetatable(L.runs, nil)
    set_lazy(nil)
    -- Includes shared/run-ends.lua
    -- Includes shared/runs.lua
    -- Includes shared/run-steps.lua
    -- Includes shared/run-tasks.lua
    -- Includes shared/run-pages.lua
    -- Includes shared/callbacks.lua
    -- Includes shared/batches.lua
    -- Includes shared/mend.lua
    -- Includes shared/step-calls.lua
  end

  function lazy.__index(list, name)
    load_waits()
    local value = rawget(list, name)
    if value ~= nil then return value end
    L.load_all()
    return list[name]
  end
  setmetatable(L, lazy)
  setmetatable(L.runs, lazy)
end
