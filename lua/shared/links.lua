-- The engine of links: what happens in one place, in one script. LinksRole says what they are for.
--
-- A script that includes it has an empty table `L`, and calls L.open first. What is sent to a place is a body (a table with
-- `kind`) and bytes: L.post works it off here when the place is this one, else stores it in the outbox and returns it as a
-- parcel. Each kind has a handler in L.on, and each kind of watcher a function in L.tell that posts the end of a task to it.
-- Handlers apply by identity: twice is once. Everything a handler needs is checked by L.open, before the first write.
do
  local call, try, type = redis.call, redis.pcall, type
  -- How many bodies one script works off; it leaves the others to the next delivery.
  local MOST_BODIES = 2000
  -- How many fields of a hash one script goes through.
  local FAN_OUT = 500

  local queue, head, tail = {}, 1, 0
  local posted, positions = {}, {}

  L.on, L.tell, L.due, L.audits, L.afterwards = {}, {}, {}, {}, {}

  -- `task_prefix`, `now` (seconds) and `now_nanos` as text.
  function L.open(task_prefix, now, now_nanos)
    L.task_prefix, L.base = task_prefix, string.sub(task_prefix, 1, -3)
    L.place = string.match(L.base, ':{(.*)}:$')
    L.now, L.seconds, L.now_nanos, L.damage = now, tonumber(now), now_nanos, false
    L.millis = tonumber(string.sub(now_nanos, 1, -7))
    L.pending, L.scheduled, L.archived = L.base .. 'pending', L.base .. 'scheduled', L.base .. 'archived'
    L.completed, L.waiting = L.base .. 'completed', L.base .. 'g:asynq:waiting'
    L.links, L.outbox, L.timers = L.base .. 'links', L.base .. 'outbox', L.base .. 'timers'
    L.has_links = call('HLEN', L.links) > 0
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

  local function store(to, field, text, data)
    call('HSET', L.outbox, field, cmsgpack.pack({ to, text, data, L.seconds }))
    local at = positions[field]
    if not at then
      at = #posted
      positions[field] = at
    end
    posted[at + 1], posted[at + 2], posted[at + 3], posted[at + 4] = to, field, text, data
  end

  -- `key` is the identity of what is sent there: a newer body takes the place of an older one that has not left.
  function L.post(to, key, body, data)
    if to == L.place then
      tail = tail + 1
      queue[tail] = { key, body, data or '' }
    else
      store(to, to .. ' ' .. key, cjson.encode(body), data or '')
    end
  end

  -- Leaves a body of this place to the next delivery.
  function L.defer(key, body, data)
    store(L.place, L.place .. ' ' .. key, cjson.encode(body), data or '')
  end

  -- Calls `tell` with some fields of a hash, which are deleted when `consume`, and leaves the others to the next delivery: `body`
  -- has the cursor, nil at first.
  function L.fan_out(hash, key, body, consume, tell)
    local page = try('HSCAN', hash, body.cursor or '0', 'COUNT', FAN_OUT)
    if page.err then return end
    for i = 1, #page[2], 2 do
      local known, value = pcall(cjson.decode, page[2][i])
      if known then tell(value) end
      if consume then call('HDEL', hash, page[2][i]) end
    end
    if page[1] == '0' then return end
    body.cursor = page[1]
    L.defer(key, body)
  end

  -- What the process that has sent this script learns, for its events: LinkNews. It is among the parcels, and goes nowhere.
  function L.note(news)
    local n = #posted
    posted[n + 1], posted[n + 2], posted[n + 3], posted[n + 4] = '', '', cjson.encode(news), ''
  end

  -- Works off what was posted to this place, and what that causes here; then lets those write who have waited for the rest.
  function L.work()
    repeat
      while head <= tail do
        local key, body, data = unpack(queue[head])
        queue[head] = nil
        head = head + 1
        if head <= MOST_BODIES then
          L.guard(L.on[body.kind], body, data)
        else
          store(L.place, L.place .. ' ' .. key, cjson.encode(body), data)
        end
      end
      L.apply_successes()
      for i = 1, #L.afterwards do
        L.guard(L.afterwards[i])
      end
    until head > tail
    L.push_pending()
    L.write_links()
  end

  -- What this script has stored in the outbox, packed: to, key, body and data of each; and what it has noted.
  function L.parcels()
    return #posted > 0 and cmsgpack.pack(posted) or ''
  end

  function L.is_posted(field)
    return positions[field] ~= nil
  end
end
-- Includes shared/membership.lua
-- Includes shared/link-fields.lua
-- Includes shared/plain-tasks.lua
-- Includes shared/run-ends.lua
-- Includes shared/run-successes.lua
-- All else is made when it is first asked for: to make its functions would cost most calls of exchange.lua more than all they do.
do
  local lazy, parts = {}, false

  -- What the ends of members need, and no more.
  function L.load_parts()
    if parts then return end
    parts = true
    -- Includes shared/parts.lua
  end

  local function load()
    for _, list in ipairs({ L, L.on, L.tell, L.due, L.runs }) do
      setmetatable(list, nil)
    end
    L.load_parts()
    -- Includes shared/watchers.lua
    -- Includes shared/unseen.lua
    -- Includes shared/new-tasks.lua
    -- Includes shared/waits.lua
    -- Includes shared/runs.lua
    -- Includes shared/run-steps.lua
    -- Includes shared/run-tasks.lua
    -- Includes shared/run-pages.lua
    -- Includes shared/callbacks.lua
    -- Includes shared/batches.lua
    -- Includes shared/mend.lua
  end

  function lazy.__index(list, name)
    load()
    return list[name]
  end
  for _, list in ipairs({ L, L.on, L.tell, L.due, L.runs }) do
    setmetatable(list, lazy)
  end
end
